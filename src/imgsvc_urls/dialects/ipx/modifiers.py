"""The modifiers in URLs of ipx: their names and arguments, as data."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import unquote

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_urls.dialects.colors import css_color
from imgsvc_urls.errors import DialectError

Modifier: TypeAlias = tuple[str, tuple[Any, ...]]
"""The name of a modifier as it was written, and its arguments; `None` stands for one that was left out."""

_NUMBER = re.compile(r"-?[0-9]{1,16}(?:\.[0-9]{1,17})?")
_SIZE = re.compile(r"([0-9]{1,9})(?:x([0-9]{1,9}))?")
_FITS = ("contain", "cover", "fill", "inside", "outside")
_KERNELS = ("nearest", "linear", "cubic", "mitchell", "lanczos2", "lanczos3", "mks2013", "mks2021")
_EXTENSIONS = ("background", "copy", "repeat", "mirror")
_PRECISIONS = ("integer", "float", "approximate")
_POSITIONS = {
    "center": "center", "centre": "center", "0": "center",
    "top": "top", "north": "top", "1": "top",
    "right": "right", "east": "right", "2": "right",
    "bottom": "bottom", "south": "bottom", "3": "bottom",
    "left": "left", "west": "left", "4": "left",
    "right top": "top-right", "northeast": "top-right", "5": "top-right",
    "right bottom": "bottom-right", "southeast": "bottom-right", "6": "bottom-right",
    "left bottom": "bottom-left", "southwest": "bottom-left", "7": "bottom-left",
    "left top": "top-left", "northwest": "top-left", "8": "top-left",
    "entropy": "smart", "attention": "smart", "16": "smart", "17": "smart",
}  # fmt: skip


@attrs.frozen
class Argument:
    """What an argument of a modifier accepts. ``read`` raises `KeyError` or `ValueError` for the rest."""

    read: Callable[[str], Any]
    expected: str
    required: bool = False


def _number(minimum: float, maximum: float, *, whole: bool = False, required: bool = False) -> Argument:
    def read(text: str) -> float:
        if not _NUMBER.fullmatch(text):
            raise ValueError(text)
        value = float(text)
        if not minimum <= value <= maximum or (whole and value % 1):
            raise ValueError(text)
        return int(value) if whole else value

    kind = "an integer" if whole else "a number"
    ends = f"of at least {minimum:g}" if maximum == math.inf else f"within {minimum:g} to {maximum:g} range"
    return Argument(read, kind if minimum == -math.inf else f"{kind} {ends}", required)


def _word(words: Mapping[str, Any] | Iterable[str]) -> Argument:
    values = words if isinstance(words, Mapping) else {word: word for word in words}
    return Argument(values.__getitem__, f"one of {', '.join(values)}")


def _size(text: str) -> tuple[int, int]:
    found = _SIZE.fullmatch(text)
    width, height = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not width or not height:
        raise ValueError(text)
    return width, height


def _position(text: str) -> str:
    return _POSITIONS[text.replace("-", " ", 1)]


_SIDE = _number(1, math.inf, whole=True)
_EDGE = _number(0, 10_000, whole=True)
_FACTOR = _number(0, math.inf)
_COLOR = Argument(css_color, "a hexadecimal color such as f00, or a CSS color")
_OFFSET = _number(0, 10**8, whole=True, required=True)
_EXTENT = _number(1, 10**8, whole=True, required=True)
_CURVE = _number(0, 1_000_000)
_WIDTH = _number(1, 100, whole=True)
_BOOLEAN = _word({"true": True, "1": True, "false": False, "0": False})

MODIFIERS: Mapping[str, tuple[Argument, ...]] = {
    "animated": (),
    "autoorient": (),
    "background": (_COLOR,),
    "blur": (_number(0.3, 1000), _word(_PRECISIONS), _number(0.001, 1)),
    "brightness": (attrs.evolve(_FACTOR, required=True),),
    "clahe": (attrs.evolve(_WIDTH, required=True), _WIDTH, _number(0, 100, whole=True)),
    "dilate": (_WIDTH,),
    "enlarge": (),
    "erode": (_WIDTH,),
    "extend": (_EDGE, _EDGE, _EDGE, _EDGE, _word(_EXTENSIONS)),
    "extract": (_OFFSET, _OFFSET, _EXTENT, _EXTENT),
    "fit": (_word(_FITS),),
    "flatten": (),
    "flip": (),
    "flop": (),
    "format": (Argument(str, "a format"),),
    "gamma": (_number(1, 3), _number(1, 3)),
    "grayscale": (),
    "height": (_SIDE,),
    "hue": (_number(-math.inf, math.inf, whole=True, required=True),),
    "kernel": (_word(_KERNELS),),
    "lightness": (_number(-math.inf, math.inf, required=True),),
    "linear": (_number(-math.inf, math.inf), _number(-math.inf, math.inf)),
    "median": (_number(1, 1000, whole=True),),
    "modulate": (_FACTOR, _FACTOR, _number(-math.inf, math.inf, whole=True), _number(-math.inf, math.inf)),
    "negate": (_BOOLEAN,),
    "normalize": (_number(0, 99), _number(1, 100)),
    "opacity": (_number(0, 1, required=True),),
    "position": (Argument(_position, f"one of {', '.join(_POSITIONS)}"),),
    "quality": (_number(1, 100, whole=True),),
    "resize": (Argument(_size, "{width}x{height} of positive integers"),),
    "rotate": (_number(-3600, 3600),),
    "saturation": (attrs.evolve(_FACTOR, required=True),),
    "sharpen": (_number(0.000_001, 10), _CURVE, _CURVE, _CURVE, _CURVE, _CURVE),
    "threshold": (_number(0, 255, whole=True), _BOOLEAN),
    "tint": (_COLOR,),
    "trim": (_number(0, math.inf),),
    "unflatten": (),
    "width": (_SIDE,),
}  # fmt: skip
"""The arguments of each modifier."""

ALIASES = {
    "a": "animated", "b": "background", "crop": "extract", "f": "format", "h": "height", "pos": "position",
    "q": "quality", "s": "resize", "w": "width",
}  # fmt: skip
"""Other names of modifiers."""

CONTEXT = ("quality", "fit", "position", "background")
"""What is set before everything else."""


@lru_cache(1024)  # a page asks for many pictures in the same way
def read_modifiers(text: str) -> tuple[Modifier, ...]:
    """Return the modifiers of the first segment of a path, in the order in which ipx applies them.

    Those with unknown names are left out. Separators may be encoded, as some clients and proxies do it.

    Raises:
        DialectError: an argument is wrong; the message names the modifier.
    """
    asked: dict[str, str] = {}
    for item in re.split("[&,]", unquote(text)) if text != "_" else ():
        name, *values = re.split("[:=_]", item)
        asked[name] = "_".join(map(unquote, values))
    modifiers = [
        (name, _arguments(name, MODIFIERS[full], value))
        for name, value in asked.items()
        if (full := ALIASES.get(name, name)) in MODIFIERS
    ]
    _check_together(modifiers)
    return tuple(sorted(modifiers, key=_place))


def _check_together(modifiers: Iterable[Modifier]) -> None:
    """Raise `DialectError` if the share of ``normalize`` that becomes black reaches that of white."""
    lower, upper = next((arguments for name, arguments in modifiers if name == "normalize"), (None, None))
    if (1 if lower is None else lower) >= (99 if upper is None else upper):
        raise DialectError(
            f"Modifier 'normalize' must have a lower percentile below the upper, got {lower} and {upper}."
        )


def _place(modifier: Modifier) -> tuple[bool, str]:
    name = modifier[0]
    in_context = ALIASES.get(name, name) in CONTEXT
    return not in_context, "" if in_context else name


def _arguments(name: str, accepted: tuple[Argument, ...], text: str) -> tuple[Any, ...]:
    values = text.split("_")
    values += [""] * (len(accepted) - len(values))
    return tuple(_argument(name, argument, value) for argument, value in zip(accepted, values, strict=False))


def _argument(name: str, argument: Argument, text: str) -> Any:
    if text in ("", "undefined") and not argument.required:
        return None
    try:
        return argument.read(text)
    except (KeyError, ValueError):
        raise DialectError(f"Modifier '{name}' must be {argument.expected}, got {shown(text)}.") from None
