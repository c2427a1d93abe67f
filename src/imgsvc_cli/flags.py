"""Command-line flags, one for every parameter of a request, made from the declarations.

A parameter's flag is its operation and its name, such as ``--resize-width``; adjustments and output
parameters need no prefix. The few shorthands for what is typed most stand in one table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import click

from imgsvc_cli.completion import Place, offering
from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.spec import FILTERS, OPERATIONS, Operation, Param, params
from imgsvc_core.spec.declare import doc
from imgsvc_core.spec.kinds import Boolean, Choice, Integer, Number

_WITHOUT_PREFIX = frozenset({"adjust", "auto", "output"})
_FILTER_KEYS = frozenset(item.key for item in FILTERS)

Document = dict[str, Any]


class Flag(click.Option):
    """An option that knows the section of the help it belongs to."""

    def __init__(self, *args: Any, section: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


def request_flags() -> list[Flag]:
    """The shorthands, and a flag for every parameter of every operation, in the order of application."""
    short = [_shorthand(name, metavar, text) for name, (metavar, text, _) in SHORTHANDS.items()]
    operations: list[type[Operation]] = []
    for key, operation in OPERATIONS.items():
        operations += FILTERS if key == "mask" else ()
        operations.append(operation)
    return short + [
        _flag(operation, param) for operation in operations for param in params(operation).values()
    ]


def flag_name(operation: type[Operation], name: str) -> str:
    """The flag of a parameter, without the dashes in front."""
    words = name if operation.key in _WITHOUT_PREFIX else f"{operation.key}-{name}"
    return words.replace("_", "-")


def document(values: Mapping[str, Any], base: Document | None = None) -> Document:
    """The request of the flags given, on top of one from a file.

    Raises:
        SpecError: a shorthand cannot be read.
    """
    request = {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in (base or {}).items()
    }
    for name, (_, _, read) in SHORTHANDS.items():
        text = values.get(name)
        if text is not None:
            for key, part in read(text).items():
                _merge(request, key, part)
    for operation in (*OPERATIONS.values(), *FILTERS):
        for name, param in params(operation).items():
            value = values.get(flag_name(operation, name).replace("-", "_"))
            if value is not None:
                _merge(request, operation.key, {name: _typed(param, value)})
    if values.get("gravity") is not None:
        cropped = request.get("crop") is not None and request.get("resize") is None
        owner = "crop" if cropped else "resize"
        _merge(request, owner, {"gravity": values["gravity"]})
    return request


def _shorthand(name: str, metavar: str, text: str) -> Flag:
    words = params(OPERATIONS["resize"])["gravity"].kind if name == "gravity" else None
    offered = words.options if isinstance(words, Choice) else filter(str.islower, metavar.split("|"))
    type = Place() if metavar == "FILE" else None
    return Flag(
        [f"--{name}"], metavar=metavar, help=text, section="Shorthands",
        type=type, shell_complete=None if type else offering(offered),
    )  # fmt: skip


def _flag(operation: type[Operation], param: Param) -> Flag:
    name = flag_name(operation, param.name)
    section = f"{operation.title}: {doc(operation).rstrip('.')}"
    if isinstance(param.kind, Boolean):
        return Flag([f"--{name}/--no-{name}"], default=None, help=param.doc, section=section)
    facts = [] if isinstance(param.kind, Choice) else [param.kind.expectation]
    if param.unit:
        facts.append(param.unit)
    if not param.required and param.default is not None:
        facts.append(f"default {param.kind.unparse(param.default)}")
    metavar = "|".join(param.kind.options) if isinstance(param.kind, Choice) else "VALUE"
    text = f"{param.doc} [{'; '.join(facts)}]" if facts else param.doc
    return Flag(
        [f"--{name}"], metavar=metavar if len(metavar) < 40 else "WORD", help=text, section=section,
        shell_complete=offering(param.kind.options) if isinstance(param.kind, Choice) else None,
    )  # fmt: skip


def _typed(param: Param, value: Any) -> Any:
    """The value as JSON would have it; what cannot be read stays text, for the parser to name."""
    if isinstance(param.kind, Integer | Number) and isinstance(value, str):
        return _number(value)
    return value


def _merge(request: Document, key: str, part: Mapping[str, Any]) -> None:
    """Add parameters to an operation; flags win over what is there, unless the parser has to name it."""
    if key not in _FILTER_KEYS:
        request[key] = _merged(request[key] if request.get(key) is not None else {}, part)
        return
    old = request.get("filter") is None and request.get("stylize") is not None
    place = "stylize" if old else "filter"
    filters = request[place] if request.get(place) is not None else {}
    if isinstance(filters, list):
        where = next((n for n, item in enumerate(filters) if isinstance(item, Mapping) and key in item), None)
        if where is None:
            request[place] = [*filters, {key: dict(part)}]
        else:
            changed = {**filters[where], key: _merged(filters[where][key], part)}
            request[place] = [*filters[:where], changed, *filters[where + 1 :]]
    elif isinstance(filters, Mapping):
        request[place] = {**filters, key: _merged(filters.get(key, {}), part)}


def _merged(present: Any, part: Mapping[str, Any]) -> Any:
    return {**present, **part} if isinstance(present, Mapping) else dict(part) if present is None else present


def whole(text: str) -> int | None:
    """The number of some digits, unless they are no ASCII or too many for any size."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None


