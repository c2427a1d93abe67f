"""Escape text for XML, without the modules of networks that ``xml.sax.saxutils`` imports."""

from __future__ import annotations

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def escape_xml(text: str) -> str:
    """Return a text as it stands in an element, or between double quotes in an attribute."""
    return text.translate(_ESCAPED)
