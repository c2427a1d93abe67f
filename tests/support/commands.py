"""The command, each time in a new process, which is forked from one that has loaded it already.

``python -m tests.support.commands`` is that process: it reads commands from standard input.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import NoReturn

_COMMANDS = (
    "accounts", "batch", "cache", "explain", "formats", "inspect", "keys", "presets", "process", "schema",
    "signing_keys", "url",
)  # fmt: skip
_STATE = (
    "accounts", "database", "encrypted", "failures", "keys", "migrating", "presets", "signing_keys", "vault",
)  # fmt: skip
_LOADED = (
    *(f"imgsvc_cli.commands.{name}" for name in _COMMANDS),
    *(f"imgsvc_http.state.{name}" for name in _STATE),
    "imgsvc_http.settings",
    "sqlalchemy.dialects.sqlite.pysqlite",
)
_one_at_a_time = threading.Lock()


def run_command(*arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Return what the command prints. Raise `subprocess.CalledProcessError` if it fails."""
    done = run(*arguments, environment=environment)
    done.check_returncode()
    return done.stdout.decode()


def run(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    stdin: bytes = b"",
) -> subprocess.CompletedProcess[bytes]:
    """Return the exit code of the command in a folder, and what it prints."""
    with tempfile.TemporaryDirectory() as own, _one_at_a_time:
        streams = [Path(own, name) for name in ("input", "output", "errors")]
        streams[0].write_bytes(stdin)
        process = _process()
        assert process.stdin is not None
        assert process.stdout is not None
        request = [arguments, str(folder or Path.cwd()), dict(environment or os.environ), *map(str, streams)]
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        return subprocess.CompletedProcess(
            arguments, code, *(path.read_bytes() if path.exists() else b"" for path in streams[1:])
        )


@functools.cache
def _process() -> subprocess.Popen[str]:
    """Return the process that forks. It ends with this one, whose end of the pipe closes then."""
    command = [sys.executable, "-m", "tests.support.commands"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _serve() -> None:
    for name in _LOADED:
        import_module(name)
    gc.collect()
    gc.freeze()
    gc.unfreeze = lambda: None  # before it imports, the command collects what came before
    for line in sys.stdin:
        arguments, folder, environment, *streams = json.loads(line)
        child = os.fork()
        if child == 0:
            _become_command(arguments, folder, environment, streams)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _become_command(
    arguments: list[str], folder: str, environment: dict[str, str], streams: list[str]
) -> NoReturn:
    from imgsvc_cli.__main__ import main

    for number, path in enumerate(streams):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
    take_over(arguments, folder, environment)
    code: object = 1
    try:
        main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def take_over(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Make arguments, folder and environment those of this process."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments


if __name__ == "__main__":
    _serve()
