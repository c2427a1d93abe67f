"""Running the service on its own."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import attrs
from aiohttp import web

from imgsvc_core.errors import Problem, SpecError
from imgsvc_http.answering.headers import HeaderNames
from imgsvc_http.app import FORKSERVER, create_app
from imgsvc_http.endpoints.metrics import serving_metrics
from imgsvc_http.processing.forkserver import Forkserver
from imgsvc_http.routing import methods_at
from imgsvc_http.server.certificate import certificate_to_trust, tls_context
from imgsvc_http.server.connection import Connection
from imgsvc_http.server.connection_rate import ConnectionRate
from imgsvc_http.server.listener import Listener, listen, most_connections
from imgsvc_http.services import SERVICES, Services
from imgsvc_http.settings import ServerSettings, Settings
from imgsvc_http.state import first_account
from imgsvc_http.state.clock import now
from imgsvc_http.state.folder import make_private

_log = logging.getLogger(__name__)

_CLOSE_SECONDS = 0.5  # for connections that the listener has not seen closed
_SWITCH_SECONDS = 0.0005
_SAMPLE = """<svg xmlns="http://www.w3.org/2000/svg" width="960" height="640" viewBox="0 0 96 64">
<defs><linearGradient id="sky" x2="0" y2="1">
<stop stop-color="#1d3b6f"/><stop offset=".7" stop-color="#e8894a"/><stop offset="1" stop-color="#ffd27a"/>
</linearGradient></defs>
<rect width="96" height="64" fill="url(#sky)"/><circle cx="62" cy="38" r="9" fill="#fff1c4"/>
<path d="M0 50 22 26 38 44 52 30 74 50 84 42 96 52V64H0Z" fill="#31425e"/>
<path d="M0 58 18 46 36 56 60 44 96 60V64H0Z" fill="#18233a"/></svg>
"""


@attrs.frozen
class Greeting:
    """What a person is told when the service has started. There is a ``key`` on its first run only."""

    address: str
    key: str | None = attrs.field(repr=False)
    command: str = attrs.field(repr=False)


async def serve(
    settings: Settings, greet: Callable[[Greeting], None], forkserver: Forkserver | None = None
) -> None:
    """Serve until a signal ends the process. Then drain: tell balancers, and finish requests in flight.

    Args:
        settings: where and how to serve.
        greet: is called when the service is ready.
        forkserver: the process that forks workers, if it was begun before.

    Raises:
        SpecError: the settings cannot be used.
    """
    os.umask(0o077)  # files in the state folder are readable by their owner only
    make_private(settings.server.state_folder)
    try:
        listening = listen(settings.server.host, settings.server.port)
    except (OSError, UnicodeError, TypeError) as error:  # a TypeError is of a name that IDNA cannot encode
        raise SpecError([_not_listening(settings.server, error)]) from error
    port = int(listening.getsockname()[1])
    settings = attrs.evolve(settings, server=attrs.evolve(settings.server, port=port))
    tls = tls_context(settings.server)
    sys.setswitchinterval(_SWITCH_SECONDS)  # after each read and write the loop waits for other threads
    app = create_app(settings)
    if forkserver is not None:
        app[FORKSERVER] = forkserver
    # The work of a client that has gone is given up: its handler is cancelled.
    runner = web.AppRunner(app, shutdown_timeout=_CLOSE_SECONDS, handler_cancellation=True)
    signals = _signals()
    ending = contextlib.AsyncExitStack()
    try:
        if not await _unless_signaled(runner.setup(), signals):
            return
        server = settings.server
        listener = Listener(
            runner,
            listening,
            tls,
            partial(
                Connection,
                limiter=app[SERVICES].limiter,
                methods_at=partial(methods_at, app),
                access_log=app[SERVICES].access_log,
                header_seconds=server.header_seconds,
                idle_seconds=server.idle_seconds,
                unread_seconds=server.body_seconds,
            ),
            app[SERVICES].in_flight,
            most=server.connections or most_connections(),
            handshake_seconds=server.header_seconds,
            rate=ConnectionRate(server.connections_per_second, server.trusted_proxies),
        )
        metrics = serving_metrics(app[SERVICES])
        await ending.enter_async_context(metrics)
        gc.collect()
        gc.freeze()  # objects that live as long as the process would make every collection slow
        await listener.start()
        key = await first_key(app[SERVICES])
        greet(Greeting(settings.base_url, key, sample_command(settings, key)))
        await signals.acquire()
        app[SERVICES].stopping.set()
        await _wait_for_balancers(server.drain_seconds, signals)
        _log.info("Finishing requests in flight.")
        await listener.drain(server.shutdown_seconds)
    finally:
        await ending.aclose()
        await runner.cleanup()
        listening.close()


def event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's event loop, or asyncio's where there is no uvloop."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.new_event_loop()
    return new_event_loop()


async def first_key(services: Services) -> str | None:
    """Create an account with a key unless there is an account; return the secret of the key."""
    default = services.settings.accounts
    return await first_account.create(
        services.db, plan=default.plan, period=default.period, quota=default.quota, now=now()
    )


def sample_command(settings: Settings, key: str | None) -> str:
    """Return a command for a shell that sends a drawn picture through the service."""
    sample = settings.server.state_folder / "sample.svg"
    if not sample.exists():
        sample.write_text(_SAMPLE, encoding="utf-8")
    trusted = certificate_to_trust(settings.server)
    trust = f" --cacert {quote(str(trusted.absolute()))}" if trusted else ""
    request = '{"resize":{"width":480},"filter":{"sepia":{"value":70}},"output":{"format":"webp"}}'
    binary = HeaderNames(settings.server.header_prefix).binary
    return (
        f"curl --fail{trust} -H 'Authorization: Bearer {key or '<your key>'}' "
        f"-H '{binary}: 1' -F {quote(f'file=@{_form_path(sample)}')} -F 'data={request}' "
        f"-o sample.webp {quote(f'{settings.base_url}/1.0/upload')}"
    )


def _form_path(file: Path) -> str:
    """Quote a path for a form of curl, where commas and semicolons would end it."""
    escaped = str(file.absolute()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _not_listening(server: ServerSettings, error: Exception) -> Problem:
    reason = str(getattr(error, "strerror", None) or error).partition(" (while ")[0]
    if getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES):
        message = f"must be free to listen at, got {server.host}:{server.port}: {reason}"
        return Problem("server.port", f"Setting 'server.port' {message}")
    message = f"must be a name or address of this machine, got '{server.host}': {reason}"
    return Problem("server.host", f"Setting 'server.host' {message}")


def _signals() -> asyncio.Semaphore:
    """Return a semaphore that is released by each SIGINT and SIGTERM."""
    signals = asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, signals.release)
    return signals


async def _unless_signaled(starting: Coroutine[Any, Any, None], signals: asyncio.Semaphore) -> bool:
    """Wait for a start. Return False, and cancel it, if a signal comes first."""
    start, signaled = asyncio.create_task(starting), asyncio.create_task(signals.acquire())
    try:
        await asyncio.wait([start, signaled], return_when=asyncio.FIRST_COMPLETED)
        if start.done():
            await start
            return not signaled.done()
        return False
    finally:
        for task in (start, signaled):
            task.cancel()
        await asyncio.wait([start, signaled])


async def _wait_for_balancers(seconds: float, signals: asyncio.Semaphore) -> None:
    """Serve on for a while as a node that is not ready, unless another signal comes."""
    if seconds > 0:
        _log.info("Serving for %g more seconds, until balancers send no more requests.", seconds)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await signals.acquire()
