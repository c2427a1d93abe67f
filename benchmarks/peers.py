"""The servers that the service is compared with, and the nginx that all of them fetch pictures from.

Each runs in a process group of its own, which ends with its block.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from benchmarks.installed import node_packages, thumbor

CORES = 2
_NGINX = """
daemon off;
worker_processes 1;
pid {working}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
  access_log off;
  sendfile on;
  keepalive_requests 1000000;
  server {{ listen 127.0.0.1:{port}; root {folder}; }}
}}
"""
_THUMBOR = """
SECURITY_KEY = "unused"
LOADER = "thumbor.loaders.http_loader"
STORAGE = "thumbor.storages.no_storage"
PROGRESSIVE_JPEG = False
"""
_IMGPROXY = {
    "IMGPROXY_ALLOW_LOOPBACK_SOURCE_ADDRESSES": "true",
    "IMGPROXY_LOG_LEVEL": "error",
    "IMGPROXY_MAX_ANIMATION_FRAMES": "500",
    "GOMAXPROCS": str(CORES),
}


@attrs.frozen
class Peer:
    """A server that runs: its address, and its process."""

    url: str
    pid: int


@contextlib.contextmanager
def serving_files(folder: Path, working: Path) -> Iterator[Peer]:
    """Serve the files of a folder by nginx (from Debian)."""
    port = free_port()
    configuration = working / "nginx.conf"
    configuration.write_text(_NGINX.format(folder=folder, working=working, port=port))
    with _running(["nginx", "-p", working, "-c", configuration], port) as peer:
        yield peer


@contextlib.contextmanager
def serving_ipx(origin: str) -> Iterator[Peer]:
    """Serve pictures of an origin by an ipx of two processes; needs node and npm."""
    port = free_port()
    program = Path(__file__).with_name("ipx.mjs")
    with _running(["node", program, node_packages(), origin, str(port)], port) as peer:
        yield peer


@contextlib.contextmanager
def serving_thumbor(working: Path) -> Iterator[Peer]:
    """Serve pictures of any origin by a thumbor of two processes."""
    port = free_port()
    configuration = working / "thumbor.conf"
    configuration.write_text(_THUMBOR)
    address = ["--ip", "127.0.0.1", "--port", str(port), "--processes", str(CORES), "--log-level", "error"]
    with _running([thumbor(), "--conf", configuration, *address], port) as peer:
        yield peer


@contextlib.contextmanager
def serving_imgproxy(program: Path, settings: Mapping[str, str] | None = None) -> Iterator[Peer]:
    """Serve pictures of any origin by an imgproxy, which no registry has: its program is given."""
    port = free_port()
    more = {"IMGPROXY_BIND": f"127.0.0.1:{port}", **(settings or {})}
    with _running([program], port, {**_IMGPROXY, **more}) as peer:
        yield peer


@contextlib.contextmanager
def serving_imagor(program: Path) -> Iterator[Peer]:
    """Serve pictures of any origin by an imagor, which no registry has: its program is given."""
    port = free_port()
    options = ["-imagor-unsafe", "-http-loader-block-loopback-networks=false"]
    with _running([program, "-port", str(port), *options], port, {"GOMAXPROCS": str(CORES)}) as peer:
        yield peer


@contextlib.contextmanager
def serving(command: Callable[[int], Sequence[str | Path]]) -> Iterator[Peer]:
    """Run a server that is told its port."""
    port = free_port()
    with _running(command(port), port) as peer:
        yield peer


@contextlib.contextmanager
def serving_bare(certificate: Path, key: Path, answer: Path) -> Iterator[Peer]:
    """Take uploads by `bare_service`."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.bare_service", str(port), certificate, key, answer]
    with _running(command, port) as peer:
        yield Peer(f"https://localhost:{port}", peer.pid)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def processes_of(pid: int) -> list[int]:
    """Return a process and all below it."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(folder.name)] = int(_fields(int(folder.name))[1])

    def below(process: int | None) -> bool:
        return process is not None and (process == pid or below(parents.get(process)))

    return [process for process in parents if below(process)]


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process took and all below it, those that ended among them."""
    ticks = 0
    for process in processes_of(pid):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, _fields(process)[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def own_cpu_seconds(process: int) -> float:
    """Return the CPU seconds that a process took itself."""
    return sum(map(int, _fields(process)[11:13])) / os.sysconf("SC_CLK_TCK")


def _fields(process: int) -> list[str]:
    """Return what /proc tells of a process, from its state on: see proc(5)."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


@contextlib.contextmanager
def _running(
    command: Sequence[str | Path], port: int, environment: Mapping[str, str] | None = None
) -> Iterator[Peer]:
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, env=os.environ | (environment or {}), stdout=log, stderr=log, start_new_session=True
        )
        try:
            if not _answers(port):
                log.seek(0)
                raise AssertionError(f"{command[0]} did not start: {log.read()}")
            yield Peer(f"http://127.0.0.1:{port}", process.pid)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _answers(port: int, seconds: float = 60) -> bool:
    """Wait until something listens at a port. Return False if nothing does within a time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        time.sleep(0.1)
    return False
