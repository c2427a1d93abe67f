"""How often the cache had what was asked for."""

from __future__ import annotations

from collections import Counter
from typing import Literal, TypeAlias, get_args

CacheState: TypeAlias = Literal["hit", "miss", "stale", "revalidated"]
"""Where a picture came from.

- ``hit``: the cache had it, or another request made it meanwhile.
- ``miss``: it was made.
- ``stale``: it is not fresh, and its source is asked in the background or could not be asked.
- ``revalidated``: it was not fresh, and its source has not changed.
"""

STATES: tuple[CacheState, ...] = get_args(CacheState)
"""All states, in the order of documentation."""


class CacheStatistics:
    """Counts of one process."""

    def __init__(self) -> None:
        self.answers: Counter[CacheState] = Counter()
