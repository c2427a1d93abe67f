"""What runs a batch needs of whoever does the work: processes, threads or a cluster."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from imgsvc_batch.events import Event
from imgsvc_batch.work import Task


class Hands(Protocol):
    """Whoever does the work.

    They take at most ``chunk`` inputs a task and ``in_flight`` inputs at a time, and work on ``parallel``
    tasks at the same time. Where they tell no ``culprit``, a task may fail for what another has done to its
    worker.
    """

    chunk: int
    parallel: int
    culprit: bool

    @property
    def in_flight(self) -> int:
        """How many inputs at a time."""

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[Event]]:
        """Work on some inputs; those that the answer says nothing of are to be submitted again."""

    def close(self) -> None:
        """End when all is done."""

    def stop(self) -> None:
        """End now."""
