"""The command, each time in a new process, which is forked from one that has loaded it already."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support import forked_python
from tests.support.forked_python import take_over

__all__ = ["run", "run_command", "take_over"]


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
    process = forked_python.start(
        *forked_python.COMMAND, *arguments, environment=environment, folder=folder, stdin=stdin
    )
    process.wait()
    return subprocess.CompletedProcess(arguments, process.wait(), *process.printed())
