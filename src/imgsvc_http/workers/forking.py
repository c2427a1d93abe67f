"""The fork server of the service. Little is imported here, so that the command begins it first."""

from __future__ import annotations

from pathlib import Path

from imgsvc_core._runtime.forkserver import Forkserver

_TASKS = "imgsvc_http.workers.tasks"
_UMASK = 0o077  # files that workers write are their owner's alone


def begin_forkserver(memory_bytes: int | None, scratch: Path | None = None) -> Forkserver:
    """Begin the process that forks workers for the tasks of the service. See `Forkserver.begin`."""
    return Forkserver.begin(memory_bytes, scratch, umask=_UMASK, modules=[_TASKS])
