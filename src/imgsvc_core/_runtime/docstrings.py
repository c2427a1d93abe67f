"""Docstrings that explain every field of a class, made from the declarations of the fields."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping
from typing import TypeVar

import attrs

_WIDTH = 100
_T = TypeVar("_T", bound=type)


def with_args(docstring: str | None, meanings: Mapping[str, str]) -> str:
    """Return a docstring followed by the meaning of each argument of the constructor."""
    text = inspect.cleandoc(docstring or "")
    lines = [
        textwrap.fill(f"{name}: {meaning}", _WIDTH, initial_indent="    ", subsequent_indent="        ")
        for name, meaning in meanings.items()
    ]
    return "\n".join([text, "", "Args:", *lines]) if lines else text


def documented(cls: _T) -> _T:
    """Extend the docstring of an attrs class by the ``doc`` and ``unit`` of its fields' metadata."""
    fields = {field.name: field.metadata for field in attrs.fields(cls)}
    meanings = {
        name: known["doc"] + (f" [{known['unit']}]" if "unit" in known else "")
        for name, known in fields.items()
    }
    cls.__doc__ = with_args(cls.__doc__, meanings)
    return cls
