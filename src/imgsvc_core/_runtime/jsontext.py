"""JSON as text: checks that need no parsing, and values as messages quote them."""

from __future__ import annotations

import json
import re
import reprlib
from collections import Counter
from typing import Any

SOMETHING = "something else"
"""The words in messages for a value that may be or hold a secret."""

_MAX_LEVELS = 100
_MAX_SHOWN = 60  # characters of a value in a message
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?')  # possessive: each character is read once
_ONE_KIND_OF_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False)
_REPR = reprlib.Repr()
_REPR.maxother = _REPR.maxstring = _MAX_SHOWN + 1


def check_values(text: str, most: int) -> None:
    """Raise `ValueError` if valid JSON has more than ``most`` keys and values.

    The text is not parsed, because parsing would block other threads. Empty arrays and objects count twice.
    """
    if _marks(text, 0, len(text)) <= most:
        return
    seen = end = 0
    for string in _STRING.finditer(text):
        between = _marks(text, end, string.start())
        if end and not between:  # two strings side by side: valid JSON ends here
            return
        seen, end = seen + between, string.end()
        if seen > most:
            break
    if seen + _marks(text, end, len(text)) > most:
        raise ValueError(f"it has more than {most:,} keys and values")


def _marks(text: str, start: int, end: int) -> int:
    """Return the number of characters that begin or separate keys and values."""
    return sum(text.count(mark, start, end) for mark in ",:[{")


def check_depth(text: str) -> None:
    """Raise `ValueError` if valid JSON is nested so deeply that recursive code would fail.

    The values are not visited one by one, because that would block other threads.
    """
    if text.count("[") + text.count("{") <= _MAX_LEVELS:
        return
    brackets = _STRING.sub("", text).encode().translate(_ONE_KIND_OF_BRACKETS, _NO_BRACKETS)
    for _ in range(_MAX_LEVELS):
        brackets = brackets.replace(b"[]", b"")
    if brackets:
        raise ValueError(f"it is nested more than {_MAX_LEVELS} levels deep")


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object for ``object_pairs_hook``; raise `ValueError` if a key occurs twice."""
    document = dict(pairs)
    if len(document) < len(pairs):
        [(repeated, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key '{repeated[:60]}' occurs more than once")
    return document


def shown(value: object) -> str:
    """Return a value as JSON that is short enough for a message. Only the shown part of it is read."""
    text = ""
    try:
        for piece in _ENCODER.iterencode(value):
            text += piece
            if len(text) > _MAX_SHOWN:
                break
    except ValueError:  # Python refuses to write that many digits
        text += "an integer of thousands of digits"
    except TypeError:  # not a JSON value
        text = _REPR.repr(value)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def plain_number(value: Any) -> Any:
    """Return a number of numpy as a number of Python, and any other value as it is."""
    return value.item() if getattr(value, "shape", None) == () else value
