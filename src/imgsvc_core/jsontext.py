"""JSON as text, read strictly."""

from __future__ import annotations

from collections import Counter
from typing import Any


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members, for ``object_pairs_hook``; `ValueError` where a key is there twice."""
    document = dict(pairs)
    if len(document) < len(pairs):
        [(repeated, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key '{repeated[:60]}' stands there more than once")
    return document
