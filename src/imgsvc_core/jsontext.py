"""JSON as text, read strictly."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

_MOST_LEVELS = 100
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_ALIKE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


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
