"""Text in the markup of Pango and the XML of fontconfig.

The module `html` does the same, but first loads the names of two thousand characters.
"""

_REFERENCES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def escape(text: str) -> str:
    """Return text that stands for itself between tags and in attributes."""
    return text.translate(_REFERENCES)
