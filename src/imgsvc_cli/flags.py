"""Command-line flags for every parameter of a request, generated from the declarations.

A flag is named by operation and parameter, such as ``--resize-width``; adjustments and parameters of the
output need no prefix. The shorthands for common requests stand in one table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import click

from imgsvc_cli.completion import FileOrUrl, offering
from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.spec import FILTERS, OPERATIONS, PHASES, Operation, Param, params
from imgsvc_core.spec.declare import doc
from imgsvc_core.spec.kinds import Boolean, Choice, Integer, Number

_WITHOUT_PREFIX = frozenset({"adjust", "auto", "output"})
_FILTER_KEYS = frozenset(item.key for item in FILTERS)
_MAX_METAVAR = 40

Document = dict[str, Any]


class Flag(click.Option):
    """An option that belongs to a section of the help."""

    def __init__(self, *args: Any, section: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose help shows its flags operation by operation."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options that are not flags first, then a section for each operation."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                section = param.section if isinstance(param, Flag) else "Options"
                sections.setdefault(section, []).append(record)
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records, col_max=28)


def request_flags(command: click.Command) -> click.Command:
    """Give a command the shorthands, and a flag for every parameter, in the order of application."""
    command.params += [_shorthand(name, metavar, text) for name, (metavar, text, _) in SHORTHANDS.items()]
    for operation in _operations():
        command.params += [_flag(operation, param) for param in params(operation).values()]
    return command


def flag_name(operation: type[Operation], name: str) -> str:
    """Return the flag of a parameter, without the leading dashes."""
    words = name if operation.key in _WITHOUT_PREFIX else f"{operation.key}-{name}"
    return words.replace("_", "-")


def request_document(flags: Mapping[str, Any], base: Document | None = None) -> Document:
    """Return the request of some flags, merged into the request of a file.

    Raises:
        SpecError: a shorthand cannot be read.
    """
    request = dict(base or {})
    for name, (_, _, read) in SHORTHANDS.items():
        if flags.get(name) is not None:
            for key, part in read(flags[name]).items():
                _merge(request, key, part)
    for operation in _operations():
        for name, param in params(operation).items():
            value = flags.get(flag_name(operation, name).replace("-", "_"))
            if value is not None:
                _merge(request, operation.key, {name: _typed(param, value)})
    if flags.get("gravity") is not None:
        crops = request.get("crop") is not None and request.get("resize") is None
        _merge(request, "crop" if crops else "resize", {"gravity": flags["gravity"]})
    return request


def digits(text: str) -> int | None:
    """Return the number that ASCII digits spell, or `None` for other or too long texts."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None


def _operations() -> list[type[Operation]]:
    """Return all operations and filters in the order of application."""
    found: list[type[Operation]] = []
    for phase in PHASES:
        if phase == "filter":
            found += FILTERS
        elif phase in OPERATIONS:
            found.append(OPERATIONS[phase])
    return found


def _shorthand(name: str, metavar: str, text: str) -> Flag:
    kind = params(OPERATIONS["resize"])["gravity"].kind if name == "gravity" else None
    offered = kind.options if isinstance(kind, Choice) else filter(str.islower, metavar.split("|"))
    type = FileOrUrl() if metavar == "FILE" else None
    return Flag(
        [f"--{name}"], metavar=metavar, help=text, section="Shorthands",
        type=type, shell_complete=None if type else offering(offered),
    )  # fmt: skip


def _flag(operation: type[Operation], param: Param) -> Flag:
    name = flag_name(operation, param.name)
    section = f"{operation.title}: {doc(operation).rstrip('.')}"
    if isinstance(param.kind, Boolean):
        return Flag([f"--{name}/--no-{name}"], default=None, help=param.doc, section=section)
    words = param.kind.options if isinstance(param.kind, Choice) else ()
    facts = [] if words else [param.kind.expectation]
    if param.unit:
        facts.append(param.unit)
    if not param.required and param.default is not None:
        facts.append(f"default {param.kind.unparse(param.default)}")
    metavar = "|".join(words) or "VALUE"
    return Flag(
        [f"--{name}"],
        metavar=metavar if len(metavar) < _MAX_METAVAR else "WORD",
        help=f"{param.doc} [{'; '.join(facts)}]" if facts else param.doc,
        section=section,
        shell_complete=offering(words) if words else None,
    )


