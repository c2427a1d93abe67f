"""Types of parameters that only stores have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

from imgsvc_core._runtime.records import frozen
from imgsvc_core.spec.kinds import Kind

Pairs = tuple[tuple[str, str], ...]
"""An object of strings, as a hashable value."""

_PRINTABLE = re.compile(r"[\x20-\x7e]+")
_DATE = {
    "type": ["string", "null"],
    "pattern": r"^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$",
}
_LONGEST_PATH = 1024  # bytes
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class ObjectPath(Kind):
    """The path of an object in its bucket. Leading slashes are dropped."""

    expectation = (
        f"path of at most {_LONGEST_PATH} bytes without control characters and without '.' or '..' in it"
    )

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or _CONTROL.search(value) or {".", ".."} & set(value.split("/")):
            raise ValueError(value)
        path = value.lstrip("/")
        if len(path.encode()) > _LONGEST_PATH:  # a lone surrogate is a ValueError of its own
            raise ValueError(value)
        return path

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": _LONGEST_PATH}


@frozen
class Strings(Kind):
    """An object of strings: at most ``maximum`` pairs, with names and values that match patterns.

    With ``any_case``, names that differ only in case are duplicates.
    """

    words: str
    names: str
    values: str
    maximum: int
    any_case: bool = False

    @property
    def expectation(self) -> str:
        return self.words

    def parse(self, value: object) -> Pairs:
        pairs = _pairs(value)
        for name, text in pairs:
            if not re.fullmatch(self.names, name) or not re.fullmatch(self.values, text):
                raise ValueError(value)
        names = {name.lower() if self.any_case else name for name, _ in pairs}
        if len(pairs) > self.maximum or len(names) < len(pairs):
            raise ValueError(value)
        return pairs

    def unparse(self, value: Pairs) -> dict[str, str]:
        return dict(value)

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "maxProperties": self.maximum,
            "propertyNames": {"pattern": f"^(?:{self.names})$"},
            "additionalProperties": {"type": ["string", "null"], "pattern": f"^(?:{self.values})$"},
        }


@frozen
class Headers(Kind):
    """HTTP headers of an object, of those that the provider allows. Names match in any case."""

    allowed: tuple[str, ...]

    @property
    def expectation(self) -> str:
        date = "; Expires is a date as in HTTP" if "Expires" in self.allowed else ""
        names = ", ".join(self.allowed)
        return f"object of printable ASCII strings without spaces around them, with names among {names}{date}"

    def parse(self, value: object) -> Pairs:
        canonical = {name.lower(): name for name in self.allowed}
        found: dict[str, str] = {}
        for name, text in _pairs(value):
            known = canonical.get(name.lower())
            if known is None or known in found or not _PRINTABLE.fullmatch(text) or len(text) > 1024:
                raise ValueError(value)
            if text != text.strip() or (known == "Expires" and not _is_date(text)):
                raise ValueError(value)
            found[known] = text
        return tuple(found.items())

    def unparse(self, value: Pairs) -> dict[str, str]:
        return dict(value)

    def schema(self) -> dict[str, Any]:
        text = {"type": ["string", "null"], "pattern": "^[\\x20-\\x7e]{1,1024}$"}
        return {
            "type": "object",
            "properties": {name: _DATE if name == "Expires" else text for name in self.allowed},
            "additionalProperties": False,
        }


def _is_date(text: str) -> bool:
    """Return True if it is an HTTP date (RFC 9110, section 5.6.7)."""
    try:
        return format_datetime(parsedate_to_datetime(text).astimezone(UTC), usegmt=True) == text
    except (OverflowError, TypeError, ValueError):
        return False


def _pairs(value: object) -> Pairs:
    if isinstance(value, Mapping):
        value = tuple((name, text) for name, text in value.items() if text is not None)
    pairs = value
    if not isinstance(pairs, tuple):
        raise ValueError(value)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise ValueError(value)
    return pairs
