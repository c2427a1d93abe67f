"""A progress display for work that takes longer than a second, on a terminal only."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from imgsvc_cli import printing

_DELAY = 1.0  # seconds, so that quick work shows nothing


@contextlib.contextmanager
def progress(text: str, *, done: int = 0, total: int = 1) -> Iterator[None]:
    """Show what is being processed in the block, once it has taken a second."""
    if not printing.on_terminal():
        yield
        return
    finished = threading.Event()
    thread = threading.Thread(target=_spin, args=(text, done, total, finished), daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def _spin(text: str, done: int, total: int, finished: threading.Event) -> None:
    if finished.wait(_DELAY):
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
    if total > 1:
        columns[2:2] = [BarColumn(), MofNCompleteColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        display.add_task(printing.line(text), completed=done, total=total)
        finished.wait()
