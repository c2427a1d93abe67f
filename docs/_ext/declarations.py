"""Sphinx extension: a line ``<!-- table: NAME -->`` in a page becomes that table of `tables`."""

from __future__ import annotations

import re
from typing import Any

import tables
from sphinx.application import Sphinx

_PLACEHOLDER = re.compile(r"^<!-- table: (\w+) -->$", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True}


def _fill(_app: Sphinx, _page: str, source: list[str]) -> None:
    source[0] = fill(source[0])


def fill(text: str) -> str:
    """The text with every placeholder replaced; an unknown name is a `KeyError`."""
    return _PLACEHOLDER.sub(lambda match: tables.TABLES[match[1]](), text)
