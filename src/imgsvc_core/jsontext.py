"""JSON as text, read strictly."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

_MOST_LEVELS = 100
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?')  # or its end would be sought again from each \"
_ALIKE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def check_values(text: str, most: int) -> None:
    """Raise `ValueError` for valid JSON with more keys and values than that, before any of them is made.

    Reading them would hold other threads up. Empty arrays and objects count twice.
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
    """How many characters begin or part keys and values."""
    return sum(text.count(mark, start, end) for mark in ",:[{")


def check_depth(text: str) -> None:
    """Raise `ValueError` for valid JSON with values within values that nothing could work on level by level.

    It takes no steps of Python for each value, as many would hold other threads up.
    """
    if text.count("[") + text.count("{") <= _MOST_LEVELS:
        return
    brackets = _STRING.sub("", text).encode().translate(_ALIKE, _NO_BRACKETS)
    for _ in range(_MOST_LEVELS):
        brackets = brackets.replace(b"[]", b"")
    if brackets:
        raise ValueError(f"it is nested more than {_MOST_LEVELS} levels deep")


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members, for ``object_pairs_hook``; `ValueError` where a key is there twice."""
    document = dict(pairs)
    if len(document) < len(pairs):
        [(repeated, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key '{repeated[:60]}' stands there more than once")
    return document
