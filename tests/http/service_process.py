"""The service as its users meet it: a process of its own, over TLS, on a free port."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import aiohttp
import attrs

from tests.support import forked_services
from tests.support.commands import run_command
from tests.support.forked_services import ForkedProcess
from tests.support.processes import leads_to, listeners_of, open_files

_START_SECONDS = 200
# Of a service that is forked. Tests wait less for webhooks.
_CONSTANTS = {
    "imgsvc_http.webhooks.engine._POLL_SECONDS": 0.2,
    "imgsvc_http.webhooks.takeover._LOOK_SECONDS": 1,
}

Process = subprocess.Popen[str] | ForkedProcess


@attrs.frozen
class Service:
    """A running service: where it is, its first key, what it printed, and the files of its state folder."""

    url: str
    key: str
    state: Path
    command: str
    process: Process
    greeting: str = ""

    @property
    def certificate(self) -> Path:
        """What clients have to trust."""
        return self.state / "localhost.pem"

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.certificate)

    def client(
        self, *, key: str | None = None, headers: Mapping[str, str] | None = None
    ) -> aiohttp.ClientSession:
        """A client with a key, its own first one by default; with an empty one it has none."""
        key = self.key if key is None else key
        return aiohttp.ClientSession(
            self.url,
            connector=aiohttp.TCPConnector(ssl=self.tls),
            headers={**({"Authorization": f"Bearer {key}"} if key else {}), **(headers or {})},
        )

    def imgsvc(self, *arguments: str, environment: Mapping[str, str] = os.environ) -> str:
        """What the command prints, working on the service's state."""
        environment = {**environment, "IMGSVC_SERVER_STATE_FOLDER": str(self.state)}
        return run_command(*arguments, environment=environment)

    def new_key(self, company: str = "Other") -> str:
        """A key of a new account."""
        account = json.loads(self.imgsvc("accounts", "create", company, "--json"))["id"]
        secret: str = json.loads(self.imgsvc("keys", "create", account, "--json"))["secret"]
        return secret

    def leftovers(self) -> list[Path]:
        """Sources that lie about although no request is being worked on."""
        return [*(self.state / "incoming").iterdir(), *self.in_memory()]

    def in_memory(self) -> list[Path]:
        """Sources that lie in memory."""
        if self.process.poll() is not None:
            return []
        opened = [path for pid in listeners_of(self.process.pid) for path in open_files(pid)]
        return [path for path in opened if leads_to(path).startswith("/memfd:source")]


@contextlib.contextmanager
def running(
    state: Path, settings: Mapping[str, object] | None = None, *, config: Path | None = None
) -> Iterator[Service]:
    """A service with its state in a folder; ended gently, which has to work."""
    process = start(state, settings, config=config)
    try:
        yield await_start(process, state)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=180) == 0
    finally:
        process.kill()
        process.communicate()


def start(
    state: Path,
    settings: Mapping[str, object] | None = None,
    *,
    sources: Path | None = None,
    config: Path | None = None,
    within: Sequence[str] = (),
    constants: Mapping[str, float] | None = None,
    verbose: bool = False,
) -> Process:
    """Start the command that serves, of the installed packages or of those in a folder.

    ``config`` is a settings file, and ``within`` a command that runs it. Without ``sources`` and ``within``
    the process is forked from one that has loaded the packages, and ``constants`` of it can be replaced.
    """
    values: dict[str, object] = {"server.port": 0, "server.state_folder": state}
    values |= {"workers.number": 1, "workers.queue_seconds": 60}  # machines that run tests may be busy
    values |= settings or {}
    flags = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
    flags += [] if config is None else ["--config", str(config)]
    flags += ["--verbose"] if verbose else []
    log = state.parent / f"{state.name}.log"
    if sources is None and not within and forked_services.loads_the_same():
        return forked_services.start(["serve", *flags], log, {**_CONSTANTS, **(constants or {})})
    assert not constants
    return subprocess.Popen(
        [*within, sys.executable, "-m", "imgsvc_cli", "serve", *flags],
        stdout=subprocess.PIPE,
        stderr=log.open("a"),
        text=True,
        env={**os.environ, **({"PYTHONPATH": str(sources)} if sources else {})},
    )


def ended(log: Path, *arguments: str) -> tuple[int, str]:
    """The exit code of ``imgsvc serve`` with arguments that keep it from starting, and what it says."""
    process = forked_services.start(["serve", "--port", "0", *arguments], log)
    try:
        return process.wait(timeout=60), log.read_text()
    finally:
        process.kill()
        process.communicate()


def await_start(process: Process, state: Path, key: str = "") -> Service:
    """The service, once it has told where it is; ``key`` is one from an earlier run."""
    assert process.stdout is not None
    lines: list[str] = []
    deadline = time.monotonic() + _START_SECONDS
    while not any("curl" in line for line in lines):
        line = process.stdout.readline()
        if not line or time.monotonic() > deadline:
            log = (state.parent / f"{state.name}.log").read_text()
            raise AssertionError(f"the service did not start: {''.join(lines)}{log}")
        lines.append(line)
    text = "".join(lines)
    found = re.search(r"isk_[\w-]+", text)
    url = re.search(r"https://\S+:\d+", text)
    command = next(line.strip() for line in lines if line.strip().startswith("curl"))
    assert url is not None
    return Service(url[0], found[0] if found else key, state, command, process, text)
