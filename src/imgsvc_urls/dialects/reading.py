"""Values in URLs and settings of dialects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import attrs

from imgsvc_core.plan.encoding import accept_weights
from imgsvc_core.spec.kinds import Kind

_MALFORMED = re.compile("%(?![0-9A-Fa-f]{2})")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})")


@attrs.frozen
class Texts(Kind):
    """An array of strings that match a pattern, which ``words`` describe. ``one`` allows a single string.

    ``least`` is the smallest number of items.
    """

    pattern: str
    words: str
    one: bool = False
    least: int = 0

    @property
    def expectation(self) -> str:
        return f"array of {self.words}" + (", or one of them" if self.one else "")

    def parse(self, value: object) -> tuple[str, ...]:
        if self.one and isinstance(value, str):
            value = [value]
        if not isinstance(value, list | tuple) or len(value) < self.least:
            raise ValueError(value)
        if not all(isinstance(item, str) and re.fullmatch(self.pattern, item) for item in value):
            raise ValueError(value)
        return tuple(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "pattern": f"^(?:{self.pattern})$"}}


@attrs.frozen
class Wholes(Kind):
    """An array of integers within a range."""

    minimum: int
    maximum: int

    @property
    def expectation(self) -> str:
        return f"array of integers within {self.minimum} to {self.maximum} range"

    def parse(self, value: object) -> tuple[int, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError(value)
        if not all(type(item) is int and self.minimum <= item <= self.maximum for item in value):
            raise ValueError(value)
        return tuple(value)

    def schema(self) -> dict[str, Any]:
        return {
            "type": "array",
            "items": {"type": "integer", "minimum": self.minimum, "maximum": self.maximum},
        }


@attrs.frozen
class TextTable(Kind):
    """An object of strings, kept as pairs."""

    expectation = "table of texts"

    def parse(self, value: object) -> tuple[tuple[str, str], ...]:
        pairs = tuple(value.items()) if isinstance(value, dict) else value
        if not isinstance(pairs, tuple) or not all(
            isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(item, str) for item in pair)
            for pair in pairs
        ):
            raise ValueError(value)
        return pairs

    def unparse(self, value: tuple[tuple[str, str], ...]) -> dict[str, str]:
        return dict(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"type": "string"}}


def accepted_formats(accept: str, formats: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the formats that an ``Accept`` header names and wants, of those that may be chosen by it.

    >>> accepted_formats("image/avif;q=0,image/webp,image/*", {"avif": True, "webp": True})
    ('webp',)
    """
    weights = accept_weights(accept)
    return tuple(name for name, wanted in formats.items() if wanted and weights.get(f"image/{name}"))


def decoded_if_possible(text: str) -> str:
    """Return a text without its percent-encoding, or as it is if that is malformed.

    >>> decoded_if_possible("100%.jpg"), decoded_if_possible("a%20b.jpg")
    ('100%.jpg', 'a b.jpg')
    """
    if _MALFORMED.search(text):
        return text
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def whole(text: str) -> int:
    """Return the integer that decimal digits spell; raise `ValueError` for anything else."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(text)
    return int(text)


def decimal(text: str) -> float:
    """Return the number that plain decimals spell, without exponents; raise `ValueError` for anything else.

    >>> decimal("-.5")
    -0.5
    """
    if not _DECIMAL.fullmatch(text):
        raise ValueError(text)
    return float(text)
