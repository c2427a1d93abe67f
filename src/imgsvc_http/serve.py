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
from imgsvc_http.answering.header_names import BINARY, with_prefix
from imgsvc_http.app import create_app
from imgsvc_http.routing import methods_at
from imgsvc_http.server.certificate import certificate_to_trust, tls_context
from imgsvc_http.server.connection import Connection
from imgsvc_http.server.listener import Listener, listen, most_connections
from imgsvc_http.services import SERVICES, Services, now
from imgsvc_http.settings import Server, Settings
from imgsvc_http.state import accounts, keys
from imgsvc_http.state.folder import make_private
from imgsvc_http.state.scopes import SCOPES

_log = logging.getLogger(__name__)

_CLOSING_SECONDS = 0.5  # for what the listener has not seen the end of
_TURN_SECONDS = 0.0005  # for one thread of Python, while others wait
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
    """What a person is told when the service has started; ``key`` only on its first run."""

    address: str
    key: str | None = attrs.field(repr=False)
    command: str = attrs.field(repr=False)


async def serve(settings: Settings, greet: Callable[[Greeting], None]) -> None:
    """Serve until the process is told to end, and until balancers know; then finish what runs.

    Raises:
        SpecError: the settings cannot be used.
    """
    os.umask(0o077)  # whoever makes a file in the state folder, nobody else reads it
    make_private(settings.server.state_folder)
    try:
        listening = listen(settings.server.host, settings.server.port)
    except (OSError, UnicodeError, TypeError) as error:  # a type error is of a name that IDNA cannot encode
        raise SpecError([_not_listening(settings.server, error)]) from error
    port = int(listening.getsockname()[1])
    settings = attrs.evolve(settings, server=attrs.evolve(settings.server, port=port))
    tls = tls_context(settings.server)
    sys.setswitchinterval(_TURN_SECONDS)  # the loop waits for its turn at every read and write
    app = create_app(settings)
    # Nobody waits for the work of a client that has gone: its handler is cancelled.
    runner = web.AppRunner(app, shutdown_timeout=_CLOSING_SECONDS, handler_cancellation=True)
    told = _when_told_to_end()
    try:
        if not await _unless_told(runner.setup(), told):
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
                header_seconds=server.header_seconds,
                idle_seconds=server.idle_seconds,
                unread_seconds=server.body_seconds,
            ),
            app[SERVICES].running,
            most=server.connections or most_connections(),
            handshake_seconds=server.header_seconds,
        )
        gc.collect()
        gc.freeze()  # what lives as long as the process would hold everybody up at every collection
        await listener.start()
        key = await first_key(app[SERVICES])
        greet(Greeting(settings.base_url, key, sample_command(settings, key)))
        await told.acquire()
        app[SERVICES].stopping.set()
        await _drain(settings.server.drain_seconds, told)
        _log.info("Finishing what runs.")
        await listener.finish(settings.server.shutdown_seconds)
    finally:
        await runner.cleanup()
        listening.close()


def event_loop() -> asyncio.AbstractEventLoop:
    """The fastest loop that there is for this system."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.new_event_loop()
    return new_event_loop()


async def first_key(services: Services) -> str | None:
    """The secret of a new key of a new account, where there is no account yet."""
    async with services.db.alone():
        if await accounts.list_all(services.db):
            return None
        default = services.settings.accounts
        account = await accounts.create(
            services.db,
            company="My company",
            plan=default.plan,
            period=default.period,
            quota=default.quota,
            now=now(),
        )
    made = await keys.create(services.db, account.id, name="first", scopes=SCOPES, now=now())
    return made.secret


def sample_command(settings: Settings, key: str | None) -> str:
    """A command for a shell that sends a drawn picture through the service, and works as it stands."""
    sample = settings.server.state_folder / "sample.svg"
    if not sample.exists():
        sample.write_text(_SAMPLE, encoding="utf-8")
    trusted = certificate_to_trust(settings.server)
    trust = f" --cacert {quote(str(trusted.absolute()))}" if trusted else ""
    request = '{"resize":{"width":480},"filter":{"sepia":{"value":70}},"output":{"format":"webp"}}'
    binary = with_prefix(BINARY, settings.server.header_prefix)
    return (
        f"curl --fail{trust} -H 'Authorization: Bearer {key or '<your key>'}' "
        f"-H '{binary}: 1' -F {quote(f'file=@{_for_a_form(sample)}')} -F 'data={request}' "
        f"-o sample.webp {quote(f'{settings.base_url}/1.0/upload')}"
    )


def _not_listening(server: Server, error: Exception) -> Problem:
    reason = str(getattr(error, "strerror", None) or error).partition(" (while ")[0]
    if getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES):
        message = f"must be free to listen at, got {server.host}:{server.port}: {reason}"
        return Problem("server.port", f"Setting 'server.port' {message}")
    message = f"must be a name or address of this machine, got '{server.host}': {reason}"
    return Problem("server.host", f"Setting 'server.host' {message}")


def _for_a_form(file: Path) -> str:
    """A file as curl takes it in a form, where commas and semicolons would end a bare name."""
    escaped = str(file.absolute()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


async def _unless_told(starting: Coroutine[Any, Any, None], told: asyncio.Semaphore) -> bool:
    """Whether a start came to its end; it is given up as soon as the process is told to end."""
    start, end = asyncio.create_task(starting), asyncio.create_task(told.acquire())
    try:
        await asyncio.wait([start, end], return_when=asyncio.FIRST_COMPLETED)
        if start.done():
            await start
            return not end.done()
        return False
    finally:
        for task in (start, end):
            task.cancel()
        await asyncio.wait([start, end])


async def _drain(seconds: float, told: asyncio.Semaphore) -> None:
    """Go on for a while as a node that is not ready, unless told to end once more."""
    if seconds > 0:
        _log.info("Taking requests for %g more seconds, until balancers send none.", seconds)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await told.acquire()


def _when_told_to_end() -> asyncio.Semaphore:
    """Released each time when the process is interrupted or terminated."""
    told = asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, told.release)
    return told
