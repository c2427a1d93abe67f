"""A crude bound of the memory that librsvg needs for a drawing, from one look at its XML.

librsvg ends the process if it gets less memory than it needs. In a worker that is an error of the picture, so
the bound is for programs without workers. It may be many times too high.

It counts elements, texts and paths, and images of the size of the drawing. librsvg draws groups with an
opacity, a mask, a filter, a blend mode or isolation apart, and nested ones at the same time. It counts
neither dashes of lines, nor tiles of patterns, nor long values that many elements inherit, nor imported style
sheets: sound drawings have few of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple
from xml.parsers import expat

import attrs

from imgsvc_core.errors import CorruptImage

# The numbers are measured: `benchmarks.memory_bound` has a drawing for each.
_ELEMENT = 4_000  # bytes of an element and the text in it, as two copies of the document may be there
_CHARACTER = 6_500  # bytes of a byte of text that is drawn: its layout
_PATH = 120  # bytes of a byte of a path or a style sheet
_MARKUP = 12  # bytes of any other byte
_IMAGES = {"mask": 2, "filter": 6, "feImage": 1}  # beside the layer that they change
_DEEPEST = 500  # elements in elements; libxml2 lets fewer be nested

_LAYERED = frozenset(["opacity", "filter", "mask", "clip-path", "isolation", "mix-blend-mode"])
_NEUTRAL = frozenset(["", "1", "none", "auto", "normal"])
_NEVER_DRAWN = frozenset(["svg", "defs", "style", "linearGradient", "radialGradient", "stop"])
_DRAWING, _END = "", "-"  # parts of a drawing beside those with an id

_REFERENCE = re.compile(r"url\(\s*+['\"]?+\s*+(#[^'\")\s]+)", re.IGNORECASE)
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_DECLARATION = re.compile(r"([\w-]++)\s*+:([^;{}!]*+)")


@attrs.frozen
class Bound:
    """What a drawing needs at most: images of its own size, and bytes whatever its size.

    ``links`` are all ``data:`` URIs in it.
    """

    layers: int
    contents: int
    links: tuple[str, ...]


def bound(markup: bytes) -> Bound:
    """Bound what a drawing needs.

    Raises:
        CorruptImage: its XML is damaged.
    """
    drawing = _Drawing()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = drawing.start, drawing.end
    parser.CharacterDataHandler = drawing.text
    try:
        parser.Parse(markup, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise CorruptImage(f"The SVG image is damaged: its XML cannot be read ({error}).") from error
    layers, paths = drawing.layers(), drawing.paths + sum(map(len, drawing.sheets))
    drawn = paths * _PATH + drawing.longest_text * _CHARACTER
    contents = drawing.elements * _ELEMENT + drawn + len(markup) * _MARKUP
    return Bound(layers, contents, tuple(drawing.links))


class _Place(NamedTuple):
    """An element that has not ended: the part that it belongs to, and what is around it there."""

    part: str
    kind: str
    layers: int
    drawn: int


@attrs.define
class _Drawing:
    """The parts of a drawing, and its longest text.

    A part is an element with an id, or the whole drawing. It has, for each part that is in it or that it
    refers to, the most layers and the most drawn elements around that part.
    """

    elements: int = 0
    paths: int = 0
    characters: int = 0
    longest_text: int = 0
    sheets: list[str] = attrs.field(factory=list)
    links: dict[str, None] = attrs.field(factory=dict)
    parts: dict[str, dict[str, tuple[int, int]]] = attrs.field(factory=lambda: {_DRAWING: {}})
    opened: list[_Place] = attrs.field(factory=lambda: [_Place(_DRAWING, "", 0, 0)])

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Note an element."""
        self.elements += 1
        if len(self.opened) > _DEEPEST:
            raise CorruptImage(
                f"The SVG image is damaged: its elements are nested in over {_DEEPEST} levels."
            )
        kind, outer, id = name.rpartition(":")[2], self.opened[-1], f"#{attributes.get('id', '')}"
        self.paths += len(attributes.get("d", "")) + len(attributes.get("points", ""))
        if outer.kind == "filter" and "result" in attributes:  # which is kept for what follows in the filter
            self.opened[-1] = outer = outer._replace(layers=outer.layers + 1)
        part, layers, drawn = outer.part, outer.layers, outer.drawn
        if len(id) > 1 and id not in self.parts:
            self.note(part, id, outer)
            self.parts[id] = {}
            part, layers, drawn = id, 0, 0
        own, targets = self.read([*attributes.items(), *_declarations(attributes.get("style", ""))])
        kind = outer.kind if outer.kind in ("text", "style") else kind
        here = _Place(part, kind, layers + own + _IMAGES.get(kind, 0), drawn + (kind not in _NEVER_DRAWN))
        for target in (*targets, _END):
            self.note(part, target, here)
        self.opened.append(here)

    def note(self, part: str, inner: str, place: _Place) -> None:
        """Note what is around another part."""
        layers, drawn = self.parts[part].get(inner, (0, 0))
        self.parts[part][inner] = max(layers, place.layers), max(drawn, place.drawn)

    def end(self, name: str) -> None:
        """Note that an element ends."""
        if self.opened.pop().kind == "text" != self.opened[-1].kind:
            self.longest_text, self.characters = max(self.longest_text, self.characters), 0

    def text(self, characters: str) -> None:
        """Note text, of which that of style sheets is kept."""
        match self.opened[-1].kind:
            case "text":
                self.characters += len(characters.encode())
            case "style":
                self.sheets.append(characters)

    def read(self, values: Iterable[tuple[str, str]]) -> tuple[int, list[str]]:
        """Return how many images an element with these values needs, and the parts that it refers to."""
        layered, filters, targets = False, 0, []
        for key, value in ((key, stated.strip()) for key, stated in values):
            targets += _REFERENCE.findall(value)
            if key in _LAYERED and value.lower() not in _NEUTRAL:
                layered = True
                filters |= _IMAGES["filter"] * (key == "filter" and "#" not in value)
            elif key.rpartition(":")[2] == "href" and value.startswith("#"):
                targets.append(value)
            elif key.rpartition(":")[2] == "href" and value[:5].lower() == "data:":
                self.links[value] = None
        return layered + filters, targets

    def layers(self) -> int:
        """Return how many images the deepest nesting needs, with what is referred to.

        What a style sheet declares may apply to any element.
        """
        images, targets = self.read(_declarations("".join(self.sheets)))
        try:
            order = [*TopologicalSorter(self.parts).static_order()]
        except CycleError:
            return _DEEPEST
        deepest: dict[str, int] = defaultdict(int)
        for part in order:
            around = self.parts.get(part, {}).items()
            inside = (layers + bool(images) * drawn + deepest[inner] for inner, (layers, drawn) in around)
            deepest[part] = max(inside, default=0)
        return deepest[_DRAWING] + sum(deepest[target] for target in {*targets}) + max(0, images - 1)


def _declarations(css: str) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in _DECLARATION.findall(_COMMENT.sub("", css))]
