"""The filters in URLs of thumbor, as data: their names and the patterns of their arguments.

As in thumbor, a filter with an unknown name or with arguments that do not match is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

import attrs

_WHOLE = r"[0-9]{1,9}"
_POSITIVE = r"[0-9]{0,8}[1-9][0-9]{0,8}"
_SIGNED = r"-?[0-9]{1,9}"
_DECIMAL = r"-?(?:[0-9]{1,9}\.?[0-9]{0,9}|\.[0-9]{1,9})"
_WEIGHT = r"-?[0-9]{1,9}(?:\.[0-9]{0,9})?"
_BOOLEAN = r"[Tt]rue|[Ff]alse|1|0"
_TEXT = r"'.+?'|[^,\s](?:[^,]*?[^,\s])?"  # without spaces at its ends, which could be split in many ways
_WORD = r"\w+"
_POSITION = r"-?[0-9]{1,9}p?|center|repeat"
_RATIO = r"-?[0-9]{1,9}|none"
_POINTS = r"\[(?:\([0-9]{1,9},[0-9]{1,9}\),?)*\]"

FILTERS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # name: (patterns of required arguments, of optional arguments)
    "background_color": ((_WORD,), ()),
    "blur": ((_POSITIVE,), (_DECIMAL,)),
    "brightness": ((_SIGNED,), ()),
    "colorize": ((_WHOLE, _WHOLE, _WHOLE, _TEXT), ()),
    "contrast": ((_SIGNED,), ()),
    "convolution": ((rf"{_WEIGHT}(?:;{_WEIGHT})*", _POSITIVE), (_BOOLEAN,)),
    "cover": ((), ()),
    "curve": ((_POINTS,) * 4, ()),
    "equalize": ((), ()),
    "extract_focal": ((), ()),
    "fill": ((_WORD,), (_BOOLEAN,)),
    "focal": ((_TEXT,), ()),
    "format": ((_TEXT,), ()),
    "grayscale": ((), ()),
    "max_age": ((_WHOLE,), ()),
    "max_bytes": ((_WHOLE,), ()),
    "no_upscale": ((), ()),
    "noise": ((_WHOLE,), (_WHOLE,)),
    "proportion": ((_DECIMAL,), ()),
    "quality": ((_WHOLE,), ()),
    "rgb": ((_SIGNED, _SIGNED, _SIGNED), ()),
    "rotate": ((_SIGNED,), ()),
    "round_corner": ((r"[0-9]{1,9}(?:\|[0-9]{1,9})?", _WHOLE, _WHOLE, _WHOLE), (_BOOLEAN,)),
    "saturation": ((_DECIMAL,), ()),
    "sharpen": ((_DECIMAL, _DECIMAL, _BOOLEAN), ()),
    "stretch": ((), ()),
    "strip_exif": ((), ()),
    "strip_icc": ((), ()),
    "upscale": ((), ()),
    "watermark": ((_TEXT, _POSITION, _POSITION, _WHOLE), (_RATIO, _RATIO)),
}  # fmt: skip


@attrs.frozen
class Filter:
    """A filter and the texts of its arguments. Optional ones that were not given are left out."""

    name: str
    arguments: tuple[str, ...] = ()


def read_filters(texts: Iterable[str]) -> tuple[Filter, ...]:
    """Return the filters of a path, which are texts such as ``quality(70)``, percent-encoded or not."""
    found = []
    for text in texts:
        name, _, rest = text.partition("(")
        pattern = _PATTERNS.get(name)
        match = pattern.match(unquote(rest)) if pattern else None
        if match:
            found.append(Filter(name, tuple(_unquoted(item) for item in match.groups() if item)))
    return tuple(found)


def is_true(text: str) -> bool:
    """Return the value of a boolean argument."""
    return text in ("true", "True", "1")


def _pattern(required: tuple[str, ...], optional: tuple[str, ...]) -> re.Pattern[str]:
    parts = [rf"\s*({pattern})\s*" for pattern in (*required, *optional)]
    texts = [part if place == 0 else f",{part}" for place, part in enumerate(parts)]
    texts = [f"(?:{text})" + ("" if place < len(required) else "?") for place, text in enumerate(texts)]
    return re.compile("".join(texts) + r"\)")


def _unquoted(text: str) -> str:
    quoted = re.fullmatch("'(.+)'", text)
    return quoted[1] if quoted else text


_PATTERNS = {name: _pattern(*patterns) for name, patterns in FILTERS.items()}
