"""Running the service on its own."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import gc
import logging
import os
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import attrs
from aiohttp import web

from imgsvc_core._runtime.forkserver import Forkserver
from imgsvc_http.answering.headers import HeaderNames
from imgsvc_http.app import app_of
from imgsvc_http.node_process import NodeProcess
from imgsvc_http.routing import unknown_endpoint
from imgsvc_http.runtime.clock import now
from imgsvc_http.runtime.private_names import limit_pipelining
from imgsvc_http.runtime.shared_memory import ChangeMark
from imgsvc_http.server.certificate import certificate_to_trust, tls_context
from imgsvc_http.server.channel import Channel
from imgsvc_http.server.connection import Connection
from imgsvc_http.server.connection_rate import ConnectionRate
from imgsvc_http.server.listener import Listener, listen
from imgsvc_http.server.metrics_port import serving_metrics
from imgsvc_http.server.supervisor import Signals, Supervisor
from imgsvc_http.services import SERVICES, connections_of, prepare_machine
from imgsvc_http.settings import ServerSettings, Settings, sizing_of
from imgsvc_http.settings.problems import wrong_setting
from imgsvc_http.settings.sections import temporary_state_folder
from imgsvc_http.state import first_account
from imgsvc_http.state.folder import locked
from imgsvc_http.state.opening import prepare_state
from imgsvc_http.workers.forking import begin_forkserver

_log = logging.getLogger(__name__)

_CLOSE_SECONDS = 0.5  # for connections that the listener has not seen closed
_MOST_PIPELINED = 4  # requests of a connection; browsers send none, and each takes some 3 kB
_LARGE_BYTES = 1 << 17  # glibc's own threshold, until the first such block is freed
_SWITCH_SECONDS = 0.0005
_GC_ALLOCATIONS = 10_000  # at Python's 700, hundreds of requests under way are looked through again and again
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
    """The lines that the service prints when it has started. There is a ``key`` on its first run only."""

    address: str
    key: str | None = attrs.field(repr=False)
    command: str = attrs.field(repr=False)


def serve(
    settings: Settings, greet: Callable[[Greeting], None], forkserver: Forkserver | None = None
) -> None:
    """Serve until a signal ends the service. Then drain: tell balancers, and finish requests in flight.

    Args:
        settings: where and how to serve.
        greet: is called when the service is ready.
        forkserver: the process that forks workers, if it was begun before.

    Raises:
        ImgsvcError: the settings cannot be used, or a process cannot start.
    """
    os.umask(0o077)  # files in the state folder are readable by their owner only
    prepare_machine(settings.server)
    if settings.server.state_folder == temporary_state_folder():
        _log.warning(
            "The state is in %s, as there is no home folder: set server.state_folder to keep it.",
            settings.server.state_folder,
        )
    with _listen(settings.server) as listening:
        port = int(listening.getsockname()[1])
        settings = attrs.evolve(settings, server=attrs.evolve(settings.server, port=port))
        tls = tls_context(settings.server)

        def greet_with(key: str | None) -> None:
            greet(Greeting(settings.server.public_url, key, sample_command(settings, key)))

        _serve_supervised(settings, tls, listening, greet_with, forkserver)


async def serve_process(
    settings: Settings, tls: ssl.SSLContext, process: NodeProcess, channel: Channel
) -> None:
    """Serve the connections of a channel until it says stop: the work of one process.

    Args:
        settings: those of the service.
        tls: certificate and key.
        process: which one this is.
        channel: gives the connections.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)  # after each read and write the loop waits for other threads
    _keep_no_large_blocks()
    limit_pipelining(_MOST_PIPELINED)
    app = app_of(settings, process)
    # The work of a client that has gone is given up: its handler is cancelled.
    runner = web.AppRunner(app, shutdown_timeout=_CLOSE_SECONDS, handler_cancellation=True)
    stops = asyncio.Semaphore(0)
    channel.follow(stops)
    ending = contextlib.AsyncExitStack()
    try:
        if not await _unless_stopped(runner.setup(), stops):
            return
        server, services = settings.server, app[SERVICES]
        listener = Listener(
            runner,
            settings.server.public_url,
            tls,
            _new_connection(app),
            services.in_flight,
            note_closed=channel.note_closed,
            most=connections_of(settings, process),
            handshake_seconds=server.header_seconds,
            rate=ConnectionRate(server.connections_per_second / process.processes, server.trusted_proxies),
        )
        await ending.enter_async_context(serving_metrics(services))
        gc.collect()
        gc.freeze()  # objects that live as long as the process would make every collection slow
        gc.set_threshold(_GC_ALLOCATIONS)
        await listener.start()
        key = None
        if process.has_duties:
            key = await first_account.create(services.db, settings.accounts, now())
        channel.accept(listener.take)
        channel.report_ready(key)
        await stops.acquire()
        services.stopping.set()
        await stops.acquire()
        _log.info("Finishing requests in flight.")
        channel.close()
        await listener.drain(server.shutdown_seconds)
    finally:
        await ending.aclose()
        await runner.cleanup()


