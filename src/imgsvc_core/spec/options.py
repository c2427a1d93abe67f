"""The options that the command and URLs share: an option for each parameter of a request, and shorthands.

An option is named by operation and parameter, such as ``resize-width``; adjustments and parameters of the
output need no prefix. Flags of the command and options in URLs have the same names.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from imgsvc_core._runtime.jsontext import check_depth, without_repeats
from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import Problem, SpecError, invalid
from imgsvc_core.spec.declare import Operation, Param, params
from imgsvc_core.spec.filters import FILTERS
from imgsvc_core.spec.kinds import Boolean, Integer, Number, Words
from imgsvc_core.spec.merging import Document, merge
from imgsvc_core.spec.request import LISTS, OPERATIONS, Spec

_WITHOUT_PREFIX = frozenset({"adjust", "auto", "output"})
LISTS_AS_JSON: tuple[str, ...] = tuple(name for name in LISTS if name != "filter")
"""The keys of lists of operations that have one option each. Filters have an option for each parameter."""

_BOOLEANS = {"1": True, "true": True, "0": False, "false": False}


@frozen
class ParameterOption:
    """The option of one parameter."""

    operation: type[Operation]
    param: Param

    @property
    def name(self) -> str:
        """The name of the option."""
        key, name = self.operation.key, self.param.name
        return (name if key in _WITHOUT_PREFIX else f"{key}-{name}").replace("_", "-")

    def read(self, value: str | bool) -> Document:
        """Return a document with the parameter set to a value. The parser checks the value."""
        return {self.operation.key: {self.param.name: typed(self.param, value)}}


@frozen
class Shorthand:
    """A short option for a common request.

    ``read`` returns the parameters that a text stands for by operation; it raises `ValueError` if the text is
    not what ``expectation`` says. An ``alias`` is another name of one parameter.
    """

    name: str
    metavar: str
    doc: str
    read: Callable[[str], Document]
    expectation: str = ""
    alias: tuple[str, str] | None = None


def typed(param: Param, value: str | bool) -> Any:
    """Return a value of a parameter with its type in JSON. Other texts are left to the parser."""
    match param.kind:
        case Integer() | Number():  # a word stays one
            return _number(value)
        case Boolean():
            return _BOOLEANS.get(value, value) if isinstance(value, str) else value
        case Words():
            return [word for word in value.split(",") if word] if isinstance(value, str) else value
    return value


def request_of(
    values: Mapping[str, str | bool], base: Mapping[str, Any] | None = None, *, prefix: str = ""
) -> Document:
    """Return the request that options stand for, merged into another request.

    Options of parameters win over shorthands, and both over ``base``, whatever their order.

    Args:
        values: values by the names of options.
        base: a request as a JSON document.
        prefix: the text before the names of options in messages.

    Raises:
        SpecError: a shorthand cannot be read.

    >>> request_of({"resize": "800x", "quality": "70"})
    {'resize': {'width': 800}, 'output': {'quality': 70}}
    """
    request = dict(base or {})
    found: Document = {}
    problems: list[Problem] = []
    for name in sorted(values, key=_PLACES.__getitem__):
        option, value = OPTIONS[name], values[name]
        try:
            parts = option.read(value)  # type: ignore[arg-type]  # shorthands are never switches
        except ValueError:
            assert isinstance(option, Shorthand)
            expected = f"Option '{prefix}{name}' must be {option.expectation}"
            problems.append(Problem(name, expected, f"got '{value}'"))
            continue
        for key, part in parts.items():
            found[key] = {**found.get(key, {}), **part} if isinstance(part, Mapping) else part
    if problems:
        raise SpecError(problems)
    for key, part in found.items():
        merge(request, key, part)
    if "gravity" in values:
        crops = request.get("crop") is not None and request.get("resize") is None
        merge(request, "crop" if crops else "resize", {"gravity": values["gravity"]})
    return request


def options_of(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of a request, which is valid JSON without nulls: the opposite of `request_of`.

    Operations without parameters have no options.

    Raises:
        SpecError: the filters have an order of their own, which options cannot express.

    >>> options_of({"resize": {"width": 800}, "output": {"quality": 70}})
    {'resize': '800x', 'quality': '70'}
    """
    parts = {**request, **_filters_by_key(request.get("filter", {}))}
    found: dict[str, str] = {}
    found |= {name: base64_of(request[name]) for name in LISTS_AS_JSON if name in request}
    for key in _BY_KEY:
        part = parts.get(key, {})
        part = {"color": part} if isinstance(part, str) else dict(part)  # a background
        if key == "resize" and ("width" in part or "height" in part):
            found["resize"] = f"{part.pop('width', '')}x{part.pop('height', '')}"
            if "gravity" in part:
                found["gravity"] = part.pop("gravity")
        for name, value in part.items():
            found[_ALIASES.get((key, name)) or OPTION_NAMES[key, name]] = text_of(value)
    return found


