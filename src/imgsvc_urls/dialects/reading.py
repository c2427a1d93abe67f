"""Values in URLs and settings of dialects."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.plan.encoding import accept_weights
from imgsvc_core.spec.kinds import Kind, Matching
from imgsvc_urls.errors import DialectError

_MALFORMED = re.compile("%(?![0-9A-Fa-f]{2})")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})")


@attrs.frozen
class Array(Kind):
    """An array of values of a kind, which ``words`` describe. ``one`` allows a single string.

    ``least`` is the smallest number of items.
    """

    kind: Kind
    words: str
    one: bool = False
    least: int = 0

    @property
    def expectation(self) -> str:
        return f"array of {self.words}" + (", or one of them" if self.one else "")

    def parse(self, value: object) -> tuple[Any, ...]:
        if self.one and isinstance(value, str):
            value = [value]
        if not isinstance(value, list | tuple) or len(value) < self.least:
            raise ValueError(value)
        return tuple(map(self.kind.parse, value))

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.kind.schema()}


def texts(pattern: str, words: str, **how: Any) -> Array:
    """Return the kind of arrays of strings that match a pattern, which may be empty strings."""
    return Array(Matching(pattern, words, optional=re.fullmatch(pattern, "") is not None), words, **how)


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


WRONG_SIGNATURE = "The signature of the URL is wrong: sign the URL again, and send it without changes."


def is_one_of(got: str, signatures: Iterable[str]) -> bool:
    """Return True if a text is one of some signatures. Takes constant time for each."""
    given = got.encode("utf-8", "surrogatepass")
    found = [hmac.compare_digest(signature.encode(), given) for signature in signatures]
    return any(found)


def accepted_formats(
    accept: str, formats: Mapping[str, bool], types: Mapping[str, Sequence[str]] | None = None
) -> tuple[str, ...]:
    """Return the formats that an ``Accept`` header names and wants, of those that may be chosen by it.

    Args:
        accept: the header.
        formats: the formats in the order of preference, and whether each may be chosen.
        types: the media types of which the header must name one, for formats with others than their own.

    >>> accepted_formats("image/avif;q=0,image/webp,image/*", {"avif": True, "webp": True})
    ('webp',)
    """
    weights = accept_weights(accept)
    return tuple(
        name
        for name, wanted in formats.items()
        if wanted and any(map(weights.get, (types or {}).get(name, [f"image/{name}"])))
    )


def preferred_format(accept: str, names: Sequence[str]) -> str | None:
    """Return the format that a client wants most, or `None` if its ``Accept`` header names none of them."""
    weights = accept_weights(accept)
    wanted = [name for name in names if weights.get(f"image/{name}")]
    return max(wanted, key=lambda name: weights[f"image/{name}"]) if wanted else None


def decoded(text: str, status: int = 400) -> str:
    """Return a text without its percent-encoding. Bytes that are not UTF-8 are an error with a status."""
    try:
        return unquote(text, errors="strict") if "%" in text else text
    except UnicodeDecodeError:
        message = f"The URL must be percent-encoded UTF-8, got {shown(text)}."
        raise DialectError(message, status=status) from None


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
