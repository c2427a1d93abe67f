"""Run the examples of the documentation: Python, commands, and JavaScript.

Each page has a folder of its own with the example pictures. Blocks of a page share their variables, as if a
reader typed them one after the other.

- ``python`` blocks run as they are; those with ``>>>`` are compared with the output shown.
- ``console`` blocks run in bash. Output that is shown is compared; ``...`` stands for anything.
- ``javascript`` blocks run in Node.
- ``% skip: next`` before a block leaves it out.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from doctest import ELLIPSIS
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sybil import Example, Sybil
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser, SkipParser
from tests.support import requires
from tests.support.servers import free_ports, postgresql, redis

PICTURES = Path(__file__).parent.parent / "examples" / "pictures"
PORTS = ("8443", "8444", "9000", "8000")
"""Ports that pages name; free ones take their places."""
SERVERS = {"5432": postgresql, "6379": redis}
ENDLESS = {"imgsvc serve": "Serving at", "imgsvc playground": "Press Ctrl-C"}
"""Commands that a reader ends with Ctrl-C, and what they print as soon as they answer."""
END = "-- the command has ended:"
KILLED = re.compile(r"bash: line \d+: +\d+ Killed ")
"""What bash tells of `kill -9`: before the next command, or the one after it from bash 5.3 on."""
COMMAND = re.compile(r".*<<('?)(\w+)\1\n(?s:.*?)\n\2$|(?:.*\\\n)*.*", re.MULTILINE)
"""A command with a text of several lines, or one whose lines but the last end in a backslash."""


def replaced(text: str, ports: Mapping[str, str]) -> str:
    """Exchange ports all at once: the digits of one may stand inside another."""
    return re.sub(rf"\b({'|'.join(ports)})\b", lambda match: ports[match[0]], text)


class Terminal:
    """A bash that keeps its variables from one command to the next."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers = ExitStack()
        ports = self.servers.enter_context(free_ports(len(PORTS)))
        self.ports = dict(zip(PORTS, map(str, ports), strict=True))
        self.environment = os.environ | {
            "BROWSER": "true",
            "HOME": str(folder),
            "IMGSVC_SERVER_PORT": self.ports["8443"],
            "NO_COLOR": "1",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin",
            "XDG_STATE_HOME": "",
        }
        self.endless: list[subprocess.Popen[bytes]] = []
        self.bash = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder, env=self.environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def run(self, command: str) -> str:
        """Return what the command prints."""
        for endless, answers in ENDLESS.items():
            if command.startswith(endless) and "&" not in command:
                return self.start(command, answers)
        if command.startswith("nginx "):
            requires.program("nginx", "/usr/sbin/nginx")
        assert self.bash.stdin
        assert self.bash.stdout
        self.start_servers(command)
        command = self.with_free_ports(command).replace("isk_...", self.api_key())
        print(f"{{ {command}\n}} </dev/null; echo '{END}' $?", file=self.bash.stdin, flush=True)
        output = ""
        for line in self.bash.stdout:
            if KILLED.match(line):
                continue
            text, end, status = line.partition(END)
            output += text
            if end:
                assert int(status) == 0, f"{command}\n{output}"
                return self.with_documented_ports(output)
        raise AssertionError(f"bash ended in: {command}\n{output}")

    def start(self, command: str, answers: str) -> str:
        """Start a service, as in another terminal, and wait until it answers."""
        log = self.folder / "serve.log"
        with log.open("wb") as file:
            process = subprocess.Popen(  # in place of the shell, so that its end is waited for
                f"exec {command}", shell=True, cwd=self.folder, env=self.environment,
                stdout=file, stderr=file, start_new_session=True,
            )  # fmt: skip
        self.endless.append(process)
        deadline = time.monotonic() + 60
        while answers not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        return self.with_documented_ports(log.read_text())

    def start_servers(self, command: str) -> None:
        """Start the database or the cache at the address that a command names first."""
        for documented, server in SERVERS.items():
            if f":{documented}/" in command and documented not in self.ports:
                url = self.servers.enter_context(server())
                self.ports[documented] = str(urlsplit(url).port)

    def api_key(self) -> str:
        log = self.folder / "serve.log"
        found = re.search(r"isk_\S+", log.read_text()) if log.exists() else None
        return found[0] if found else "isk_..."

    def with_free_ports(self, text: str) -> str:
        return replaced(text, self.ports)

    def with_documented_ports(self, text: str) -> str:
        return replaced(text, {free: documented for documented, free in self.ports.items()})

    def close(self) -> None:
        for process in (*self.endless, self.bash):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)
        self.servers.close()


def run_commands(example: Example) -> str | None:
    """Run the lines after ``$`` and compare what they print with the lines below them."""
    terminal = terminal_of(example.namespace)
    for block in re.split(r"^\$ ", example.parsed, flags=re.MULTILINE)[1:]:
        command = COMMAND.match(block)
        assert command
        expected = block[command.end() :].strip()
        output = terminal.run(command[0]).strip()
        pattern = re.escape(expected).replace(r"\.\.\.", ".*")
        if expected and not re.fullmatch(pattern, output, re.DOTALL):
            return f"expected:\n{expected}\nprinted:\n{output}"
    return None


def run_node(example: Example) -> str | None:
    """Run a module in Node."""
    node = requires.program("node")
    done = subprocess.run(
        [node, "--input-type=module", "-"], input=example.parsed, capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode else None


def terminal_of(namespace: dict[str, Any]) -> Terminal:
    if "terminal" not in namespace:
        namespace["terminal"] = Terminal(Path.cwd())
    terminal: Terminal = namespace["terminal"]
    return terminal


def setup(namespace: dict[str, Any]) -> None:
    namespace["before"], folder = Path.cwd(), tempfile.mkdtemp()
    shutil.copytree(PICTURES, folder, dirs_exist_ok=True)
    os.chdir(folder)


def teardown(namespace: dict[str, Any]) -> None:
    if "terminal" in namespace:
        namespace["terminal"].close()
    folder = Path.cwd()
    os.chdir(namespace["before"])
    shutil.rmtree(folder)


pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=ELLIPSIS),
        CodeBlockParser("console", run_commands),
        CodeBlockParser("javascript", run_node),
        SkipParser(),
    ],
    pattern="*.md",
    setup=setup,
    teardown=teardown,
).pytest()
