"""URLs of next/image: ``/_next/image?url=/shoe.jpg&w=640&q=75``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.spec import Spec
from imgsvc_core.spec.color import BLACK
from imgsvc_urls.dialects import ForeignRequest, ForeignUrl
from imgsvc_urls.dialects.building import built, refusing
from imgsvc_urls.errors import DialectError

PATH = "/_next/image"

_LONGEST_URL = 3072
_RECURSIVE = re.compile(r"/_next/image(?:$|/)")
_WHOLE = re.compile(r"[0-9]{1,9}")
_PASSED_ON = ("bmp", "ico")
_LESS_FOR_AVIF = 20  # of the quality
_MOST_COLORS = 256


@attrs.frozen(kw_only=True)
class NextImageUrl(ForeignUrl):
    """What a URL of next/image asks for."""

    unreachable_status, unusable_status = 500, 400

    width: int
    quality: int
    format: str | None

    def spec(self, info: ImageInfo) -> Spec | None:
        """Return the request for a picture, or `None` to deliver an animation or an icon unchanged."""
        if info.format == "svg":
            raise DialectError("Parameter 'url' must not name an SVG.")
        if info.animated or info.format in _PASSED_ON:
            return None
        with refusing():
            return built(resize={"width": self.width, "upscale": False}, output=self._output(info))

    def _output(self, info: ImageInfo) -> dict[str, Any]:
        name = self.format or ("jpg" if info.format in ("webp", "avif") else FORMATS[info.format].becomes)
        output: dict[str, Any] = {"format": name, "background": BLACK}
        if name == "avif":
            output |= {"quality": max(self.quality - _LESS_FOR_AVIF, 1), "subsampling": "444"}
        elif FORMATS[name].quality is not None:
            output["quality"] = self.quality
        elif name == "png":
            output["colors"] = _MOST_COLORS
        return output


def asked(request: ForeignRequest) -> tuple[str, int, int]:
    """Return the URL of the source, the width and the quality.

    Raises:
        DialectError: a parameter is missing or wrong; the message names it.
    """
    parameters = request.parameters
    counts = Counter(name for name, _ in parameters)
    values = dict(parameters)
    for name in ("url", "w", "q"):
        if not values.get(name):
            raise _wrong(name, "is required")
        if counts[name] > 1:
            raise _wrong(name, "must be given once")
    return _checked_url(values["url"]), _whole("w", values["w"]), _whole("q", values["q"])


def check_allowed(name: str, value: int, allowed: Sequence[int]) -> None:
    """Raise `DialectError` if a parameter has a value that is not one of those allowed."""
    if value not in allowed:
        raise _wrong(name, f"must be one of {', '.join(map(str, allowed))}, got {value}")


def _checked_url(url: str) -> str:
    if len(url) > _LONGEST_URL:
        raise _wrong("url", f"must have at most {_LONGEST_URL} characters, got {len(url)}")
    if url.startswith("//"):
        raise _wrong("url", f"must have a scheme or begin with one slash, got {shown(url)}")
    if url.startswith("/"):
        if _RECURSIVE.search(unquote(url.partition("?")[0])):
            raise _wrong("url", "must not be a URL of next/image itself")
        return url
    if not re.match(r"https?://[^/]", url, re.IGNORECASE):
        raise _wrong("url", f"must be a path or a URL of http or https, got {shown(url)}")
    return url


def _whole(name: str, text: str) -> int:
    if not _WHOLE.fullmatch(text) or not int(text):
        raise _wrong(name, f"must be an integer greater than 0, got {shown(text)}")
    return int(text)


def _wrong(name: str, how: str) -> DialectError:
    return DialectError(f"Parameter '{name}' {how}.")