def _typed(param: Param, value: Any) -> Any:
    """Convert the value of a flag to the type that it has in JSON. The parser refuses what stays text."""
    if isinstance(param.kind, Integer | Number) and isinstance(value, str):
        return _number(value)
    return value


def _merge(request: Document, key: str, part: Document) -> None:
    """Merge parameters into an operation; flags override the file, whose mistakes stay for the parser."""
    if key not in _FILTER_KEYS:
        request[key] = _merged(request.get(key), part)
        return
    old_name = request.get("filter") is None and request.get("stylize") is not None
    place = "stylize" if old_name else "filter"
    filters = {} if request.get(place) is None else request[place]
    if isinstance(filters, Mapping):
        request[place] = {**filters, key: _merged(filters.get(key), part)}
    elif isinstance(filters, list):
        index = next((n for n, item in enumerate(filters) if isinstance(item, Mapping) and key in item), None)
        if index is None:
            request[place] = [*filters, {key: part}]
        else:
            changed = {**filters[index], key: _merged(filters[index][key], part)}
            request[place] = [*filters[:index], changed, *filters[index + 1 :]]


def _merged(present: Any, part: Document) -> Any:
    if present is None:
        return part
    return {**present, **part} if isinstance(present, Mapping) else present


def _number(text: str) -> Any:
    """Return the number that a text spells as in JSON or nearly so; anything else stays text."""
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
    sides = {name: digits(side) for name, side in (("width", width), ("height", height)) if side}
    if not cross or not sides or None in sides.values():
        expected = "a size such as 800x600, 800x or x600"
        raise SpecError([Problem(flag, f"Option '--{flag}' must be {expected}, got '{text}'")])
    return sides


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
    radius = digits(text)
    return {"mask": {"shape": text} if radius is None else {"shape": "rounded", "radius": radius}}


def _single(key: str, name: str) -> Callable[[str], Document]:
    return lambda text: {key: {name: _number(text)}}


SHORTHANDS: Mapping[str, tuple[str, str, Callable[[str], Document]]] = {
    "resize": (
        "WxH",
        "Size of the box: 800x600, 800x or x600.",
        lambda text: {"resize": _box("resize", text)},
    ),
    "mode": ("auto|fit|fill|stretch", "Mode of the resize.", lambda text: {"resize": {"mode": text}}),
    "gravity": ("WORD", "What a resize or a crop keeps.", lambda _: {}),
    "crop": ("WxH|W:H|face", "The part to keep: 400x300, 16:9 or face.", _crop),
    "rotate": ("DEGREES", "Rotate clockwise.", _single("rotate", "angle")),
    "flip": ("h|v|hv", "Mirror horizontally, vertically or both.", _flip),
    "scale": ("FACTOR", "Multiply the size.", _single("scale", "size")),
    "mask": ("ellipse|RADIUS", "Cut to an ellipse, or round the corners.", _mask),
    "padding": ("PIXELS", "Add space on all sides.", _single("padding", "size")),
    "border": ("PIXELS", "Draw a line around the picture.", _single("border", "size")),
    "watermark": ("FILE", "Lay this picture over it.", lambda text: {"watermark": {"id": text}}),
    "pixellate": ("VALUE", "Show coarse cells.", _single("pixellate", "value")),
    "halftone": ("VALUE", "Print in dots.", _single("halftone", "value")),
    "sepia": ("VALUE", "Shade brown.", _single("sepia", "value")),
    "blur": (
        "VALUE",
        "Blur evenly.",
        lambda text: {"blur": {"mode": "gaussian", "value": _number(text)}},
    ),
}
