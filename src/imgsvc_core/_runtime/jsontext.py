"""JSON as text: checks beside parsing, and values as messages quote them."""

from __future__ import annotations

import reprlib
from collections import Counter
from typing import Any

from imgsvc_core._runtime.patterns import pattern

SOMETHING = "something else"
"""The words in messages for a value that may be or hold a secret."""

STRING = pattern(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?')  # possessive: each character is read once
"""A string in JSON, with its quotes."""

_MAX_LEVELS = 100
_MAX_SHOWN = 60  # characters of a value in a message
_ONE_KIND_OF_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_REPR = reprlib.Repr()
_REPR.maxother = _REPR.maxstring = _MAX_SHOWN + 1


def check_depth(text: str) -> None:
    """Raise `ValueError` if valid JSON is nested so deeply that recursive code would fail.

    The values are not visited one by one, because that would block other threads.
    """
    if text.count("[") + text.count("{") <= _MAX_LEVELS:
        return
    brackets = STRING.sub("", text).encode().translate(_ONE_KIND_OF_BRACKETS, _NO_BRACKETS)
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
    import json  # few requests are wrong

    encoder = json.JSONEncoder(ensure_ascii=False, check_circular=False)
    text = ""
    try:
        for piece in encoder.iterencode(value):
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
