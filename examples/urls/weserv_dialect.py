"""URLs of images.weserv.nl, such as ``/?url=pics.example/a.jpg&w=300&h=200&fit=cover&output=webp``."""

from __future__ import annotations

import attrs

from imgsvc_core import ImageInfo, Output, Resize, Spec
from imgsvc_urls import UrlSource
from imgsvc_urls.dialects import DialectError, ForeignRequest, ForeignUrl
from imgsvc_urls.dialects.building import refusing
from imgsvc_urls.dialects.reading import whole

MODES = {"inside": "auto", "outside": "auto", "cover": "fit", "contain": "fill", "fill": "stretch"}
FORMATS = {"jpg": "jpg", "png": "png", "webp": "webp", "gif": "gif", "tiff": "tiff"}


@attrs.frozen(kw_only=True)
class WeservUrl(ForeignUrl):
    """What a URL asks for. Its fields are part of the key of the cache."""

    width: int | None
    height: int | None
    fit: str
    format: str | None
    quality: int | None

    def spec(self, info: ImageInfo) -> Spec:
        """Return the request for a picture with these facts."""
        mode = MODES[self.fit] if self.width and self.height else "auto"
        with refusing(400):  # as the status of what no request can have
            return Spec(
                resize=Resize(width=self.width, height=self.height, mode=mode)
                if self.width or self.height
                else None,
                output=Output(format=self.format or info.format, quality=self.quality),
            )


@attrs.frozen
class Weserv:
    """The dialect. Its arguments are its settings."""

    scheme: str = "https"

    def parse(self, request: ForeignRequest) -> WeservUrl:
        """Return what a request asks for."""
        asked = dict(request.parameters)
        url = asked.get("url", "")
        if not url:
            raise DialectError("Parameter 'url' is required.", status=400)
        return WeservUrl(
            source=UrlSource(url if "://" in url else f"{self.scheme}://{url}"),
            signed=False,
            width=_whole(asked, "w"),
            height=_whole(asked, "h"),
            fit=_word(asked, "fit", MODES, "inside"),
            format=FORMATS[_word(asked, "output", FORMATS, "")] if "output" in asked else None,
            quality=_whole(asked, "q"),
        )


def _whole(asked: dict[str, str], name: str) -> int | None:
    if name not in asked:
        return None
    try:
        return whole(asked[name])
    except ValueError:
        raise DialectError(f"Parameter '{name}' must be an integer.", status=400) from None


def _word(asked: dict[str, str], name: str, words: dict[str, str], default: str) -> str:
    word = asked.get(name, default)
    if word not in words:
        raise DialectError(f"Parameter '{name}' must be one of {', '.join(words)}.", status=400)
    return word
