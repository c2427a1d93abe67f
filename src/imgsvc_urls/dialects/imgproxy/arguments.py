"""The arguments of options in URLs of imgproxy: what each accepts, and its value."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.spec import Color
from imgsvc_core.spec.options import from_base64
from imgsvc_urls.dialects.reading import decimal, whole
from imgsvc_urls.errors import DialectError

NOT_FOUND, FORBIDDEN = 404, 403

FORMATS: Mapping[str, str] = {
    "jpg": "jpg", "jpeg": "jpg", "png": "png", "webp": "webp", "gif": "gif", "avif": "avif", "heic": "heic",
    "tiff": "tiff", "jxl": "jxl", "ico": "ico", "bmp": "bmp", "svg": "svg",
}  # fmt: skip
"""Our names of the formats."""

RESIZING_TYPES = ("fit", "fill", "fill-down", "force", "auto")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{3}){1,2}")
_USUAL_THRESHOLD = 10
_MAX_TEXT = 200


def not_found(message: str) -> DialectError:
    """Return the error of a URL that imgproxy answers as one of which there is no picture."""
    return DialectError(message, status=NOT_FOUND)


@attrs.frozen
class Argument:
    """What an argument accepts. ``read`` raises `KeyError` or `ValueError` for anything else."""

    read: Callable[[str], Any]
    expected: str

    def __call__(self, name: str, text: str) -> Any:
        """Return the value of an argument."""
        try:
            return self.read(text)
        except (KeyError, ValueError):
            raise not_found(f"Option '{name}' must be {self.expected}, got {shown(text)}.") from None


def whole_within(minimum: int, maximum: int) -> Callable[[str], int]:
    """Return what reads an integer of a range."""

    def read(text: str) -> int:
        if not minimum <= (value := whole(text)) <= maximum:
            raise ValueError(text)
        return value

    return read


def decimal_if(condition: Callable[[float], bool]) -> Callable[[str], float]:
    """Return what reads a decimal number for which a condition holds."""

    def read(text: str) -> float:
        if not condition(value := decimal(text)):
            raise ValueError(text)
        return value

    return read


def _threshold(text: str) -> float:
    value = decimal(text)
    return _USUAL_THRESHOLD if value < 0 else value  # which libvips leaves aside


def one_of(words: Collection[str]) -> Callable[[str], str]:
    """Return what reads one of some words."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return read


def _angle(text: str) -> int:
    if (angle := whole(text)) % 90:
        raise ValueError(text)
    return angle % 360


def _hex_color(text: str) -> Color:
    if not _HEX.fullmatch(text):
        raise ValueError(text)
    return Color.parse(text)


def _text(text: str) -> str:
    if not 0 < len(text) <= _MAX_TEXT or re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", text):
        raise ValueError(text)
    return re.sub(r"[/\\]", "_", text)  # as browsers save the file


def _base64_text(text: str) -> str:
    return _text(from_base64(text).decode())


SIZE = Argument(whole_within(0, 2**31 - 1), "an integer of at least 0")
COUNT = Argument(whole_within(1, 2**31 - 1), "an integer of at least 1")
NUMBER = Argument(decimal, "a decimal number")
POSITIVE = Argument(decimal_if(lambda value: 0 < value <= 10**6), "a decimal number greater than 0")
THRESHOLD = Argument(_threshold, "a decimal number")
NOT_NEGATIVE = Argument(decimal_if(lambda value: 0 <= value < 10**9), "a decimal number of at least 0")
SHARE = Argument(decimal_if(lambda value: 0 <= value <= 1), "a decimal number within 0 to 1 range")
BOOLEAN = Argument(lambda text: text in _TRUE, "a boolean")  # anything else is false, never an error
QUALITY = Argument(whole_within(0, 100), "an integer within 0 to 100 range")
BYTE = Argument(whole_within(0, 255), "three integers within 0 to 255 range, or a hex color")
COLOR = Argument(_hex_color, "a hex color RGB or RRGGBB")
ANGLE = Argument(_angle, "a multiple of 90")
TYPE = Argument(one_of(RESIZING_TYPES), f"one of {', '.join(RESIZING_TYPES)}")
FORMAT = Argument(FORMATS.__getitem__, f"one of {', '.join(FORMATS)}")
TIME = Argument(whole_within(0, 2**53), "a Unix time")
NAME = Argument(_text, f"a file name of at most {_MAX_TEXT} characters")
BASE64_NAME = Argument(_base64_text, "a file name in URL-safe base64")
ANYTHING = Argument(lambda text: text, "a text")


def check_count(name: str, arguments: list[str], most: int) -> None:
    """Raise `DialectError` if an option has more arguments than it takes."""
    if len(arguments) > most:
        raise not_found(f"Option '{name}' must have at most {most} arguments, got {len(arguments)}.")
