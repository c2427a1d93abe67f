"""Honest comparisons: contenders take turns in one run, and bounds are on ratios, not on absolute times.

A contender runs its operation a number of times and tells the wall and CPU seconds itself, so that one may
live in another process. Rounds alternate between all contenders; a ratio is the median of the rounds' ratios,
so that a slow minute of the machine hits both sides.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import attrs


@attrs.frozen
class Timing:
    """Seconds per operation."""

    wall: float
    cpu: float


Contender: TypeAlias = Callable[[int], Timing]


@attrs.frozen
class Series:
    """What one contender took, round by round."""

    rounds: tuple[Timing, ...]

    @property
    def wall(self) -> float:
        """Median wall seconds per operation."""
        return statistics.median(timing.wall for timing in self.rounds)

    @property
    def cpu(self) -> float:
        """Median CPU seconds per operation, all threads."""
        return statistics.median(timing.cpu for timing in self.rounds)

    @property
    def spread(self) -> float:
        """Distance between the quartiles of the wall times, relative to the median."""
        lower, _, upper = statistics.quantiles([timing.wall for timing in self.rounds], n=4)
        return (upper - lower) / self.wall

    def times_faster_than(self, other: Series) -> float:
        """Median over the rounds of the other's wall time divided by this one's."""
        pairs = zip(self.rounds, other.rounds, strict=True)
        return statistics.median(theirs.wall / ours.wall for ours, theirs in pairs)

    def times_cheaper_than(self, other: Series) -> float:
        """The same of the CPU times, for operations so long that other programs get in between."""
        pairs = zip(self.rounds, other.rounds, strict=True)
        return statistics.median(theirs.cpu / ours.cpu for ours, theirs in pairs)


@attrs.frozen
class Bound:
    """A number that must not be missed."""

    what: str
    value: float
    limit: float
    at_least: bool = False
    unit: str = ""

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def options_of(
    description: str | None, *, page: bool = False, programs: Sequence[str] = (), **defaults: float
) -> argparse.Namespace:
    """Read what a benchmark takes: a page of the documentation, and as flags paths of programs and numbers.

    The variables of the environment with the names of the programs, in capitals, may have their paths, too.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if page:
        parser.add_argument("page", nargs="?", help="page of the documentation that gets the table")
    for name in programs:
        parser.add_argument(f"--{name}", type=Path, default=os.environ.get(name.upper()))
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"by default {default:,}")
    return parser.parse_args()


def timed(operation: Callable[[], object]) -> Contender:
    """A contender that runs in this process."""

    def run(repeats: int) -> Timing:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(repeats):
            operation()
        return Timing(wall=(time.perf_counter() - wall) / repeats, cpu=(time.process_time() - cpu) / repeats)

    return run


