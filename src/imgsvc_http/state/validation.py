"""Checks of values before they are kept."""

from __future__ import annotations

import unicodedata

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.errors import invalid
from imgsvc_core.spec.declaring import Kind


def check(title: str, name: str, kind: Kind, value: object) -> None:
    """Raise `SpecError`, with the sentence that all parameters have, unless a value is of a kind."""
    try:
        kind.parse(value)
    except ValueError:
        expected = f"{title} '{name}' parameter must be {kind.expectation}"
        raise invalid(name, expected, f"got {shown(value)}") from None


def check_text(title: str, name: str, value: str, *, maximum: int, minimum: int = 1) -> None:
    """Raise `SpecError` for a text of a wrong length, or with characters that cannot be printed.

    All spaces can, as can letters that Python does not know yet.
    """
    printable = all(letter.isprintable() or unicodedata.category(letter) in ("Zs", "Cn") for letter in value)
    if not minimum <= len(value) <= maximum or not printable:
        expected = f"{title} '{name}' parameter must be {minimum} to {maximum} printable characters"
        raise invalid(name, expected, f"got {shown(value)}")
