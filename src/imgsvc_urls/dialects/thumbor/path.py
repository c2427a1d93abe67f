"""The path of a URL of thumbor: signature, parts and image."""

from __future__ import annotations

import base64
import hmac
import re
from typing import Any
from urllib.parse import unquote

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_urls.dialects.reading import WRONG_SIGNATURE, decoded, is_one_of
from imgsvc_urls.errors import DialectError

UNSAFE = "unsafe"

# Each part is optional, and their order is fixed. A part in the wrong place begins the image.
TRIM = r"(?:(?P<trim>trim(?::(?:top-left|bottom-right))?(?::[0-9]+)?)/)?"
FIT = r"(?:(?P<adaptive>adaptive-)?(?P<full>full-)?(?P<fit_in>fit-in)/)?(?:(?P<stretch>stretch)/)?"
ALIGNMENT = r"(?:(?P<halign>left|right|center)/)?(?:(?P<valign>top|bottom|middle)/)?(?:(?P<smart>smart)/)?"
_PARTS = re.compile(
    rf"""
    (?:(?P<debug>debug)/)?
    (?:(?P<meta>meta)/)?
    {TRIM}
    (?:(?P<left>[0-9]+)x(?P<top>[0-9]+):(?P<right>[0-9]+)x(?P<bottom>[0-9]+)/)?
    {FIT}
    (?:(?P<mirrored>-)?(?P<width>[0-9]+|orig)?x(?P<flipped>-)?(?P<height>[0-9]+|orig)?/)?
    {ALIGNMENT}
    (?:filters:(?P<filters>.+?\))/)?
    (?P<image>.+)
    """,
    re.VERBOSE | re.DOTALL,
)
_ADDRESS = re.compile(r"^(?:https?://)?.*?/")
_MAX_DIGITS = 9
_MAX_LEVELS = 10


@attrs.frozen(kw_only=True)
class CommonParts:
    """The parts of a path that thumbor and imagor write alike."""

    meta: bool
    trim: str | None
    fit_in: bool
    full: bool
    adaptive: bool
    stretch: bool
    flip: tuple[bool, bool]
    smart: bool


def common_parts(found: re.Match[str]) -> dict[str, Any]:
    """Return the parts of `CommonParts` that a pattern has found, by name."""
    words = ("meta", "fit_in", "full", "adaptive", "stretch", "smart")
    return {
        **{word: bool(found[word]) for word in words},
        "trim": found["trim"],
        "flip": (bool(found["mirrored"]), bool(found["flipped"])),
    }


@attrs.frozen(kw_only=True)
class Parts(CommonParts):
    """The parts of a path. Sides are `None` for those of the source, and 0 if they are free.

    Filters and image are not shown: URLs that ask for the same of a picture have equal texts.
    """

    debug: bool
    crop: tuple[int, int, int, int] | None  # left, top, right, bottom
    width: int | None
    height: int | None
    halign: str
    valign: str
    filters: tuple[str, ...] = attrs.field(repr=False)
    image: str = attrs.field(repr=False)


def sign(key: str, text: str, type_: str = "sha1") -> str:
    """Return the signature of all that follows it in a path, without a slash before.

    ``type_`` is the hash function. thumbor has only one.
    """
    digest = hmac.digest(key.encode(), text.encode("utf-8", "surrogatepass"), type_)
    return base64.urlsafe_b64encode(digest).decode("ascii")


def verified(path: str, keys: tuple[str, ...], *, unsafe: bool) -> str:
    """Return all of a path after its signature. Takes constant time for each key.

    Raises:
        DialectError: the signature is that of none of the keys, or unsigned URLs are not allowed.
    """
    signature, _, text = path.removeprefix("/").partition("/")
    if signature == UNSAFE:
        if not unsafe:
            raise DialectError("The URL must be signed, got 'unsafe': sign it with the key.")
        return text
    if not is_one_of(unquote(signature), [sign(key, text) for key in keys]):
        raise DialectError(WRONG_SIGNATURE)
    return text


def split(text: str) -> Parts:
    """Return the parts of a path after its signature.

    Raises:
        DialectError: the path names no image, or a number is too long.
    """
    found = _PARTS.fullmatch(text)
    if found is None:
        raise DialectError("The URL must end with the address of an image, got none.")
    corners = [found[name] for name in ("left", "top", "right", "bottom")]
    left, top, right, bottom = (0 if corner is None else _number(corner) for corner in corners)
    return Parts(
        **common_parts(found),
        debug=bool(found["debug"]),
        crop=None if corners[0] is None else (left, top, right, bottom),
        width=_side(found["width"]),
        height=_side(found["height"]),
        halign=found["halign"] or "center",
        valign=found["valign"] or "middle",
        filters=_filters(found["filters"]),
        image=decoded(found["image"]),
    )


def extracted(image: str) -> tuple[str, tuple[int, int, int, int]] | None:
    """Return the image and the crop of a URL of thumbor that stands in place of an image, if it has both."""
    for _ in range(_MAX_LEVELS):
        signature, slash, text = _ADDRESS.sub("", image).removeprefix("/").partition("/")
        if not signature or not slash or not text:
            return None
        parts = split(text)
        if parts.crop is not None:
            return parts.image, parts.crop
        image = parts.image
    return None


def _side(text: str | None) -> int | None:
    return None if text == "orig" else _number(text or "0")


def _number(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise DialectError(f"Sizes must have at most {_MAX_DIGITS} digits, got {shown(digits)}.")
    return int(digits)


def _filters(text: str | None) -> tuple[str, ...]:
    """Return the filters, each with its arguments in brackets."""
    if not text:
        return ()
    *first, last = text.split("):")
    return (*(f"{item})" for item in first), last)
