"""The size of JSON in keys and values, found without parsing it."""

from __future__ import annotations

from imgsvc_core._runtime.jsontext import STRING


def check_values(text: str, most: int) -> None:
    """Raise `ValueError` if valid JSON has more than ``most`` keys and values.

    The text is not parsed, because parsing would block other threads. Empty arrays and objects count twice.
    """
    if _marks(text, 0, len(text)) <= most:
        return
    seen = end = 0
    for string in STRING.finditer(text):
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