def compare(contenders: Mapping[str, Contender], *, rounds: int = 15, repeats: int = 5) -> dict[str, Series]:
    """Warm every contender up, then let them take turns; who begins changes from round to round."""
    names = list(contenders)
    for name in names:
        contenders[name](repeats)
    timings: dict[str, list[Timing]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            timings[name].append(contenders[name](repeats))
    return {name: Series(tuple(rows)) for name, rows in timings.items()}


def run_python(code: str, *arguments: str | Path) -> dict[str, Any]:
    """Run Python code in a fresh process; what it prints is JSON, and is given back.

    ``peak_memory`` is there for the code to call: see :func:`peak_memory`. Modules are compiled by the first
    process only, as in an installation.
    """
    prelude = "from benchmarks.harness import peak_memory\n"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return run_json([sys.executable, "-c", prelude + code, *map(str, arguments)], environment)


def run_json(command: Sequence[str], environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a command in a fresh process and give back the JSON that it prints."""
    answer: dict[str, Any] = json.loads(subprocess.check_output(command, env=environment, text=True))
    return answer


def run_timed(command: Sequence[str]) -> Callable[[int], Timing]:
    """A contender that starts a fresh process each time, with its start and end counted."""

    def run(repeats: int) -> Timing:
        wall, cpu = time.perf_counter(), _children_cpu()
        for _ in range(repeats):
            subprocess.check_output(command)
        return Timing(wall=(time.perf_counter() - wall) / repeats, cpu=(_children_cpu() - cpu) / repeats)

    return run


class Program:
    """A program that takes jobs and times them itself: one line of JSON for each on its input and output."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, repeats: int = 1, **request: Any) -> dict[str, float]:
        """Return the wall and CPU seconds per operation, and what else the program tells."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"repeats": repeats, **request}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, float] = json.loads(self._process.stdout.readline())
        return answer

    def timing(self, repeats: int, **request: Any) -> Timing:
        """Return the same as a timing."""
        answer = self.run(repeats, **request)
        return Timing(wall=answer["wall"], cpu=answer["cpu"])


@contextmanager
def running(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> Iterator[Program]:
    """Start a program that takes jobs, and end it on leaving."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        yield Program(process)
        assert process.stdin is not None
        process.stdin.close()


def stay_on_one_cpu() -> None:
    """Bind this process and those it starts to one CPU, the idlest: helper threads no longer come for free.

    libvips encodes in a thread of its own even where it computes in one, and so does sharp.
    """
    allowed = os.sched_getaffinity(0)
    before = _idle_ticks()
    time.sleep(0.3)
    after = _idle_ticks()
    os.sched_setaffinity(0, {max(allowed, key=lambda cpu: after[cpu] - before[cpu])})


def peak_memory() -> float:
    """Largest resident size of this process so far, in MB.

    Read from the process itself: what a parent gets from ``wait4`` can include the parent's own size at the
    time of the fork.
    """
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns aligned: the first to the left, the others to the right."""
    texts = [[_text(cell) for cell in row] for row in [columns, *rows]]
    widths = [max(len(row[column]) for row in texts) for column in range(len(columns))]
    for row in texts:
        first, *others = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join([first, *others]))
    print()


def write_table(
    page: str | None,
    marks: tuple[str, str],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    rules: Sequence[str] | None = None,
) -> None:
    """Replace what stands between the marks in a Markdown page, if there is one.

    ``rules`` align the columns. By default, all but the first two go to the right, as numbers do.
    """
    if not page:
        return
    begin, end = marks
    rules = rules or ["---", "---", *["---:"] * len(columns[2:])]
    before, _, rest = Path(page).read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    lines = "\n".join(f"| {' | '.join(line)} |" for line in [columns, rules, *rows])
    Path(page).write_text(f"{before}{begin}\n\n{lines}\n\n{end}{after}", encoding="utf-8")


def print_series(series: Mapping[str, Series], extra: Mapping[str, str] | None = None) -> None:
    """Median wall and CPU time of each contender, and its spread."""
    rows = [
        (
            name,
            f"{one.wall * 1e3:.2f}",
            f"{one.cpu * 1e3:.2f}",
            f"{one.spread:.0%}",
            (extra or {}).get(name, ""),
        )
        for name, one in series.items()
    ]
    print_table(("", "wall ms", "cpu ms", "spread", ""), rows)


def verdict(bounds: Sequence[Bound]) -> int:
    """Print each bound and whether it holds; the exit code of the benchmark."""
    rows = [
        (
            bound.what,
            f"{bound.value:.3g}{bound.unit}",
            f"{'>=' if bound.at_least else '<='} {bound.limit:.3g}{bound.unit}",
            "ok" if bound.met else "MISSED",
        )
        for bound in bounds
    ]
    print_table(("bound", "found", "limit", ""), rows)
    return 0 if all(bound.met for bound in bounds) else 1


def _idle_ticks() -> dict[int, int]:
    lines = Path("/proc/stat").read_text().splitlines()
    rows = (line.split() for line in lines if line.startswith("cpu") and line[3].isdigit())
    return {int(row[0][3:]): int(row[4]) for row in rows}


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _text(cell: object) -> str:
    return str(cell)
