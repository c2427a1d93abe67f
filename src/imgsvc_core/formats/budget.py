"""The best quality that fits into a number of bytes."""

from __future__ import annotations

from collections.abc import Callable

from imgsvc_core.errors import BudgetUnreachable


def best_fitting(encode: Callable[[int], bytes], highest: int, max_bytes: int) -> tuple[bytes, int]:
    """Return the encoding of at most ``max_bytes`` bytes with the highest quality, and that quality.

    A binary search: about seven encodings. `BudgetUnreachable` where not even quality 1 fits.
    """
    best = encode(highest)
    if len(best) <= max_bytes:
        return best, highest
    smallest = encode(1)
    if len(smallest) > max_bytes:
        raise unreachable(len(smallest), max_bytes)
    best, quality, too_large = smallest, 1, highest
    while too_large - quality > 1:
        middle = (quality + too_large) // 2
        encoded = encode(middle)
        if len(encoded) <= max_bytes:
            best, quality = encoded, middle
        else:
            too_large = middle
    return best, quality


def unreachable(smallest: int, max_bytes: int) -> BudgetUnreachable:
    """Return the error that says how small the picture gets."""
    return BudgetUnreachable(
        f"The picture does not fit into {max_bytes} bytes: the smallest it gets is {smallest} bytes.",
        smallest=smallest,
    )
