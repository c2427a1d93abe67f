"""How long each phase of a request takes, noted where the phase is and read where the request ends."""

from __future__ import annotations

import time
from collections.abc import Mapping
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


def note_phases(milliseconds: Mapping[str, float]) -> None:
    """Add to the time of phases, if they belong to a request."""
    if (phases := _current.get(None)) is not None:
        for name, taken in milliseconds.items():
            phases[name] = phases.get(name, 0.0) + taken / 1000


class phase:  # noqa: N801 (a context manager, without a generator for each use)
    """Note how long a block takes, also if it fails."""

    __slots__ = ("_name", "_started")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        if (phases := _current.get(None)) is not None:
            taken = time.perf_counter() - self._started
            phases[self._name] = phases.get(self._name, 0.0) + taken