def _new_connection(app: web.Application) -> partial[Connection]:
    """Return the function that makes the connections of an application."""
    services = app[SERVICES]
    server = services.settings.server
    return partial(
        Connection,
        limiter=services.rates.requests,
        unknown=partial(unknown_endpoint, app),
        access_log=services.access_log,
        header_seconds=server.header_seconds,
        idle_seconds=server.idle_seconds,
        slow_seconds=server.slow_seconds,
        slow_rate=server.slow_bytes_per_second,
    )


def _keep_no_large_blocks() -> None:
    """Let glibc give large blocks back to the system when they are freed, and never cut others from them.

    TLS reserves 256 kB for each connection, of which it uses little: of blocks that were used before, all of
    it would be in memory.
    """
    mmap_threshold = -3
    with contextlib.suppress(AttributeError):  # of another libc
        ctypes.CDLL(None).mallopt(mmap_threshold, _LARGE_BYTES)


def _serve_supervised(
    settings: Settings,
    tls: ssl.SSLContext,
    listening: socket.socket,
    greet: Callable[[str | None], None],
    forkserver: Forkserver | None,
) -> None:
    """Own the state folder and the port, and start the processes that do everything else.

    This process has one thread and no event loop, so that it can fork at any time.
    """
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(Signals())
        server, processes = settings.server, sizing_of(settings).processes
        folder = server.state_folder
        stack.enter_context(locked(folder))
        if forkserver is None:
            forkserver = stack.enter_context(
                contextlib.closing(
                    begin_forkserver(sizing_of(settings).worker_memory_bytes, settings.server.scratch)
                )
            )
        prepare_state(settings)
        if signals.count:
            return
        node = NodeProcess(
            processes=processes, is_supervised=True, changes=ChangeMark(folder), forkserver=forkserver
        )

        def listen(channel: Channel, first_start: bool) -> None:
            process = attrs.evolve(node, number=channel.number, first_start=first_start)
            with asyncio.Runner(loop_factory=event_loop) as runner:
                runner.run(serve_process(settings, tls, process, channel))

        gc.collect()
        gc.freeze()  # keeps the memory that the processes share from being written to
        supervisor = Supervisor(
            listening,
            listen,
            processes,
            signals,
            drain_seconds=server.drain_seconds,
            unresponsive_seconds=server.unresponsive_seconds,
        )
        if forkserver.process is not None:
            supervisor.collect(forkserver.process)
        supervisor.run(greet)


def event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's event loop, or asyncio's where there is no uvloop."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.new_event_loop()
    return new_event_loop()


def sample_command(settings: Settings, key: str | None) -> str:
    """Return a command for a shell that sends a drawn picture through the service."""
    sample = settings.server.state_folder / "sample.svg"
    if not sample.exists():
        sample.write_text(_SAMPLE, encoding="utf-8")
    behind_proxy = settings.server.base_url and settings.server.trusted_proxies  # whose certificate is seen
    trusted = None if behind_proxy else certificate_to_trust(settings.server)
    trust = f" --cacert {quote(str(trusted.absolute()))}" if trusted else ""
    request = '{"resize":{"width":480},"filter":{"sepia":{"value":70}},"output":{"format":"webp"}}'
    binary = HeaderNames(settings.server.header_prefix).binary
    return (
        f"curl --fail{trust} -H 'Authorization: Bearer {key or '<your key>'}' "
        f"-H '{binary}: 1' -F {quote(f'file=@{_form_path(sample)}')} -F 'data={request}' "
        f"-o sample.webp {quote(f'{settings.server.public_url}/1.0/upload')}"
    )


def _form_path(file: Path) -> str:
    """Quote a path for a form of curl, where commas and semicolons would end it."""
    escaped = str(file.absolute()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _listen(server: ServerSettings) -> socket.socket:
    try:
        return listen(server.host, server.port)
    except (OSError, UnicodeError, TypeError) as error:  # a TypeError is of a name that IDNA cannot encode
        reason = str(getattr(error, "strerror", None) or error).partition(" (while ")[0]
        if getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES):
            expected = f"must be free to listen at, got {server.host}:{server.port}: {reason}"
            raise wrong_setting("server.port", expected) from error
        expected = f"must be a name or address of this machine, got '{server.host}': {reason}"
        raise wrong_setting("server.host", expected) from error


async def _unless_stopped(starting: Coroutine[Any, Any, None], stops: asyncio.Semaphore) -> bool:
    """Wait for a start. Return False, and cancel it, if it is to stop first."""
    start, stopped = asyncio.create_task(starting), asyncio.create_task(stops.acquire())
    try:
        await asyncio.wait([start, stopped], return_when=asyncio.FIRST_COMPLETED)
        if start.done():
            await start
            return not stopped.done()
        return False
    finally:
        for task in (start, stopped):
            task.cancel()
        await asyncio.wait([start, stopped])
