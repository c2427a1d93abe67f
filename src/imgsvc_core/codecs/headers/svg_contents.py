"""How much memory librsvg needs for the elements of an SVG, whatever its size.

The numbers are measured: `benchmarks.memory_bound` has a drawing for each.
"""

from __future__ import annotations

from contextlib import suppress
from xml.parsers import expat

_ELEMENT = 4_000  # bytes of an element and the text in it, as two copies of the document may be there
_CHARACTER = 6_500  # bytes of a byte of text that is drawn: its layout
_PATH = 120  # bytes of a byte of a path or a style sheet
_MARKUP = 12  # bytes of any other byte
_PATHS = ("d", "points")


def content_bytes(markup: bytes) -> int:
    """Return the most bytes that a document needs, without its layers and the pictures inlined in it."""
    elements = paths = longest = 0
    texts: list[int] = []  # bytes of the text element around, and of the elements in it
    styles = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal elements, paths, styles
        local = name.rpartition(":")[2]
        elements += 1
        paths += sum(len(attributes.get(key, "")) for key in _PATHS)
        styles += styles > 0 or local == "style"
        if texts or local == "text":
            texts.append(0)

    def text(characters: str) -> None:
        nonlocal paths
        if texts:
            texts[-1] += len(characters.encode())
        elif styles:
            paths += len(characters)

    def end(name: str) -> None:
        nonlocal longest, styles
        styles -= styles > 0
        if texts:
            inside = texts.pop()
            if texts:
                texts[-1] += inside
            longest = max(longest, inside)

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    with suppress(expat.ExpatError, ValueError, LookupError):  # librsvg refuses what comes after damage, too
        parser.Parse(markup, True)
    return elements * _ELEMENT + longest * _CHARACTER + paths * _PATH + len(markup) * _MARKUP
