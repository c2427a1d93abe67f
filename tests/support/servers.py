"""Real servers for tests: on loopback, at a free port, in a folder of their own."""

from __future__ import annotations

import atexit
import functools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.support import requires

_POSTGRESQL = Path("/usr/lib/postgresql")  # where Debian keeps what is not in the path
_USER = "imgsvc"
_START_SECONDS = 180


@contextmanager
def postgresql(*, fsync: bool = False) -> Iterator[str]:
    """URL of a PostgreSQL server whose user may make databases."""
    with restartable_postgresql(fsync=fsync) as (url, _):
        yield url


@contextmanager
def restartable_postgresql(*, fsync: bool = False) -> Iterator[tuple[str, Callable[[], None]]]:
    """URL of a PostgreSQL server, and what ends it without warning and starts it again.

    With ``fsync`` it waits for the disk, as it does where it is used.
    """
    postgres = _postgresql("postgres")
    with _folder() as folder, free_port() as port:
        data, who = folder / "data", _unprivileged(folder)
        subprocess.run(["cp", "--archive", _new_cluster() / "data", data], check=True)
        options = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "fsync": "on" if fsync else "off",
        }
        start = [postgres, "-D", data, *(f"--{name}={value}" for name, value in options.items())]
        ask = [_postgresql("pg_isready"), "--host", "127.0.0.1", "--port", str(port)]

        def ready() -> bool:
            return subprocess.run(ask, capture_output=True, check=False).returncode == 0

        with ExitStack() as stack:

            def run() -> None:
                stack.close()
                # Of the three ways to end PostgreSQL, the one that drops every connection and recovers later.
                stack.enter_context(
                    _running(start, ready, signal.SIGQUIT, cwd=folder, env=_environment(), **who)
                )

            run()
            yield f"postgresql://{_USER}@127.0.0.1:{port}/postgres", run


@contextmanager
def redis() -> Iterator[str]:
    """URL of a Redis server that keeps nothing."""
    server = requires.program("redis-server", "valkey-server")
    with _folder() as folder, free_port() as port:
        start = [server, "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
        with _running(start, _listening(port), signal.SIGTERM, cwd=folder):
            yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def haproxy(configuration: str, port: int) -> Iterator[None]:
    """HAProxy with the text of a configuration, in which it listens at a port."""
    program = requires.program("haproxy", "/usr/sbin/haproxy")
    with _folder() as folder:
        (folder / "haproxy.cfg").write_text(configuration)
        start = [program, "-db", "-f", folder / "haproxy.cfg"]
        with _running(start, _listening(port), signal.SIGTERM, cwd=folder):
            yield


@functools.cache
def _new_cluster() -> Path:
    """A folder with the files of an empty PostgreSQL, which are copied in less time than they are made."""
    folder = Path(tempfile.mkdtemp(prefix="imgsvc-cluster-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make = [_postgresql("initdb"), "--pgdata", f"{folder}/data", "--username", _USER, "--auth", "trust"]
    options: dict[str, Any] = {"cwd": folder, "env": _environment(), **_unprivileged(folder)}
    subprocess.run([*make, "--no-sync"], check=True, capture_output=True, **options)
    return folder


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C.UTF-8"}


def _postgresql(name: str) -> str:
    found = max(_POSTGRESQL.glob(f"*/bin/{name}"), key=lambda path: path.parts[-3].zfill(3), default=None)
    return str(found) if found else requires.program(name)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="imgsvc-server-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def free_ports(count: int) -> Iterator[list[int]]:
    """Ports of loopback for servers that start within the block: the system gives them to no other process.

    A server may listen at one, as servers set ``SO_REUSEADDR``. Until then connections are refused.
    """
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in held:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.bind(("127.0.0.1", 0))
        yield [each.getsockname()[1] for each in held]


@contextmanager
def free_port() -> Iterator[int]:
    """One such port."""
    with free_ports(1) as (port,):
        yield port


def _unprivileged(folder: Path) -> dict[str, Any]:
    """Arguments that run a program as another user where we are root, which PostgreSQL refuses."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = "postgres" if "postgres" in names else "nobody"
    shutil.chown(folder, user)
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


@contextmanager
def _running(
    command: list[Any], ready: Callable[[], bool], end: signal.Signals, **options: Any
) -> Iterator[None]:
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, **options)
        try:
            _wait_for(process, ready, log)
            yield
        finally:
            process.send_signal(end)
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(process: subprocess.Popen[bytes], ready: Callable[[], bool], log: Any) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if ready():
            return
        time.sleep(0.05)
    log.seek(0)
    raise AssertionError(f"The server did not start: {log.read().decode(errors='replace')}")


def _listening(port: int) -> Callable[[], bool]:
    """Whether somebody listens at a port."""

    def ready() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=10).close()
        except OSError:
            return False
        return True

    return ready
