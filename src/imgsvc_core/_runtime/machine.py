"""The cores and the memory that the machine, and the control groups of a container, leave to this process.

The files of control groups have two versions. The limits of a group apply to all groups below it.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from imgsvc_core._runtime.records import frozen

_NONE = 1 << 60  # version 1 writes the largest number of pages for no limit
_OWN_BYTES = 2**28  # bytes of the process that has a pool
_USUAL_BYTES = 2**29  # enough for a worker to make most pictures
_LEAST_BYTES = 2**28  # a worker can hardly start with less
# Names of the files of a limit: one file with quota and period, or one file for each.
_CPU_FILES = (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
_MEMORY_FILES = ("memory.max", "memory.high", "memory.limit_in_bytes")
_OOM_KILL_FILES = ("memory.events", "memory.oom_control")


@frozen(kw_only=True)
class PoolSize:
    """The size of a pool: the usual and the largest number of workers, and the memory of each."""

    workers: int
    most: int
    memory_bytes: int | None


@frozen(kw_only=True)
class Machine:
    """The cores and the memory of this process.

    Attributes:
        cpus: the CPUs that this process may run on.
        cpu_quota: the number of CPUs that a control group allows to be busy at a time.
        memory_bytes: the memory of the machine.
        memory_limit_bytes: the memory that a control group allows, if that is less.
    """

    cpus: int
    cpu_quota: float | None
    memory_bytes: int
    memory_limit_bytes: int | None

    @property
    def cores(self) -> int:
        """Return how many processes can be busy. A part of a core counts as one, to use the whole quota."""
        return self.cpus if self.cpu_quota is None else max(1, min(self.cpus, math.ceil(self.cpu_quota)))

    def pool(
        self,
        workers: int | None = None,
        memory_bytes: int | None = None,
        *,
        reserved: int = _OWN_BYTES,
        extra: bool = False,
    ) -> PoolSize:
        """Return the size of a pool. Under a memory limit, its workers together never need more than the
        limit.

        Args:
            workers: the usual number of workers; by default one for each core, as far as the memory
                suffices.
            memory_bytes: the most memory that a worker gets.
            reserved: the memory for everything else.
            extra: whether twice as many may work at times, as far as the memory suffices.
        """
        wanted = workers or self.cores
        most = 2 * wanted if extra else wanted
        if self.memory_limit_bytes is None:
            return PoolSize(workers=wanted, most=most, memory_bytes=memory_bytes)
        left = max(0, self.memory_limit_bytes - reserved)
        room = max(1, left // min(_USUAL_BYTES, memory_bytes or _USUAL_BYTES))
        if workers is None:
            wanted = min(wanted, room)
            most = 2 * wanted if extra else wanted
        most = max(wanted, min(most, room))
        each = max(_LEAST_BYTES, left // most)
        return PoolSize(workers=wanted, most=most, memory_bytes=min(memory_bytes or each, each))


@functools.cache
def machine() -> Machine:
    """Return the cores and the memory of this process, as found by the first call."""
    return find_machine()


@functools.cache
def fewer_cores() -> int | None:
    """Return the cores of this process, if control groups leave fewer than there are CPUs."""
    cpus, quota = len(os.sched_getaffinity(0)), _least_quota(_groups(Path("/")))
    return None if quota is None or quota > cpus - 1 else max(1, math.ceil(quota))


def find_machine(root: Path = Path("/")) -> Machine:
    """Return the cores and the memory of this process.

    Args:
        root: the folder that has ``proc/self/cgroup`` and ``sys/fs/cgroup``.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    groups = tuple(_groups(root))
    limits = [limit for group in groups if (limit := _memory_limit(group)) is not None and limit < memory]
    return Machine(
        cpus=len(os.sched_getaffinity(0)),
        cpu_quota=_least_quota(groups),
        memory_bytes=memory,
        memory_limit_bytes=min(limits, default=None),
    )


def oom_kills(root: Path = Path("/")) -> int:
    """Return how many processes of this control group the kernel has killed so far for lack of memory."""
    for group in _groups(root):
        for name in _OOM_KILL_FILES:
            words = _words(group / name)
            if "oom_kill" in words[:-1]:
                return int(words[words.index("oom_kill") + 1])
    words = _words(root / "proc/vmstat")  # outside of any group: the numbers of the machine
    return int(words[words.index("oom_kill") + 1]) if "oom_kill" in words[:-1] else 0


def _groups(root: Path) -> Iterator[Path]:
    """Yield the folders of the control groups of this process, from the innermost to the outermost."""
    base = root / "sys/fs/cgroup"
    for line in filter(None, _lines(root / "proc/self/cgroup")):
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",") if controllers else ["", "unified"]
        for top in dict.fromkeys(base / name for name in (controllers, *names)):
            parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..")]
            # If a container sees only its own groups, the path may still belong to the machine.
            while parts and not top.joinpath(*parts).is_dir():
                del parts[0]
            for count in range(len(parts), -1, -1):
                yield top.joinpath(*parts[:count])


def _least_quota(groups: Iterable[Path]) -> float | None:
    return min(filter(None, map(_cpu_quota, groups)), default=None)


def _cpu_quota(group: Path) -> float | None:
    for names in _CPU_FILES:
        numbers = [word for name in names for word in _words(group / name)]
        if len(numbers) == 2 and all(map(str.isdigit, numbers)) and int(numbers[1]):
            return int(numbers[0]) / int(numbers[1])
    return None


def _memory_limit(group: Path) -> int | None:
    found = [int(word) for name in _MEMORY_FILES for word in _words(group / name)[:1] if word.isdigit()]
    return min((limit for limit in found if 0 < limit < _NONE), default=None)


def _words(file: Path) -> list[str]:
    return " ".join(_lines(file)).split()


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
