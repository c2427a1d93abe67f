"""A crude bound of the memory that librsvg needs for a drawing, from one look at its XML.

librsvg ends the process if it gets less memory than it needs. In a worker that is an error of the picture.
The bound is for programs without one, and may be many times too high. It counts elements and texts, and
images of the size of the drawing: groups with an opacity, a mask, a filter, a blend mode or isolation are
drawn apart, nested ones at the same time. It counts no dashes of lines, and tiles of patterns only without
their transforms: no sound drawing has many.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple
from xml.parsers import expat

import attrs

from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.svg.size import length_in_pixels, view_box

# The numbers are measured: `benchmarks.memory_bound` has a drawing for each.
_ELEMENT = 4_000  # bytes of an element and the text in it, as two copies of the document may be there
_CHARACTER = 6_500  # bytes of a byte of text that is drawn: its layout
_PATH = 120  # bytes of a byte of a path or a style sheet
_MARKUP = 12  # bytes of any other byte
_INHERITED = 16  # bytes of a character of a long value, in each element that may inherit it
_LONG = 64  # characters of a value; shorter ones are part of an element
_IMAGES = {"mask": 2, "filter": 6, "feImage": 1}  # beside the layer that they change
_TILES = 3  # images of the tile of a pattern, as those for fill and stroke may be there together
_DEEPEST = 500  # elements in elements; libxml2 lets fewer be nested

_LAYERED = frozenset(["opacity", "filter", "mask", "clip-path", "isolation", "mix-blend-mode"])
_NEUTRAL = frozenset(["", "1", "none", "auto", "normal"])
_NEVER_DRAWN = frozenset(["svg", "defs", "style", "linearGradient", "radialGradient", "stop"])
_INHERITABLE = frozenset(
    ["fill", "stroke", "stroke-dasharray", "font", "font-family", "lang", "xml:lang", "marker",
     "marker-start", "marker-mid", "marker-end", "@import"]
)  # fmt: skip
_DRAWING, _END = "", "-"  # parts of a drawing beside those with an id

_REFERENCE = re.compile(r"url\(\s*+['\"]?+\s*+(#[^'\")\s]+)", re.IGNORECASE)
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_DECLARATION = re.compile(
    r"""(@import\b|(?<![\w-])[\w-]++(?=\s*+:))[\s:]*+((?:"[^"]*+"?|'[^']*+'?|[^;{}"'])*+)""", re.I
)


@attrs.frozen
class Bound:
    """What a drawing needs at most: images of its own size, and bytes whatever its size.

    ``links`` are all ``data:`` URIs in it.
    """

    layers: int
    contents: int
    links: tuple[str, ...]