def text_of(value: str | float | Sequence[str]) -> str:
    """Return a value of an option as text."""
    if isinstance(value, list | tuple):
        return ",".join(value)
    if isinstance(value, bool):
        return "1" if value else "0"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def base64_of(value: Any) -> str:
    """Return a JSON value as base64url of its shortest text, without padding."""
    import json  # few options hold JSON

    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    # An escape of Python for a lone surrogate is one of JSON, too.
    return base64.urlsafe_b64encode(text.encode("utf-8", "backslashreplace")).decode().rstrip("=")


def from_base64(text: str) -> bytes:
    """Return the bytes of a text in base64url, with or without padding; raise `ValueError` for others."""
    if not re.fullmatch("[A-Za-z0-9_-]+={0,2}", text):
        raise ValueError(text)
    bare = text.rstrip("=")
    return base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))


def _list(name: str, text: str) -> Document:
    """Return the list of operations of an option. The parser checks its contents."""
    import json

    decoded = from_base64(text).decode()
    check_depth(decoded)
    return {name: json.loads(decoded, object_pairs_hook=without_repeats)}


def _filters_by_key(filters: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if isinstance(filters, Mapping):
        return dict(filters)
    keys = [key for item in filters for key in item]
    if keys != sorted(set(keys), key=list(_BY_KEY).index):
        order = ", ".join(item.key for item in FILTERS)
        expected = f"Filter options are applied in the order {order}, each once"
        raise invalid("filter", expected, f"got {', '.join(keys)}")
    return {key: part for item in filters for key, part in item.items()}


def digits(text: str) -> int | None:
    """Return the number that ASCII digits spell, or `None` for other or too long texts."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None


def _number(value: str | bool) -> Any:
    """Return the number that a text spells, nearly as in JSON. Any other text stays as it is."""
    if not isinstance(value, str) or not value.isascii() or "_" in value:
        return value
    for read in (int, float):
        try:
            return read(value)
        except ValueError:
            continue
    return value


def _box(text: str) -> dict[str, int]:
    width, cross, height = text.lower().partition("x")
    sides = {name: digits(side) for name, side in (("width", width), ("height", height)) if side}
    found = {name: side for name, side in sides.items() if side is not None}
    if not cross or not sides or len(found) < len(sides):
        raise ValueError(text)
    return found


def _crop(text: str) -> Document:
    if ":" in text:
        return {"crop": {"mode": "ratio", "ratio": text}}
    if text == "face":
        return {"crop": {"mode": "face"}}
    return {"crop": _box(text)}


def _canvas(text: str) -> Document:
    return {"canvas": {"ratio": text} if ":" in text else _box(text)}


def _flip(text: str) -> Document:
    if not text or set(text) - set("hv"):
        raise ValueError(text)
    return {"flip": {"horizontal": "h" in text, "vertical": "v" in text}}


def _mask(text: str) -> Document:
    radius = digits(text)
    return {"mask": {"shape": text} if radius is None else {"shape": "rounded", "radius": radius}}


def _alias(name: str, metavar: str, doc: str, key: str, parameter: str) -> Shorthand:
    param = params(_BY_KEY[key])[parameter]
    return Shorthand(
        name, metavar, doc, lambda text: {key: {parameter: typed(param, text)}}, alias=(key, parameter)
    )


def _in_order() -> list[type[Operation]]:
    found: list[type[Operation]] = []
    for name in params(Spec):
        if name not in LISTS_AS_JSON:
            found += FILTERS if name == "filter" else [OPERATIONS[name]]
    return found


_BY_KEY: Mapping[str, type[Operation]] = {item.key: item for item in _in_order()}
_JSON = "JSON in base64url"
_BOX = "a size such as 800x600, 800x or x600"
_CROP = "a size such as 400x300, a ratio such as 16:9, or face"
_CANVAS = "a size such as 800x600, 800x or x600, or a ratio such as 16:9"

SHORTHANDS: Mapping[str, Shorthand] = {
    option.name: option
    for option in (
        Shorthand(
            "redact", "JSON", "Redact these parts, as JSON in base64url.", partial(_list, "redact"), _JSON
        ),
        Shorthand(
            "resize", "WxH", "Size of the box: 800x600, 800x or x600.",
            lambda text: {"resize": _box(text)}, _BOX,
        ),
        _alias("mode", "auto|fit|fill|stretch", "Mode of the resize.", "resize", "mode"),
        Shorthand("gravity", "WORD", "What a resize or a crop keeps.", lambda _: {}),
        _alias("trim", "THRESHOLD", "Cut away a border of one color.", "trim", "threshold"),
        Shorthand("crop", "WxH|W:H|face", "The part to keep: 400x300, 16:9 or face.", _crop, _CROP),
        _alias("rotate", "DEGREES", "Rotate clockwise.", "rotate", "angle"),
        Shorthand("flip", "h|v|hv", "Mirror horizontally, vertically or both.", _flip, "h, v or hv"),
        _alias("scale", "FACTOR", "Multiply the size.", "scale", "size"),
        Shorthand("mask", "ellipse|RADIUS", "Cut to an ellipse, or round the corners.", _mask),
        Shorthand("canvas", "WxH|W:H", "Extend to a size or ratio: 800x600 or 16:9.", _canvas, _CANVAS),
        _alias("padding", "PIXELS", "Add space on all sides.", "padding", "size"),
        _alias("border", "PIXELS", "Draw a line around the picture.", "border", "size"),
        _alias("watermark", "ID", "Lay this picture over it.", "watermark", "id"),
        Shorthand(
            "layers", "JSON", "Lay layers over it, as JSON in base64url.", partial(_list, "layers"), _JSON
        ),
        _alias("pixellate", "VALUE", "Show coarse cells.", "pixellate", "value"),
        _alias("halftone", "VALUE", "Print in dots.", "halftone", "value"),
        _alias("sepia", "VALUE", "Shade brown.", "sepia", "value"),
        Shorthand(
            "blur", "VALUE", "Blur evenly.",
            lambda text: {"blur": {"mode": "gaussian", "value": _number(text)}},
        ),
    )
}  # fmt: skip
"""The shorthands by name."""

PARAMETER_OPTIONS: Mapping[str, ParameterOption] = {
    option.name: option
    for operation in _BY_KEY.values()
    for option in (ParameterOption(operation, param) for param in params(operation).values())
}
"""The options of all parameters by name, in the order in which operations are applied."""

OPTION_NAMES: Mapping[tuple[str, str], str] = {
    (option.operation.key, option.param.name): option.name for option in PARAMETER_OPTIONS.values()
}
"""The names of parameters' options, by the keys of operations and the names of parameters."""

OPTIONS: Mapping[str, Shorthand | ParameterOption] = {**SHORTHANDS, **PARAMETER_OPTIONS}
"""All options by name."""

_ALIASES = {option.alias: option.name for option in SHORTHANDS.values() if option.alias is not None}
_PLACES = {name: place for place, name in enumerate(OPTIONS)}
