"""The path of a URL of imagor: signature, parts, filters and image. Many parts are those of thumbor."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from typing import Literal
from urllib.parse import unquote, unquote_plus

import attrs

from imgsvc_core.plan.geometry import Box, Size
from imgsvc_urls.dialects.reading import WRONG_SIGNATURE, decimal, is_one_of, whole
from imgsvc_urls.dialects.thumbor import path as thumbor
from imgsvc_urls.dialects.thumbor.path import ALIGNMENT, FIT, TRIM, UNSAFE, CommonParts, common_parts
from imgsvc_urls.errors import DialectError

FORBIDDEN, NOT_FOUND, NOT_ACCEPTABLE = 403, 404, 406

SignerType = Literal["sha1", "sha256", "sha512"]

_PARTS = re.compile(
    rf"""
    (?:(?P<meta>meta)/)?
    {TRIM}
    (?:(?P<left>(?:0?\.)?[0-9]+)x(?P<top>(?:0?\.)?[0-9]+)
       :(?P<right>(?:[01]?\.)?[0-9]+)x(?P<bottom>(?:[01]?\.)?[0-9]+)/)?
    {FIT}
    (?:(?P<mirrored>-)?(?P<width>[0-9]*)x(?P<flipped>-)?(?P<height>[0-9]*)/)?
    (?:(?P<pad_left>[0-9]+)x(?P<pad_top>[0-9]+)(?::(?P<pad_right>[0-9]+)x(?P<pad_bottom>[0-9]+))?/)?
    {ALIGNMENT}
    (?P<rest>.*)
    """,
    re.VERBOSE | re.DOTALL,
)
_SIGNED = re.compile(r"(?P<signature>[A-Za-z0-9_=-]{17,})/(?P<text>.*)", re.DOTALL)
_FIT = "adaptive-full-fit-in"  # as long as a signature
_BASE64 = "b64:"
_SIDES = re.compile(r"(-?)((?:full|f)(?:-[0-9]{1,9})?|[0-9]*)x(-?)((?:full|f)(?:-[0-9]{1,9})?|[0-9]*)")
_BREAKS = re.compile(r"[\r\n\v\f\x85\u2028\u2029]")
_PARTS_WITHIN = re.compile(r"(?:[^/:]+/)*(?:filters:[a-z_]+\(|[0-9.]+x[0-9.]+:[0-9.]+x[0-9.]+/)")
_MAX_DIGITS = 9
_LARGEST_NUMBER = 1e9


@attrs.frozen
class Filter:
    """A filter and its arguments."""

    name: str
    arguments: tuple[str, ...] = ()

    def text(self, place: int, default: str = "") -> str:
        """Return an argument."""
        return self.arguments[place] if place < len(self.arguments) else default

    def whole(self, place: int = 0) -> int:
        """Return an argument as an integer, or 0 if it is none."""
        try:
            return whole(self.text(place))
        except ValueError:
            return 0

    def number(self, place: int = 0) -> float:
        """Return an argument as a number, or 0 if it is none. Numbers beyond all uses are cut off."""
        try:
            return max(-_LARGEST_NUMBER, min(decimal(self.text(place)), _LARGEST_NUMBER))
        except ValueError:
            return 0.0


@attrs.frozen(kw_only=True)
class Parts(CommonParts):
    """The parts of a path. Free sides are 0."""

    crop: tuple[float, float, float, float] | None  # left, top, right, bottom
    part: Box | None = None  # what a trim has left of the crop
    width: int
    height: int
    padding: tuple[int, int, int, int]  # left, top, right, bottom
    halign: str
    valign: str
    filters: tuple[Filter, ...]
    image: str


def sign(key: str, text: str, type_: SignerType = "sha1", length: int = 0) -> str:
    """Return the signature of all that follows it in a path, without a slash before.

    It has at most ``length`` characters, if that is not 0.
    """
    return thumbor.sign(key, text, type_)[: length or None]


def verified(
    path: str, keys: Sequence[str], type_: SignerType, length: int, *, unsafe: bool
) -> tuple[str, bool]:
    """Return all of a path after its signature, and whether it was signed.

    Raises:
        DialectError: the signature is that of none of the keys, or unsigned URLs are not allowed.
    """
    path = _BREAKS.sub("", path)
    first, _, rest = path.lstrip("/").partition("/")
    if unsafe and first == UNSAFE:
        return rest, False
    for form in (path, unquote_plus(path)):  # some clients encode the whole path
        found = _SIGNED.fullmatch(form.lstrip("/"))
        if found is None or found["signature"] == _FIT:
            continue
        if is_one_of(found["signature"], [sign(key, found["text"], type_, length) for key in keys]):
            return found["text"], True
    raise DialectError(WRONG_SIGNATURE, status=FORBIDDEN)


def split(text: str) -> Parts:
    """Return the parts of a path after its signature.

    Raises:
        DialectError: the path names no image, or a number is too long.
    """
    parts = _parts(text)
    if not parts.image:
        raise DialectError("The URL must end with the address of an image, got none.", status=NOT_FOUND)
    return parts


def _parts(text: str) -> Parts:
    """Return the parts of a path, whose image may be empty."""
    found, filters, image = _read(text)
    if _PARTS_WITHIN.match(address(image)):
        found, filters, image = _read(unquote(text))  # some clients encode colons and brackets
    corners = [found[name] for name in ("left", "top", "right", "bottom")]
    left, top = _whole(found["pad_left"]), _whole(found["pad_top"])
    right = left if found["pad_right"] is None else _whole(found["pad_right"])
    bottom = top if found["pad_bottom"] is None else _whole(found["pad_bottom"])
    box = tuple(decimal(corner[:_MAX_DIGITS]) for corner in corners if corner is not None)
    return Parts(
        **common_parts(found),
        crop=box if any(box) else None,  # type: ignore[arg-type]
        width=_whole(found["width"]),
        height=_whole(found["height"]),
        padding=(left, top, right, bottom),
        halign=found["halign"] or "",
        valign=found["valign"] or "",
        filters=filters,
        image=address(image),
    )


def split_overlay(text: str, size: Size) -> Parts:
    """Return the parts of the path of a picture that is laid over another one. Its image may be empty.

    Sides may be ``f`` or ``full``, those of the picture below, or ``f-20`` for 20 pixels less.
    """
    segments = unquote_plus(text).split("/")
    for place, segment in enumerate(segments):
        found = _SIDES.fullmatch(segment)
        if found:
            flipped, width, mirrored, height = found.groups()
            segments[place] = f"{flipped}{_of(width, size.width)}x{mirrored}{_of(height, size.height)}"
        if found or segment.startswith("filters:"):
            break
    return _parts("/".join(segments))


def _of(side: str, whole: int) -> str:
    return str(whole - int(side.partition("-")[2] or 0)) if side.startswith("f") else side


def _read(text: str) -> tuple[re.Match[str], tuple[Filter, ...], str]:
    """Return the parts before the filters of a text, the filters, and the image."""
    found = _PARTS.fullmatch(text.lstrip("/"))
    assert found is not None  # all parts are optional
    return found, *_filters(found["rest"])


def address(text: str) -> str:
    """Return the address of an image, without its encoding."""
    image = unquote_plus(text)
    if image.startswith(_BASE64):
        digits = image.removeprefix(_BASE64)
        try:
            return base64.b64decode(digits + "=" * (-len(digits) % 4), altchars=b"-_", validate=True).decode()
        except (binascii.Error, ValueError):  # a file may have such a name
            return image
    return image


def _filters(text: str) -> tuple[tuple[Filter, ...], str]:
    """Return the filters at the beginning of a text, and the image behind them."""
    if not text.startswith("filters:"):
        return (), text
    found, depth, start = list[Filter](), 0, len("filters:")
    for place, letter in enumerate(text):
        if place < start:
            continue
        if letter in "()":
            depth += 1 if letter == "(" else -1
        elif depth == 0 and letter in ":/":
            found.append(_filter(text[start:place]))
            start = place + 1
            if letter == "/":
                return tuple(found), text[start:]
    return (), ""


def _filter(text: str) -> Filter:
    name, _, arguments = text.partition("(")
    return Filter(name, tuple(_arguments(arguments.removesuffix(")"))))


def _arguments(text: str) -> Iterator[str]:
    """Yield what is between commas, but not between those in brackets."""
    depth, start = 0, 0
    for place, letter in enumerate(text):
        if letter in "()":
            depth += 1 if letter == "(" else -1
        elif letter == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    if text[start:]:
        yield text[start:]


def _whole(digits: str | None) -> int:
    if digits is not None and len(digits) > _MAX_DIGITS:
        raise DialectError(f"Sizes must have at most {_MAX_DIGITS} digits, got {len(digits)}.")
    return int(digits or 0)
