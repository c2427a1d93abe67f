"""How many images of its own size librsvg holds at the same time to draw an SVG, at most.

Each group with an opacity, a mask, a filter, a blend mode or isolation is drawn apart, on a layer. Nested
groups have theirs at the same time, and a filter keeps each result that has a name. A pattern is drawn on an
image of the size of its tile, even if that is larger than the drawing.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from xml.parsers import expat

import attrs

from imgsvc_core.formats.svg import shapes as svg_shapes
from imgsvc_core.formats.svg.size import view_box

_MASK = 2
"""Images of a mask beside the layer that it masks: what it draws, and the luminance of that."""
_FILTER = 6
"""Images of a filter beside the layer that it changes, without results that have a name: measured."""
_TILES = 2
"""Images of the tile of a pattern: while a shape is stroked, that of its fill is kept."""
_UNKNOWN = 500
"""Taken for documents that cannot be followed. libxml2 lets at most 256 elements be nested."""

_PROPERTIES = ("opacity", "filter", "mask", "clip-path", "isolation", "mix-blend-mode")
_NEUTRAL = ("1", "none", "auto", "normal")
_ELEMENTS = {"mask": _MASK, "filter": _FILTER, "feImage": 1}  # drawn on images of their own
_VIEWS = ("svg", "symbol", "marker", "use")
_DECLARED = re.compile(
    rf"(?<![\w-])({'|'.join(_PROPERTIES)})\s*+:\s*+(?!(?:{'|'.join(_NEUTRAL)})\s*+(?:[;!]|$))",
    re.IGNORECASE,
)
_TRANSFORM = re.compile(r"(?<![\w-])transform\s*+:([^;]*)", re.IGNORECASE)
_LENGTHS = re.compile(r"(?<![\w-])(stroke-width|font-size)\s*+:([^;{]*)", re.IGNORECASE)
_SIZES = re.compile(r"(?<![\w-])(width|height|rx|ry|r)\s*+:\s*+([^;]*)")
_REFERENCE = re.compile(r"url\(\s*+['\"]?+\s*+#([^'\")\s]+)", re.IGNORECASE)
_WORD = re.compile(r"[\w-]+")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_BOXED = "objectBoundingBox"
_OF_PATTERNS = ("width", "height", "viewBox", "patternTransform", "patternUnits", "patternContentUnits")
_DRAWING, _END = "", "-"  # parts of the drawing beside those with an id
_DAMAGE = (expat.ExpatError, ValueError, LookupError)


@attrs.frozen
class _Style:
    """What declarations ask for: properties that need a layer, references to ids, and sizes."""

    properties: frozenset[str]
    references: tuple[str, ...]
    growth: float
    sizes: Mapping[str, str]

    @classmethod
    def of(cls, declarations: str) -> _Style:
        found = frozenset(name.lower() for name in _DECLARED.findall(declarations))
        growth = math.prod(max(1.0, svg_shapes.growth(text)) for text in _TRANSFORM.findall(declarations))
        sizes = dict(_SIZES.findall(declarations))
        return cls(found, tuple(_REFERENCE.findall(declarations)), growth, sizes)


@attrs.define
class _Open:
    """An element that has not ended: the nearest one with an id, and the layers and scale from there to here.

    Scales are those of areas.
    """

    node: str
    layers: int
    scale: float
    kind: str


@attrs.define
class _Node:
    """The drawing, an element with an id, or what a style sheet refers to.

    ``parts`` has the most layers, and the largest scale, before each part: an element in it that has an id,
    or one that it refers to, as ``#id``; ``.word`` of a style sheet; ``_END`` for all others. ``shape`` is
    the area of the largest shape in it, ``pattern`` the attributes of a pattern.
    """

    parts: dict[str, tuple[int, float]] = attrs.field(factory=dict)
    shape: float = 0.0
    pattern: Mapping[str, str] | None = None

    def note(self, part: str, layers: int, scale: float) -> None:
        most, largest = self.parts.get(part, (0, 0.0))
        self.parts[part] = max(most, layers), max(largest, scale)


@attrs.define
class _Survey:
    """What holds for a whole document, and is known only at its end.

    ``drawing`` is its size in pixels. ``width`` and ``height`` are those of the largest view, in its units.
    """

    drawing: tuple[int, int]
    width: float
    height: float
    css: str = ""
    stroke: float = 1.0
    font: float = 12.0
    boxed_clips: bool = False
    see_through: bool = False
    patterns: bool = False


def most_layers(markup: bytes, width: int, height: int) -> int:
    """Return how many images the deepest nesting needs, with what is referred to, such as masks and patterns.

    ``width`` and ``height`` are those of the drawing in pixels.
    """
    try:
        survey = _survey(markup, width, height)
        graph = _read(markup, survey, dict(_rules(survey.css)))
        parts = {name: node.parts.keys() for name, node in graph.items()}
        order = list(TopologicalSorter(parts).static_order())
        tiles = _tiles(graph, order, survey, width * height)
        return math.ceil(_deepest(graph, order, tiles))
    except (_UnknownError, CycleError, OverflowError, *_DAMAGE):
        return _UNKNOWN


class _UnknownError(Exception):
    """The document has something that is not followed here."""


def plain_style(css: str) -> str:
    """Return style declarations without comments and escapes."""
    css = _COMMENT.sub("", css)
    if "\\" not in css:
        return css
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], css)


def _survey(markup: bytes, width: int, height: int) -> _Survey:
    sheets: list[str] = []
    styles: list[str] = []
    found = _Survey((width, height), width, height)
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        local = name.rpartition(":")[2]
        depth += depth > 0 or local == "style"
        if local == "include" or "kernelUnitLength" in attributes:
            raise _UnknownError
        if local in _VIEWS:
            box = view_box(attributes.get("viewBox", ""))
            sides = (svg_shapes.length(attributes.get(key), 0.0, 0.0) for key in ("width", "height"))
            across, down = map(max, box, sides)
            found.width, found.height = max(found.width, across), max(found.height, down)
        if "stroke-width" in attributes:
            styles.append(f"stroke-width:{attributes['stroke-width']}")
        if "font-size" in attributes:
            styles.append(f"font-size:{attributes['font-size']}")
        if "style" in attributes:
            styles.append(attributes["style"])
        found.patterns |= local == "pattern"
        found.boxed_clips |= attributes.get("clipPathUnits") == _BOXED
        found.see_through |= not attributes.keys().isdisjoint(("fill-opacity", "stroke-opacity"))

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
    found.css = plain_style("".join(sheets))
    if "@import" in found.css.lower() and "data:" in found.css.lower():
        raise _UnknownError
    declared = found.css.replace("}", ";") + ";" + plain_style(";".join(styles))
    found.see_through |= re.search(r"-opacity\s*+:", declared, re.IGNORECASE) is not None
    whole = max(found.width, found.height)
    for name, text in _LENGTHS.findall(declared):
        value = svg_shapes.length(text.partition("!")[0].strip(), whole, 0.0)
        if name.lower() == "stroke-width":
            found.stroke = max(found.stroke, value)
        elif value < math.inf:
            found.font = max(found.font, value)
    return found


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


def _read(markup: bytes, survey: _Survey, rules: Mapping[str, _Style]) -> dict[str, _Node]:
    """Return the drawing and each element with an id, with what they are made of."""
    graph: dict[str, _Node] = {_DRAWING: _Node()}
    for word, style in rules.items():
        graph[f".{word}"] = _Node({f"#{id}": (0, 1.0) for id in style.references})
    opened = [_Open(_DRAWING, 0, 1.0, "")]

    def note(place: _Open, part: str, more: int = 0) -> None:
        graph[place.node].note(part, place.layers + more, place.scale)

    def draw(place: _Open, area: float) -> None:
        node = graph[place.node]
        node.shape = max(node.shape, area * place.scale)

    def start(name: str, attributes: dict[str, str]) -> None:
        local, parent = name.rpartition(":")[2], opened[-1]
        own = _Style.of(plain_style(attributes.get("style", "")))
        words = _applied(local, attributes, rules)
        properties = own.properties.union(*(rules[word].properties for word in words))
        properties |= {key for key in _PROPERTIES if attributes.get(key, "1").strip() not in _NEUTRAL}
        if not survey.boxed_clips:  # other clips need no layer
            properties -= {"clip-path"}
        if parent.kind == "filter" and "result" in attributes:
            parent.layers += 1
        kind = "text" if parent.kind == "text" else local
        here = _Open(parent.node, parent.layers, parent.scale, kind)
        id = f"#{attributes.get('id', '')}"
        if "id" in attributes and id not in graph:
            note(parent, id)
            graph[id] = _Node()
            here = _Open(id, 0, 1.0, kind)
        here.layers += bool(properties) + _ELEMENTS.get(local, 0)
        styled = math.prod(rules[word].growth for word in words)
        here.scale *= svg_shapes.growth(attributes.get("transform", "")) * own.growth * styled
        here.scale *= _view_scale(local, attributes, survey, root=len(opened) == 1)
        if local == "pattern":
            graph[here.node].pattern = attributes
        for style in (own, *(rules[word] for word in words)) if survey.patterns else ():
            sized = {**attributes, **style.sizes}
            draw(here, svg_shapes.area(local, sized, survey.width, survey.height))
        for target in (*_links(attributes), *own.references):
            note(here, f"#{target}")
        for word in words:
            note(here, f".{word}")
        if "filter" in properties:
            note(here, _END, _FILTER)
        opened.append(here)

    def text(characters: str) -> None:
        place = opened[-1]
        if place.kind == "text":
            draw(place, len(characters) * survey.font**2)

    def end(name: str) -> None:
        note(opened.pop(), _END)

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.Parse(markup, True)
    return graph


def _links(attributes: Mapping[str, str]) -> Iterator[str]:
    """Yield the ids that an element refers to."""
    yield from _hrefs(attributes)
    for value in attributes.values():
        if "(" in value:
            yield from _REFERENCE.findall(plain_style(value))


def _view_scale(name: str, attributes: Mapping[str, str], survey: _Survey, *, root: bool) -> float:
    """Return how much larger the areas in a view are than around it. Its size may come from a use."""
    width, height, scale = survey.width, survey.height, 1.0
    if root:
        width, height = survey.drawing
    elif name == "marker":
        width, height = (
            svg_shapes.length(attributes.get(key), whole, 3.0)
            for key, whole in (("markerWidth", width), ("markerHeight", height))
        )
        scale = survey.stroke**2
    elif name not in ("svg", "symbol"):
        return 1.0
    return scale * svg_shapes.fitting(attributes, width, height)


def _tiles(graph: Mapping[str, _Node], order: list[str], survey: _Survey, pixels: int) -> dict[str, float]:
    """Return the size of the tile of each pattern, in images of the size of the drawing."""
    scales: dict[str, float] = defaultdict(float, {_DRAWING: 1.0})
    tiles: dict[str, float] = {}
    patterns = _patterns(graph, order)
    largest = 0.0  # of the shapes on a way to here
    for name in reversed(order):
        node = graph.get(name)
        if node is None:
            continue
        scale = scales[name]
        attributes = patterns.get(name)
        if attributes is not None:
            grown = svg_shapes.growth(attributes.get("patternTransform", ""))
            boxed = attributes.get("patternUnits", _BOXED) == _BOXED
            width, height = (
                svg_shapes.length(attributes.get(key), 1.0 if boxed else whole, 0.0)
                for key, whole in (("width", survey.width), ("height", survey.height))
            )
            tile = width * height * grown * (largest if boxed else scale)
            tiles[name] = tile / pixels * (_TILES + survey.see_through)
            scale *= grown
            box_width, box_height = view_box(attributes.get("viewBox", ""))
            if box_width and box_height:
                scale = max(tile / (box_width * box_height), scale)
            elif attributes.get("patternContentUnits") == _BOXED:
                scale = max(largest, scale)
        largest = max(largest, node.shape * scales[name])
        for part, (_, before) in node.parts.items():
            scales[part] = max(scales[part], scale * before)
    return tiles


def _patterns(graph: Mapping[str, _Node], order: list[str]) -> dict[str, dict[str, str]]:
    """Return the attributes of each pattern, with those of the pattern that it refers to."""
    found: dict[str, dict[str, str]] = {}
    for name in order:
        node = graph.get(name)
        if node is None or node.pattern is None:
            continue
        own = {key: value for key, value in node.pattern.items() if key in _OF_PATTERNS}
        target = next((f"#{id}" for id in _hrefs(node.pattern)), "")
        found[name] = {**found.get(target, {}), **own}
    return found


def _hrefs(attributes: Mapping[str, str]) -> Iterator[str]:
    for name, value in attributes.items():
        if name.rpartition(":")[2] == "href" and value.strip().startswith("#"):
            yield value.strip()[1:]


def _deepest(graph: Mapping[str, _Node], order: list[str], tiles: Mapping[str, float]) -> float:
    """Return the most images on a way from the drawing through what it refers to."""
    deepest: dict[str, float] = defaultdict(float)
    for name in order:
        parts = graph[name].parts if name in graph else {}
        inside = max((layers + deepest[part] for part, (layers, _) in parts.items()), default=0.0)
        deepest[name] = inside + tiles.get(name, 0.0)
    return deepest[_DRAWING]
