"""How many images of its own size librsvg holds at the same time to draw an SVG, at most.

Each group with an opacity, a mask, a clip, a filter, a blend mode or isolation is drawn apart, on a layer.
Nested groups have theirs at the same time, and a filter keeps each result that has a name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from xml.parsers import expat

import attrs

_IMAGES = 2
"""What a layer takes, in images of the size of the drawing: measured on up to 60 nested ones."""
_UNKNOWN = 500
"""Taken for documents that cannot be followed. libxml2 lets at most 256 elements be nested."""

_PROPERTIES = ("opacity", "filter", "mask", "clip-path", "isolation", "mix-blend-mode")
_NEUTRAL = ("1", "none", "auto", "normal")
_ELEMENTS = ("mask", "filter", "feImage")  # drawn on a layer of their own
_DECLARED = re.compile(
    rf"(?<![\w-])(?:{'|'.join(_PROPERTIES)})\s*+:\s*+(?!(?:{'|'.join(_NEUTRAL)})\s*+(?:[;!]|$))",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"url\(\s*+['\"]?+\s*+#([^'\")\s]+)", re.IGNORECASE)
_WORD = re.compile(r"[\w-]+")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_DRAWING, _END = "", "-"  # parts of the drawing beside those with an id
_DAMAGE = (expat.ExpatError, ValueError, LookupError)


@attrs.frozen
class _Style:
    """What declarations ask for: a layer or not, and the ids that they refer to."""

    layer: bool
    references: tuple[str, ...]

    @classmethod
    def of(cls, declarations: str) -> _Style:
        return cls(_DECLARED.search(declarations) is not None, tuple(_REFERENCE.findall(declarations)))


@attrs.define
class _Open:
    """An element that has not ended: the nearest one with an id, and the layers from there to here."""

    node: str
    layers: int
    is_filter: bool


def most_layers(markup: bytes) -> int:
    """Return how many images the deepest nesting needs, with what is referred to, such as masks."""
    try:
        rules = dict(_rules(_style_sheets(markup)))
        return _IMAGES * _deepest(_read_layers(markup, rules))
    except (_UnknownError, CycleError, *_DAMAGE):
        return _IMAGES * _UNKNOWN


class _UnknownError(Exception):
    """Other documents are included, of which nothing is known."""


def _plain(css: str) -> str:
    """Return style declarations without comments and escapes."""
    css = _COMMENT.sub("", css)
    if "\\" not in css:
        return css
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], css)


def _style_sheets(markup: bytes) -> str:
    sheets: list[str] = []
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        local = name.rpartition(":")[2]
        depth += depth > 0 or local == "style"
        if local == "include":
            raise _UnknownError

    def end(name: str) -> None:
        nonlocal depth
        depth -= depth > 0

    def instruction(target: str, data: str) -> None:
        if target == "xml-stylesheet" and "data:" in data:
            raise _UnknownError

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda text: sheets.append(text) if depth else None
    parser.ProcessingInstructionHandler = instruction
    parser.Parse(markup, True)
    css = _plain("".join(sheets))
    if "@import" in css.lower() and "data:" in css.lower():
        raise _UnknownError
    return css


def _rules(css: str) -> Iterator[tuple[str, _Style]]:
    """Yield the style of each tag, class and id in selectors; that of "" may apply to all elements."""
    found: dict[str, list[str]] = defaultdict(list)
    for block in css.split("}"):
        before, _, declarations = block.rpartition("{")
        selector = before.rpartition("{")[2]
        for word in [""] if re.search(r"[*:\[]", selector) else set(_WORD.findall(selector)):
            found[word].append(declarations)
    for word, declared in found.items():
        yield word, _Style.of(";".join(declared))


def _applied(name: str, attributes: Mapping[str, str], rules: Mapping[str, _Style]) -> list[str]:
    """Return the words of the style sheets that may apply to an element."""
    if not rules:
        return []
    words = (name, attributes.get("id", ""), *_WORD.findall(attributes.get("class", "")), "")
    return [word for word in words if word in rules]


def _read_layers(markup: bytes, rules: Mapping[str, _Style]) -> dict[str, dict[str, int]]:
    """Return, for the drawing and each element with an id, the most layers before each part of it.

    The parts are the elements in it that have an id, and those that it refers to, as ``#id``. What style
    sheets refer to are parts of their words, as ``.word``. The part ``_END`` is what has no id.
    """
    graph: dict[str, dict[str, int]] = {_DRAWING: {}}
    graph |= {f".{word}": {f"#{id}": 0 for id in style.references} for word, style in rules.items()}
    opened = [_Open(_DRAWING, 0, is_filter=False)]

    def note(place: _Open, part: str) -> None:
        parts = graph[place.node]
        parts[part] = max(parts.get(part, 0), place.layers)

    def start(name: str, attributes: dict[str, str]) -> None:
        local, parent = name.rpartition(":")[2], opened[-1]
        own, words = _Style.of(_plain(attributes.get("style", ""))), _applied(local, attributes, rules)
        layer = local in _ELEMENTS or own.layer or any(rules[word].layer for word in words)
        layer = layer or any(attributes.get(key, "1").strip() not in _NEUTRAL for key in _PROPERTIES)
        if parent.is_filter and "result" in attributes:
            parent.layers += 1
        here = _Open(parent.node, parent.layers, is_filter=local == "filter")
        id = f"#{attributes.get('id', '')}"
        if "id" in attributes and id not in graph:
            note(parent, id)
            graph[id] = {}
            here = _Open(id, 0, here.is_filter)
        here.layers += layer
        for target in (*_links(attributes), *own.references):
            note(here, f"#{target}")
        for word in words:
            note(here, f".{word}")
        opened.append(here)

    def end(name: str) -> None:
        note(opened.pop(), _END)

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(markup, True)
    return graph


def _links(attributes: Mapping[str, str]) -> Iterator[str]:
    for name, value in attributes.items():
        if name.rpartition(":")[2] == "href" and value.strip().startswith("#"):
            yield value.strip()[1:]
        elif "(" in value:
            yield from _REFERENCE.findall(_plain(value))


def _deepest(graph: Mapping[str, Mapping[str, int]]) -> int:
    """Return the most layers on a way from the drawing through what it refers to."""
    deepest: dict[str, int] = {}
    for node in TopologicalSorter(graph).static_order():
        parts = graph.get(node, {})
        deepest[node] = max((before + deepest[part] for part, before in parts.items()), default=0)
    return deepest[_DRAWING]
