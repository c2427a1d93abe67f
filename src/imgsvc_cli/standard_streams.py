"""Standard input and output for pictures; a shell may have closed them."""

from __future__ import annotations

import sys
from typing import BinaryIO

import click

from imgsvc_core.errors import EmptySource, SourceError, TargetError


def opened(source: str) -> str | bytes:
    """Return a source as it is, or the bytes of standard input for ``-``.

    Raises:
        SourceError: standard input is closed or empty.
    """
    if source != "-":
        return source
    data = read_input()
    if not data:
        raise EmptySource("Standard input is empty; expected an encoded image.")
    return data


def read_input() -> bytes:
    """Return all bytes of standard input.

    Raises:
        SourceError: standard input is closed.
        UsageError: the command has read it already.
    """
    meta = click.get_current_context().meta
    if meta.setdefault(__name__, False):
        raise click.UsageError("Standard input can be read only once: name a file instead of one -.")
    meta[__name__] = True
    if sys.stdin is None:
        raise SourceError("Standard input is closed; redirect it, or name a file instead of -.")
    return sys.stdin.buffer.read()


def output() -> BinaryIO:
    """Return standard output for bytes.

    Raises:
        TargetError: standard output is closed.
    """
    if sys.stdout is None:
        raise TargetError("Standard output is closed; redirect it, or name a file instead of -.")
    return sys.stdout.buffer