def _number(text: str) -> Any:
    """The number, written as in JSON or nearly so; anything else stays text."""
    if not text.isascii() or "_" in text:
        return text
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _box(flag: str, text: str) -> Document:
    width, cross, height = text.lower().partition("x")
    sides = {name: whole(side) for name, side in (("width", width), ("height", height)) if side}
    given = {name: side for name, side in sides.items() if side is not None}
    if not cross or not given or given != sides:
        expected = "a size such as 800x600, 800x or x600"
        raise SpecError([Problem(flag, f"Option '--{flag}' must be {expected}, got '{text}'")])
    return given


def _crop(text: str) -> Document:
    if ":" in text:
        return {"crop": {"mode": "ratio", "ratio": text}}
    if text == "face":
        return {"crop": {"mode": "face"}}
    return {"crop": _box("crop", text)}


def _flip(text: str) -> Document:
    if not text or set(text) - set("hv"):
        raise SpecError([Problem("flip", f"Option '--flip' must be h, v or hv, got '{text}'")])
    return {"flip": {"horizontal": "h" in text, "vertical": "v" in text}}


def _mask(text: str) -> Document:
    radius = whole(text)
    return {"mask": {"shape": text} if radius is None else {"shape": "rounded", "radius": radius}}


def _single(key: str, name: str) -> Callable[[str], Document]:
    return lambda text: {key: {name: _number(text)}}


SHORTHANDS: Mapping[str, tuple[str, str, Callable[[str], Document]]] = {
    "resize": (
        "WxH",
        "Size of the box: 800x600, 800x or x600.",
        lambda text: {"resize": _box("resize", text)},
    ),
    "mode": ("auto|fit|fill|stretch", "How it is resized.", lambda text: {"resize": {"mode": text}}),
    "gravity": ("WORD", "What a resize or a crop keeps.", lambda _: {}),
    "crop": ("WxH|W:H|face", "The part to keep: 400x300, 16:9 or face.", _crop),
    "rotate": ("DEGREES", "Turn clockwise.", _single("rotate", "angle")),
    "flip": ("h|v|hv", "Mirror horizontally, vertically or both.", _flip),
    "scale": ("FACTOR", "Multiply the size.", _single("scale", "size")),
    "mask": ("ellipse|RADIUS", "Cut to an ellipse, or round the corners.", _mask),
    "padding": ("PIXELS", "Room on all sides.", _single("padding", "size")),
    "border": ("PIXELS", "Line around the picture.", _single("border", "size")),
    "watermark": ("FILE", "Picture to lay over the picture.", lambda text: {"watermark": {"id": text}}),
    "pixellate": ("VALUE", "Coarse cells.", _single("pixellate", "value")),
    "halftone": ("VALUE", "Printed dots.", _single("halftone", "value")),
    "sepia": ("VALUE", "Brown shading.", _single("sepia", "value")),
    "blur": ("VALUE", "Gaussian blur.", lambda text: {"blur": {"mode": "gaussian", "value": _number(text)}}),
}
