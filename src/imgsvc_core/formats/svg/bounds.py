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
from collections.abc import Iterable
from xml.parsers import expat

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import CorruptImage, UnsupportedFormat

# The numbers are measured: `benchmarks.memory_bound` has a drawing for each.
_ELEMENT = 4_000  # bytes of an element and the text in it, as two copies of the document may be there
_CHARACTER = 6_500  # bytes of a byte of text that is drawn: its layout
_PATH = 120  # bytes of a byte of a path or a style sheet
_MARKUP = 12  # bytes of any other byte
_IMAGES = {"mask": 2, "filter": 6, "feImage": 1}  # beside the layer that they change
_DEEPEST = 500  # elements in elements; libxml2 lets fewer be nested
_MOST_ELEMENTS = 1_000_000

_LAYERED = frozenset(["opacity", "filter", "mask", "clip-path", "isolation", "mix-blend-mode"])
_NEUTRAL = frozenset(["", "1", "none", "auto", "normal"])
_NEVER_DRAWN = frozenset(["svg", "defs", "style", "linearGradient", "radialGradient", "stop"])

_REFERENCE = re.compile(r"url\(\s*+['\"]?+\s*+(#[^'\")\s]+)", re.IGNORECASE)
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_DECLARATION = re.compile(r"(?<![\w-])([\w-]++)\s*+:([^;{}!]*+)")


@frozen
class Bound:
    """The most memory that a drawing needs: images of its own size, and bytes that do not depend on it.

    ``links`` are all ``data:`` URIs in it.
    """

    layers: int
    contents: int
    links: tuple[str, ...]


def bound(markup: bytes) -> Bound:
    """Bound what a drawing needs.

    Raises:
        CorruptImage: its XML is damaged.
        UnsupportedFormat: it has too many elements.
    """
    drawing = _Drawing()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.CharacterDataHandler = drawing.start, drawing.text
    parser.EndElementHandler = lambda name: drawing.opened.pop()
    try:
        parser.Parse(markup, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise CorruptImage(f"The SVG image is damaged: its XML cannot be read ({error}).") from error
    paths = drawing.paths + sum(map(len, drawing.sheets))
    drawn = paths * _PATH + drawing.longest_text * _CHARACTER
    contents = drawing.elements * _ELEMENT + drawn + len(markup) * _MARKUP
    return Bound(drawing.layers(), contents, tuple(drawing.links))


@attrs.define(eq=False)
class _Element:
    """An element: the images that it needs, what is in it, and the elements that it refers to.

    ``deepest`` are the images that it needs with what is in it, once they are counted.
    """

    kind: str = ""
    images: int = 0
    targets: list[str] = attrs.field(factory=list)
    inner: list[_Element] = attrs.field(factory=list)
    deepest: int | None = None


@attrs.define
class _Drawing:
    """The elements of a drawing, its style sheets and ``data:`` URIs, and the sizes of texts and paths."""

    elements: int = 0
    paths: int = 0
    characters: int = 0
    longest_text: int = 0
    sheets: list[str] = attrs.field(factory=list)
    links: dict[str, None] = attrs.field(factory=dict)
    named: dict[str, _Element] = attrs.field(factory=dict)
    opened: list[_Element] = attrs.field(factory=lambda: [_Element()])

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Note an element."""
        self.elements += 1
        if len(self.opened) > _DEEPEST or self.elements > _MOST_ELEMENTS:
            raise UnsupportedFormat(
                f"The SVG image cannot be read: its elements are nested in over {_DEEPEST} levels, or more "
                f"than {_MOST_ELEMENTS:,}; simplify the drawing."
            )
        kind, outer = name.rpartition(":")[2], self.opened[-1]
        if kind == "text" != outer.kind:
            self.characters = 0
        self.paths += len(attributes.get("d", "")) + len(attributes.get("points", ""))
        if outer.kind == "filter" and "result" in attributes:  # which is kept for what follows in the filter
            outer.images += 1
        images, targets = self.read([*attributes.items(), *_declarations(attributes.get("style", ""))])
        kind = outer.kind if outer.kind in ("text", "style") else kind
        self.opened.append(_Element(kind, images + _IMAGES.get(kind, 0), targets))
        outer.inner.append(self.opened[-1])
        self.named.setdefault(f"#{attributes.get('id', '')}", self.opened[-1])

    def text(self, characters: str) -> None:
        """Count text. Text of style sheets is kept."""
        match self.opened[-1].kind:
            case "text":
                self.characters += len(characters.encode())
                self.longest_text = max(self.longest_text, self.characters)
            case "style":
                self.sheets.append(characters)

    def read(self, values: Iterable[tuple[str, str]]) -> tuple[int, list[str]]:
        """Return how many images an element with these values needs, and what it refers to."""
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

        Declarations of a style sheet may apply to any element.
        """
        images, targets = self.read(_declarations("".join(self.sheets)))

        def deepest(element: _Element) -> int:
            if element.deepest is None:
                element.deepest = _DEEPEST  # if it is in itself
                own = element.images + (images > 0 and element.kind not in _NEVER_DRAWN)
                shown = (self.named[name] for name in element.targets if name in self.named)
                element.deepest = own + max(map(deepest, (*element.inner, *shown)), default=0)
            return element.deepest

        try:
            shared = sum(deepest(self.named[name]) for name in {*targets} & self.named.keys())
            return max(map(deepest, self.opened[0].inner)) + shared + max(0, images - 1)
        except RecursionError:
            return _DEEPEST


def _declarations(css: str) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in _DECLARATION.findall(_COMMENT.sub("", css))]
