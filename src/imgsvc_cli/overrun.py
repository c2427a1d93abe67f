"""The end of a command whose decoder does not stop when the time is up."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import NoReturn

import click

from imgsvc_cli import outcome
from imgsvc_core.deadline import on_overrun
from imgsvc_core.errors import TimeLimitExceeded
from imgsvc_core.targets import remove_unfinished

_SHOW_CURSOR = "\r\x1b[K\x1b[?25h"


@contextlib.contextmanager
def end_on_overrun(tell: Callable[[TimeLimitExceeded], None]) -> Iterator[None]:
    """In the block, end this process with the exit code of the error, and no half file, once that is told."""

    def end(error: TimeLimitExceeded) -> NoReturn:
        try:
            remove_unfinished()
            if sys.stderr.isatty():
                click.echo(_SHOW_CURSOR, err=True, nl=False)
            tell(error)
        finally:
            os._exit(outcome.exit_code(error))

    on_overrun(end)
    try:
        yield
    finally:
        on_overrun(None)
