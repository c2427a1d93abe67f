"""What ``imgsvc batch`` shows of its plan, its progress and its end."""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from imgsvc_cli import printing
from imgsvc_core.sources import shown_url

if TYPE_CHECKING:
    from imgsvc_batch import Event, Progress, Summary

_LINE_SECONDS = 5.0
_SHOWN_KINDS = 5
_SHOWN_NOTES = 5
_GO_ON = "Interrupted: run the same command with --resume to go on where it stopped."


def show_plan(planned: Iterator[tuple[Any, bool]], as_json: bool) -> None:
    """Show the inputs, which of them would be processed, and why some would fail."""
    counts, problems = {True: 0, False: 0}, 0
    for item, wanted in planned:
        counts[wanted] += 1
        problems += bool(item.problem)
        if as_json:
            told = {"key": item.key, "bytes": item.size, "process": wanted}
            click.echo(json.dumps({**told, "problem": item.problem} if item.problem else told))
        elif wanted:
            printing.echo_line(f"{item.key} ({printing.size(item.size)})")
            if item.problem:
                printing.echo_line(f"{item.key}: {item.problem}", err=True)
    if not as_json:
        click.echo(f"{counts[True]:,} would be processed, {counts[False]:,} skipped.", err=True)
        if problems:
            click.echo(f"{problems:,} of them would fail.", err=True)


@contextlib.contextmanager
def display(
    as_json: bool, quiet: bool
) -> Iterator[tuple[Callable[[Event], None], Callable[[Progress], None]]]:
    """Show events and progress: as JSON, live on a terminal, or as lines of a log."""
    if as_json:
        yield lambda event: click.echo(json.dumps(attrs.asdict(event))), lambda _: None
    elif quiet:
        yield _tell_failure, lambda _: None
    elif printing.on_terminal():
        with _live() as show:
            yield _tell_failure, show
    else:
        yield _tell_failure, _lines()


def _tell_failure(event: Event) -> None:
    if event.outcome == "failed":
        printing.echo_line(f"{event.key}: {event.message}", err=True)


def _lines() -> Callable[[Progress], None]:
    last = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= _LINE_SECONDS:
            last = time.monotonic()
            click.echo(_status(progress), err=True)

    return show


@contextlib.contextmanager
def _live() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Display

    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.description}"))
    with Display(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("looking for pictures", total=None)

        def show(progress: Progress) -> None:
            settled = progress.done + progress.failed + progress.skipped
            total = progress.total if progress.listed else None
            bar.update(task, completed=settled, total=total, description=_status(progress))

        yield show


def _status(progress: Progress) -> str:
    settled = progress.done + progress.failed + progress.skipped
    known = f"{progress.total:,}" if progress.listed else f"{progress.total:,}+"
    parts = [f"{settled:,} of {known}", f"{progress.failed:,} failed", f"{progress.rate:.1f}/s"]
    if progress.remaining_seconds is not None:
        parts.append(f"{_time(progress.remaining_seconds)} left")
    if progress.bytes_in:
        parts.append(f"{printing.size(max(0, progress.bytes_in - progress.bytes_out))} saved")
    return ", ".join(parts)


def show_summary(summary: Summary, manifest: Path, as_json: bool, in_place: bool) -> None:
    """Show what a batch did, and the command that goes on or tells why inputs failed."""
    if as_json:
        click.echo(json.dumps({"summary": attrs.asdict(summary)}))
    else:
        before = f" ({summary.failed_before:,} of them failed before)" if summary.failed_before else ""
        replaced = f" ({summary.done - summary.kept:,} replaced, {summary.kept:,} left alone)"
        rate = f"{summary.rate:.1f} per second"
        click.echo(
            f"{summary.done:,} done{replaced if in_place else ''}, {summary.failed:,} failed, "
            f"{summary.skipped:,} skipped{before} in {_time(summary.seconds)} ({rate}); "
            f"{printing.size(summary.bytes_in)} became {printing.size(summary.bytes_out)}.",
            err=True,
        )
        if summary.passed_over:
            printing.echo_line(f"{_passed_over(summary)}.", err=True)
        for note, count in sorted(summary.notes.items(), key=lambda noted: -noted[1])[:_SHOWN_NOTES]:
            printing.echo_line(f"Note on {count:,}: {note}", err=True)
    if summary.interrupted:
        click.echo(_GO_ON, err=True)
    elif not as_json and summary.has_failures:
        why = f"Why: imgsvc batch report --manifest {shlex.quote(str(manifest))}"
        printing.echo_line(f"{why}; again: the same command with --retry.", err=True)


def nothing_found(sources: tuple[str, ...], summary: Summary) -> str:
    """Return the sentence for a batch without inputs, with what was passed over."""
    shown = shown_url(sources[0]) + (", ..." if len(sources) > 1 else "")
    why = f"; {_passed_over(summary)}" if summary.passed_over else ""
    return f"Source '{shown}' holds no pictures{why}."


def _passed_over(summary: Summary) -> str:
    """Return how many files of each kind were passed over, the most frequent kind first."""
    kinds = sorted(summary.passed_over.items(), key=lambda kind: (-kind[1], kind[0]))
    some = ", ".join(f"{number:,} {kind}" for kind, number in kinds[:_SHOWN_KINDS])
    more = ", ..." if len(kinds) > _SHOWN_KINDS else ""
    count = sum(summary.passed_over.values())
    files = "1 other file was" if count == 1 else f"{count:,} other files were"
    return f"{files} passed over: {some}{more}"


def _time(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds, 1), 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02}:{int(seconds):02}" if hours else f"{minutes}:{seconds:04.1f}"
