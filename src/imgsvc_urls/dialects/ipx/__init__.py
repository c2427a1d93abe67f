"""URLs of ipx, and of next/image.

::

    /{modifier}_{argument}_...,{modifier}.../{path or URL}
    /_next/image?url={path or URL}&w={width}&q={quality}
"""

import re
from typing import ClassVar

import attrs

from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.spec import Spec, Trim
from imgsvc_core.spec.declare import Parameters, declared, param
from imgsvc_core.spec.kinds import Integer, Text
from imgsvc_urls.dialects import ForeignRequest, ForeignUrl
from imgsvc_urls.dialects.building import refusing
from imgsvc_urls.dialects.ipx import next_image
from imgsvc_urls.dialects.ipx.modifiers import ALIASES, Modifier, read_modifiers
from imgsvc_urls.dialects.ipx.request import accepted_format, is_upright, request_of, trim_of
from imgsvc_urls.dialects.reading import Array, TextTable, decoded_if_possible, preferred_format, texts
from imgsvc_urls.errors import DialectError
from imgsvc_urls.sources import SCHEME, Source, source_of

_HTTP = re.compile(r"^(https?):/+", re.IGNORECASE)  # slashes may get lost on the way

_WIDTHS = (16, 32, 48, 64, 96, 128, 256, 384, 640, 750, 828, 1080, 1200, 1920, 2048, 3840)
"""The widths of next/image, which its configuration calls imageSizes and deviceSizes."""


@attrs.frozen(kw_only=True)
class IpxUrl(ForeignUrl):
    """What a URL of ipx asks for."""

    unreachable_status, unusable_status = 500, 400

    modifiers: tuple[Modifier, ...]
    format: str | None

    @property
    def upright(self) -> bool:
        """Return True if the URL asks for it; sharp turns no pictures by itself."""
        return is_upright(self.modifiers)

    def trim(self, info: ImageInfo) -> Trim | None:
        """Return what is cut away before all else."""
        return trim_of(self.modifiers)

    def spec(self, info: ImageInfo) -> Spec | None:
        """Return the request for a picture."""
        with refusing():
            return request_of(self.modifiers, self.format, info)


@declared
class Ipx(Parameters):
    """Settings of the dialect. Those of ipx and next/image with the same meaning are named in brackets."""

    title: ClassVar[str] = "Dialect 'ipx'"

    base_url: str = param(
        "Prefix of paths, such as the name of an origin and a slash (IPX_FS_DIR).",
        Text(2000, minimum=0),
        default="",
    )
    aliases: tuple[tuple[str, str], ...] = param(
        "Beginnings of paths, and the URLs or paths that replace them (IPX_ALIAS).", TextTable(), default=()
    )
    widths: tuple[int, ...] = param(
        "The widths that URLs of next/image may ask for (deviceSizes and imageSizes).",
        Array(Integer(1, 65_535), "integers within 1 to 65535 range"),
        default=_WIDTHS,
    )
    qualities: tuple[int, ...] = param(
        "The qualities that URLs of next/image may ask for; 1 to 100 if empty (qualities).",
        Array(Integer(1, 100), "integers within 1 to 100 range"),
        default=(),
    )
    formats: tuple[str, ...] = param(
        "The formats of next/image for clients that accept them, the preferred one first (formats).",
        texts("avif|webp", "avif and webp"),
        default=("webp",),
    )

    def parse(self, request: ForeignRequest) -> ForeignUrl:
        """Return what a request asks for; see `imgsvc_urls.dialects.Dialect`."""
        if request.path.rstrip("/") == next_image.PATH:
            return self._of_next(request)
        first, _, rest = request.path.removeprefix("/").partition("/")
        if not first:
            raise DialectError("The URL must have modifiers, or _ for none, got none.")
        path = decoded_if_possible(rest)
        if not path.strip("/"):
            raise DialectError("The URL must name a picture after its modifiers, got none.")
        modifiers = read_modifiers(first)
        names = {ALIASES.get(name, name): arguments for name, arguments in modifiers}
        format_ = names.get("format", (None,))[0]
        if format_ == "auto":
            format_ = accepted_format(request.header("Accept"), animated="animated" in names)
        return IpxUrl(
            source=self._source(path, request.query),
            signed=False,
            modifiers=tuple(item for item in modifiers if ALIASES.get(item[0], item[0]) != "format"),
            format=format_,
        )

    def _of_next(self, request: ForeignRequest) -> next_image.NextImageUrl:
        url, width, quality = next_image.asked(request)
        next_image.check_allowed("w", width, self.widths)
        next_image.check_allowed("q", quality, self.qualities or range(1, 101))
        path, _, query = url.partition("?")
        return next_image.NextImageUrl(
            source=self._source(path, query),
            signed=False,
            width=width,
            quality=quality,
            format=preferred_format(request.header("Accept"), self.formats),
        )

    def _source(self, path: str, query: str) -> Source:
        """Return the source that a path or a URL names. Files have no query."""
        path = _HTTP.sub(r"\1://", path)
        for beginning, target in self.aliases:
            rest = path.removeprefix("/").removeprefix(beginning.strip("/"))
            if rest != path.removeprefix("/"):
                path = f"{target.rstrip('/')}/{rest.lstrip('/')}"
        if not SCHEME.match(path):
            path = self.base_url + path.lstrip("/")
        with refusing():
            return source_of(f"{path}?{query}" if query and SCHEME.match(path) else path)
