"""One of the processes that listen, and what it shares with the others of its node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from imgsvc_http.gate.interprocess_counts import InterprocessCounts
from imgsvc_http.runtime.shared_memory import ChangeMark, SharedEvent, shared_numbers

if TYPE_CHECKING:
    from imgsvc_core._runtime.forkserver import Forkserver


@attrs.frozen(kw_only=True)
class NodeProcess:
    """One of the processes of a node that listen; by default the only one.

    Args:
        number: the number of the process. The first one also runs webhooks and deletes what has expired.
        processes: how many there are.
        is_supervised: True if a parent owns the state folder and replaces this process when it ends.
        first_start: False if the process replaces one that died, so that others may be at work.
        counts: request rates of all processes.
        counts_of_pictures: those of pictures by URL, whose windows have another length.
        changes: tells of what another process or a command changed and this one remembers otherwise.
        running: how many pictures the workers of each process work on.
        engine_wanted: set by a process that has a job for the engine of webhooks.
        forkserver: was begun before. Of several processes, each forks its own from it. Without it one is
            begun.
    """

    number: int = 0
    processes: int = 1
    is_supervised: bool = False
    first_start: bool = True
    counts: InterprocessCounts = attrs.field(factory=InterprocessCounts, repr=False)
    counts_of_pictures: InterprocessCounts = attrs.field(factory=InterprocessCounts, repr=False)
    changes: ChangeMark = attrs.field(factory=ChangeMark, repr=False)
    running: memoryview[int] = attrs.field(
        default=attrs.Factory(lambda process: shared_numbers(process.processes), takes_self=True), repr=False
    )
    engine_wanted: SharedEvent = attrs.field(factory=SharedEvent, repr=False)
    forkserver: Forkserver | None = attrs.field(default=None, repr=False)

    @property
    def has_duties(self) -> bool:
        """True for the one process that does what is done once for the whole service."""
        return self.number == 0

    def part_of(self, total: int) -> int:
        """Return this process's part of a number, which is at least 1."""
        return max(1, total // self.processes + (self.number < total % self.processes))
