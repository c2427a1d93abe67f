"""How long each phase of a request takes, noted where the phase is and read where the request ends."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar

PHASES = ("receive", "fetch", "queue", "decode", "process", "encode", "store")
"""All phases, in the order of a request's way."""

Phases = dict[str, float]
"""Seconds by phase."""

_current: ContextVar[Phases] = ContextVar("phases")


def begin_phases() -> Phases:
    """Return what the phases of the current task, and of tasks that it starts, will be noted in."""
    phases: Phases = {}
    _current.set(phases)
    return phases


def note_phase(name: str, seconds: float) -> None:
    """Add to the time of a phase, if it belongs to a request."""
    if (phases := _current.get(None)) is not None:
        phases[name] = phases.get(name, 0.0) + seconds


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Note how long a block takes, also if it fails."""
    started = time.perf_counter()
    try:
        yield
    finally:
        note_phase(name, time.perf_counter() - started)
