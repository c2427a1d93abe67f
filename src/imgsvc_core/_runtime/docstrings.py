"""Docstrings that explain every field of a class, made from the declarations of the fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

_WIDTH = 100
_T = TypeVar("_T", bound=type)


class Docstring:
    """The docstring of a class that ends with the meaning of each argument of the constructor.

    It is composed when it is read, because that takes as long as making the class.
    """

    def __init__(self, text: str | None, meanings: Callable[[], Mapping[str, str]]) -> None:
        self.text = text
        self._meanings = meanings

    def __get__(self, instance: object, owner: type) -> str:
        import textwrap

        text = inspect.cleandoc(self.text or "")
        lines = [
            textwrap.fill(f"{name}: {meaning}", _WIDTH, initial_indent="    ", subsequent_indent="        ")
            for name, meaning in self._meanings().items()
        ]
        return "\n".join([text, "", "Args:", *lines]) if lines else text


def explain_arguments(cls: type, meanings: Callable[[], Mapping[str, str]]) -> None:
    """Extend the docstring of a class by the meanings of its constructor's arguments."""
    explained: Any = Docstring(cls.__doc__, meanings)
    cls.__doc__ = explained


def own_docstring(cls: type) -> str:
    """Return the docstring of a class as it is written in its source."""
    found = vars(cls).get("__doc__")
    return (found.text if isinstance(found, Docstring) else found) or ""


def documented(cls: _T) -> _T:
    """Extend the docstring of an attrs class by the ``doc`` and ``unit`` of its fields' metadata."""

    def meanings() -> dict[str, str]:
        fields = {field.name: field.metadata for field in attrs.fields(cls)}
        return {
            name: known["doc"] + (f" [{known['unit']}]" if "unit" in known else "")
            for name, known in fields.items()
        }

    explain_arguments(cls, meanings)
    return cls
