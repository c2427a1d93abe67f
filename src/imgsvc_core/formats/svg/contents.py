"""How much memory librsvg needs for the elements of an SVG, whatever its size.

The numbers are measured: `benchmarks.memory_bound` has a drawing for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from xml.parsers import expat

_ELEMENT = 4_000  # bytes of an element and the text in it, as two copies of the document may be there
_CHARACTER = 6_500  # bytes of a byte of text that is drawn: its layout
_PATH = 120  # bytes of a byte of a path or a style sheet
_MARKUP = 12  # bytes of any other byte
_INHERITED = 16  # bytes of a character of a long value, in each element that has or inherits it
_LONG = 64  # characters of a value; shorter ones are part of an element
_PATHS = ("d", "points")
_MARKERS = ("marker", "marker-start", "marker-mid", "marker-end")
_INHERITABLE = frozenset(
    [*_MARKERS, "fill", "stroke", "stroke-dasharray", "font", "font-family", "lang", "xml:lang"]
)
_MOST_NAME = 200  # characters of a name and the spaces around it
_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)")
_CSS_PARTS = re.compile(r"""[;{}]|"(?:\\.|[^"\\])*+"?|'(?:\\.|[^'\\])*+'?|[^;{}"']+""", re.DOTALL)


def content_bytes(markup: bytes) -> int:
    """Return the most bytes that a document needs, without its layers and the pictures inlined in it."""
    elements = paths = longest = inherited = 0
    texts: list[int] = []  # bytes of the text element around, and of the elements in it
    values: list[dict[str, int]] = [{}]  # long values of the elements around, by property
    sheets: list[str] = []
    styles = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal elements, paths, styles, inherited
        local = name.rpartition(":")[2]
        elements += 1
        paths += sum(len(attributes.get(key, "")) for key in _PATHS)
        own = dict(_long_values(attributes))
        values.append(values[-1] | own if own else values[-1])
        inherited += sum(values[-1].values())
        styles += styles > 0 or local == "style"
        if texts or local == "text":
            texts.append(0)

    def text(characters: str) -> None:
        nonlocal paths
        if texts:
            texts[-1] += len(characters.encode())
        elif styles:
            paths += len(characters)
            sheets.append(characters)

    def end(name: str) -> None:
        nonlocal longest, styles
        values.pop()
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
    inherited += elements * sum(dict(_long_declarations("".join(sheets))).values())
    return (
        elements * _ELEMENT
        + longest * _CHARACTER
        + paths * _PATH
        + inherited * _INHERITED
        + len(markup) * _MARKUP
    )


def _long_values(attributes: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Yield the long values of an element that the elements in it inherit, by property."""
    for name, value in attributes.items():
        if len(value) > _LONG:
            if name in _INHERITABLE:
                yield name, len(value)
            elif name == "style":
                yield from _long_declarations(value)


def _long_declarations(style: str) -> Iterator[tuple[str, int]]:
    """Yield the properties of CSS that have long values, with the lengths, the longest of a property last."""
    found = [item for item in _declarations(_COMMENT.sub("", style)) if item[1] > _LONG]
    yield from sorted(found, key=lambda item: item[1])


def _declarations(style: str) -> Iterator[tuple[str, int]]:
    """Yield the declarations of properties that are inherited, with their lengths. Names may have escapes."""
    head, length = "", 0
    for part in (*_CSS_PARTS.findall(style), ";"):
        if part not in (";", "{", "}"):
            head = head if ":" in head else head[-_MOST_NAME:] + part
            length += len(part)
            continue
        name = head.partition(":")[0].strip().lower()
        if name in _INHERITABLE or "\\" in name or name.startswith("@import"):
            yield name, length
        head, length = "", 0