def bound(markup: bytes, width: int, height: int) -> Bound:
    """Bound a drawing that is rendered at a size in pixels.

    Raises:
        CorruptImage: its XML is damaged.
    """
    drawing = _Drawing()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = drawing.start, drawing.end
    parser.CharacterDataHandler, parser.ProcessingInstructionHandler = drawing.text, drawing.instruction
    try:
        parser.Parse(markup, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise CorruptImage(f"The SVG image is damaged: its XML cannot be read ({error}).") from error
    layers = drawing.layers(width, height)
    return Bound(layers, drawing.contents() + len(markup) * _MARKUP, tuple(drawing.links))


class _Place(NamedTuple):
    """An element that has not ended, and what is before it in the part that it belongs to."""

    part: str
    kind: str
    layers: int
    depth: int


@attrs.define
class _Part:
    """An element with an id, or the whole drawing.

    ``inner`` maps each part, in the element or referred to by it, to the largest numbers of layers and of
    elements before it.
    """

    inner: dict[str, tuple[int, int]] = attrs.field(factory=dict)
    tile: float = 0.0

    def note(self, name: str, place: _Place) -> None:
        layers, depth = self.inner.get(name, (0, 0))
        self.inner[name] = max(layers, place.layers), max(depth, place.depth)


@attrs.define
class _Drawing:
    """The parts of a drawing, and the largest of its texts and values."""

    box: tuple[float, float] = (0.0, 0.0)
    followed: bool = True
    elements: int = 0
    paths: int = 0
    characters: int = 0
    longest_text: int = 0
    filters: int = 0
    sheets: list[str] = attrs.field(factory=list)
    links: dict[str, None] = attrs.field(factory=dict)
    long: dict[str, int] = attrs.field(factory=dict)
    parts: dict[str, _Part] = attrs.field(factory=lambda: {_DRAWING: _Part()})
    opened: list[_Place] = attrs.field(factory=lambda: [_Place(_DRAWING, "", 0, 0)])

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Note an element."""
        self.elements += 1
        if len(self.opened) > _DEEPEST:
            raise CorruptImage(
                f"The SVG image is damaged: its elements are nested in over {_DEEPEST} levels."
            )
        kind, outer, id = name.rpartition(":")[2], self.opened[-1], f"#{attributes.get('id', '')}"
        if self.elements == 1:
            self.box = view_box(attributes.get("viewBox", ""))
        if kind == "include":  # of XML, by XInclude
            self.elements += sum(map(len, attributes.values()))
            self.followed = False
        self.followed &= "kernelUnitLength" not in attributes
        self.paths += sum(len(attributes.get(key, "")) for key in ("d", "points"))
        if outer.kind == "filter" and "result" in attributes:
            self.opened[-1] = outer = outer._replace(layers=outer.layers + 1, depth=outer.depth + 1)
        part, layers, depth = outer.part, outer.layers, outer.depth
        if len(id) > 1 and id not in self.parts:
            self.parts[part].note(id, outer)
            self.parts[id] = _Part()
            part, layers, depth = id, 0, 0
        if kind == "pattern" and attributes.get("patternUnits") == "userSpaceOnUse":
            self.parts[part].tile = self.length(attributes, "width", 0) * self.length(attributes, "height", 1)
        layered, targets = self.read([*attributes.items(), *_declarations(attributes.get("style", ""))])
        images = _IMAGES.get(kind, 0)
        kind = outer.kind if outer.kind in ("text", "style") else kind
        here = _Place(part, kind, layers + layered + images, depth + (kind not in _NEVER_DRAWN) + images)
        for target in targets:
            self.parts[part].note(target, here)
        self.opened.append(here)

    def end(self, name: str) -> None:
        """Note that an element ends."""
        place = self.opened.pop()
        self.parts[place.part].note(_END, place)
        if place.kind == "text" != self.opened[-1].kind:
            self.longest_text, self.characters = max(self.longest_text, self.characters), 0

    def text(self, characters: str) -> None:
        """Note text, of which that of style sheets is kept."""
        match self.opened[-1].kind:
            case "text":
                self.characters += len(characters.encode())
            case "style":
                self.sheets.append(characters)

    def instruction(self, target: str, data: str) -> None:
        """Note a style sheet, which may be inside of a URI."""
        if target == "xml-stylesheet":
            self.sheets.append(f";@import {data};")

    def read(self, pairs: list[tuple[str, str]]) -> tuple[bool, list[str]]:
        """Note attributes or declarations.

        Return True if an element with these needs a layer, and the parts that it refers to.
        """
        layered, targets = False, []
        for key, stated in pairs:
            value = stated.partition("!")[0].strip()
            if key in _INHERITABLE and len(value) > _LONG:
                self.long[key] = max(self.long.get(key, 0), len(value))
            if "(" in value:
                targets += _REFERENCE.findall(plain_style(value))
            if key in _LAYERED and value.lower() not in _NEUTRAL:
                layered = True
                self.filters |= _IMAGES["filter"] * (key == "filter" and "#" not in value)
            elif key.rpartition(":")[2] == "href" and value.startswith("#"):
                targets.append(value)
            elif key.rpartition(":")[2] == "href" and value[:5].lower() == "data:":
                self.links[value] = None
        return layered, targets

    def length(self, attributes: dict[str, str], key: str, side: int) -> float:
        """Return a length; what is not understood has none."""
        text = attributes.get(key, "").strip()
        percent = text.removesuffix("%")
        if percent != text:
            return self.length({key: percent}, key, side) / 100 * self.box[side]
        found = abs(length_in_pixels(text, 12.0))
        return found if found < math.inf else 0.0

    def contents(self) -> int:
        """Return the bytes of elements, texts, paths and long values."""
        inherited = self.elements * sum(self.long.values()) * _INHERITED
        texts = self.longest_text * _CHARACTER
        return (
            self.elements * _ELEMENT + (self.paths + sum(map(len, self.sheets))) * _PATH + texts + inherited
        )

    def layers(self, width: int, height: int) -> int:
        """Return how many images the deepest nesting needs, with what is referred to.

        What a style sheet declares may apply to any element.
        """
        pairs = _declarations("".join(self.sheets))
        everywhere, targets = self.read(pairs)
        try:
            order = [
                *TopologicalSorter({name: part.inner for name, part in self.parts.items()}).static_order()
            ]
        except CycleError:
            return _DEEPEST
        if not self.followed or "@import" in dict(pairs):
            return _DEEPEST
        scale = max(width / self.box[0], height / self.box[1]) if all(self.box) else 1.0
        deepest: dict[str, float] = defaultdict(float)
        for name in order:
            part = self.parts.get(name, _Part())
            tile = part.tile * scale**2 * _TILES / (width * height)
            inside = (place[everywhere] + deepest[inner] for inner, place in part.inner.items())
            deepest[name] = max(inside, default=0) + tile
        return math.ceil(deepest[_DRAWING] + sum(deepest[target] for target in set(targets)) + self.filters)


def plain_style(css: str) -> str:
    """Return style declarations without comments and escapes."""
    css = _COMMENT.sub("", css)
    if "\\" not in css:
        return css
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], css)


def _declarations(css: str) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in _DECLARATION.findall(plain_style(css))]
