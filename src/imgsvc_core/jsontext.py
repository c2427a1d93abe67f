"""JSON as text, read strictly."""

from __future__ import annotations

from collections import Counter
from typing import Any

_MOST_LEVELS = 100


def check_depth(document: Any) -> None:
    """Raise `ValueError` for values within values within values that nothing could work on level by level."""
    level = [document] if isinstance(document, dict | list) else []
    for _ in range(_MOST_LEVELS):
        inner = (item.values() if isinstance(item, dict) else item for item in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
        if not level:
            return
    raise ValueError(f"it is nested more than {_MOST_LEVELS} levels deep")


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members, for ``object_pairs_hook``; `ValueError` where a key is there twice."""
    document = dict(pairs)
    if len(document) < len(pairs):
        [(repeated, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key '{repeated[:60]}' stands there more than once")
    return document
