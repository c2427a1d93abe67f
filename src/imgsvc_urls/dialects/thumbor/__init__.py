"""URLs of thumbor.

::

    /{unsafe or signature}/{crop}/{fit-in}/{width}x{height}/{alignment}/filters:{name}({arguments})/{image}
"""

from functools import cached_property
from typing import ClassVar
from urllib.parse import quote

import attrs

from imgsvc_core.errors import EmptySource, ImgsvcError, SourceUnreachable
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Spec, Trim
from imgsvc_core.spec.declare import Parameters, declared, param
from imgsvc_core.spec.kinds import Integer, Text
from imgsvc_urls.dialects import Document, ForeignDelivery, ForeignRequest, ForeignUrl
from imgsvc_urls.dialects.building import Smart, refusing
from imgsvc_urls.dialects.reading import Array, TextTable, accepted_formats, texts
from imgsvc_urls.dialects.thumbor.encoding import MEDIA_TYPES, Encoding, named_format
from imgsvc_urls.dialects.thumbor.filters import Filter, read_filters
from imgsvc_urls.dialects.thumbor.geometry import FocalArea
from imgsvc_urls.dialects.thumbor.meta import document
from imgsvc_urls.dialects.thumbor.path import UNSAFE, Parts, extracted, sign, split, verified
from imgsvc_urls.dialects.thumbor.request import drawn, focal_areas, request_of, trim_of
from imgsvc_urls.dialects.thumbor.sources import RegularExpression, find_source
from imgsvc_urls.errors import DialectError, SourceRefused

_QUALITY = Integer(1, 100)


@attrs.frozen(kw_only=True)
class ThumborUrl(ForeignUrl):
    """What a URL of thumbor asks for."""

    parts: Parts
    filters: tuple[Filter, ...]
    focal: tuple[FocalArea, ...]
    smart: Smart
    watermarks: tuple[tuple[str, str], ...]
    encoding: Encoding
    respects_orientation: bool
    accepted: tuple[str, ...]
    image: str = ""
    trimmed: Box | None = None
    whole: Size | None = None

    def failure_status(self, error: ImgsvcError) -> int:
        """Return the status of thumbor if the source cannot be used."""
        if isinstance(error, EmptySource):
            return 502
        if not isinstance(error, SourceUnreachable):
            return 400
        if isinstance(error, SourceRefused):
            return 404
        return 500 if error.failure == "unreachable" else 504

    @property
    def upright(self) -> bool:
        """Return True if pictures are turned by their EXIF orientation."""
        return self.respects_orientation

    def judged(self, info: ImageInfo) -> Spec | None:
        """Return the request whose format depends on whether any pixel is transparent."""
        if not self.encoding.looks_for_alpha(self.filters, info, self.accepted):
            return None
        picture = attrs.evolve(self, parts=attrs.evolve(self.parts, meta=False)).spec(info)
        return picture if isinstance(picture, Spec) else None

    def trim(self, info: ImageInfo) -> Trim | None:
        """Return what is cut away before all else."""
        return trim_of(self.parts)

    def of_part(self, box: Box, size: Size) -> "ThumborUrl":
        """Return the URL with its crop as seen from what a trim leaves."""
        parts = self.parts
        if parts.crop is not None:
            left, top, right, bottom = parts.crop
            crop = left - box.left, top - box.top, right - box.left, bottom - box.top
            parts = attrs.evolve(parts, crop=crop)
        return attrs.evolve(self, parts=parts, trimmed=box, whole=size)

    def spec(self, info: ImageInfo) -> Spec | Document:
        """Return the request for a picture, or what is done to it."""
        with refusing():
            found = drawn(
                self.parts,
                self.filters,
                info,
                focal=self.focal,
                watermarks=dict(self.watermarks),
                encoding=self.encoding,
                whole=self.whole,
                accepted=self.accepted,
            )
            if not self.parts.meta:
                return request_of(found, self.parts, info, smart=self.smart, upright=self.upright)
            return document(
                found,
                self.parts,
                info,
                image=self.image,
                trimmed=self.trimmed,
                focal=self.focal,
            )


@declared
class Thumbor(Parameters):
    """Settings of the dialect. Those of thumbor with the same meaning are named in brackets."""

    title: ClassVar[str] = "Dialect 'thumbor'"
    confidential: ClassVar[bool] = True

    keys: tuple[str, ...] = param(
        "Keys. Each URL is signed with one of them (SECURITY_KEY).",
        texts(r"(?s).+", "texts"),
        default=(),
        secret=True,
    )
    unsafe: bool = param("Whether unsigned URLs are served (ALLOW_UNSAFE_URL).", default=False)
    base_url: str = param(
        "Prefix of images that do not begin with http, such as the name of an origin and a slash.",
        Text(2000, minimum=0),
        default="http://",
    )
    stored: str = param(
        "Prefix of the ids of uploaded images, such as the name of an origin and a slash. An id has 32 "
        "hexadecimal digits. When empty, there are no ids.",
        Text(2000, minimum=0),
        default="",
    )
    allowed_sources: tuple[str, ...] = param(
        "Regular expressions of the hosts of images. One with '://' in it is of the beginning of the URL "
        "(ALLOWED_SOURCES).",
        Array(RegularExpression(), "regular expressions"),
        default=(),
    )
    smart: Smart = param(
        "What smart looks for: face, faces or smart; none keeps the center, as thumbor without detectors.",
        default="none",
    )
    watermarks: tuple[tuple[str, str], ...] = param(
        "Ids of watermarks by the URLs in filters.", TextTable(), default=()
    )

    quality: int = param("Quality of results (QUALITY).", _QUALITY, default=80)
    webp_quality: int | None = param("Quality of WebP, if it differs (WEBP_QUALITY).", _QUALITY, default=None)
    avif_quality: int | None = param("Quality of AVIF, if it differs (AVIF_QUALITY).", _QUALITY, default=None)
    heif_quality: int | None = param("Quality of HEIC, 75 by default (HEIF_QUALITY).", _QUALITY, default=None)
    progressive_jpeg: bool = param("Whether JPEGs are progressive (PROGRESSIVE_JPEG).", default=True)
    respect_orientation: bool = param(
        "Whether pictures are turned by their EXIF orientation (RESPECT_ORIENTATION).", default=False
    )
    preserve_exif_info: bool = param(
        "Whether results keep the metadata of their sources (PRESERVE_EXIF_INFO).", default=False
    )
    preserve_exif_copyright_info: bool = param(
        "Whether results keep author and rights (PRESERVE_EXIF_COPYRIGHT_INFO).", default=False
    )
    max_age: int | None = param(
        "How many seconds caches keep pictures if the URL does not say (MAX_AGE).",
        Integer(0, 10**9),
        default=None,
    )
    auto_webp: bool = param(
        "Whether stills without a format become WebP for clients that accept it (AUTO_WEBP).", default=False
    )
    auto_avif: bool = param("The same for AVIF, if not WebP (AUTO_AVIF).", default=False)
    auto_jpg: bool = param(
        "The same for JPEG, if neither WebP nor AVIF and without transparency (AUTO_JPG).", default=False
    )
    auto_heif: bool = param("The same for HEIC, if none of these (AUTO_HEIF).", default=False)
    auto_png: bool = param("The same for PNG, if none of these (AUTO_PNG).", default=False)
    auto_png_to_jpg: bool = param(
        "Whether PNGs without transparency become JPEG (AUTO_PNG_TO_JPG).", default=False
    )

    health_path: ClassVar[str] = "healthcheck"

    def parse(self, request: ForeignRequest) -> ThumborUrl:
        """Return what a request asks for; see `imgsvc_urls.dialects.Dialect`."""
        parts = split(verified(request.path, self.keys, unsafe=self.unsafe))
        filters = read_filters(parts.filters)
        if parts.debug:
            raise DialectError("'debug' is not supported in URLs of thumbor.")
        focal, image = tuple(focal_areas(filters)), parts.image
        inner = extracted(image) if Filter("extract_focal") in filters else None
        if inner is not None:
            image = inner[0]
            focal = (*focal, FocalArea(*inner[1], origin="Original Extraction"))
        depends_on_client = named_format(filters) is None and any(self._auto_formats.values())
        ages = [int(item.arguments[0]) for item in filters if item.name == "max_age"]
        return ThumborUrl(
            source=find_source(
                image, base_url=self.base_url, stored=self.stored, allowed=self.allowed_sources
            ),
            allowed=bool(self.allowed_sources),
            signed=not request.path.startswith(f"/{UNSAFE}/"),
            delivery=ForeignDelivery(max_age=ages[-1] if ages else self.max_age),
            parts=parts,
            filters=tuple(item for item in filters if item.name != "max_age"),
            focal=focal,
            smart=self.smart,
            watermarks=self.watermarks,
            encoding=self._encoding,
            respects_orientation=self.respect_orientation,
            accepted=self._accepted(request) if depends_on_client else (),
            image=quote(image) if parts.meta else "",
        )

    def _accepted(self, request: ForeignRequest) -> tuple[str, ...]:
        """Return the formats of pictures without one that the client accepts, the preferred one first."""
        return accepted_formats(request.header("Accept"), self._auto_formats, MEDIA_TYPES)

    @property
    def _auto_formats(self) -> dict[str, bool]:
        """The formats that depend on what the client accepts, the preferred one first."""
        return {
            "webp": self.auto_webp,
            "avif": self.auto_avif,
            "jpg": self.auto_jpg,
            "heic": self.auto_heif,
            "png": self.auto_png,
        }

    @cached_property
    def _encoding(self) -> Encoding:
        qualities = {"webp": self.webp_quality, "avif": self.avif_quality, "heic": self.heif_quality}
        kept = "copyright" if self.preserve_exif_copyright_info else "strip"
        return Encoding(
            qualities=tuple((name, quality) for name, quality in qualities.items() if quality is not None),
            quality=self.quality,
            progressive=self.progressive_jpeg,
            metadata="keep" if self.preserve_exif_info else kept,
            png_to_jpg=self.auto_png_to_jpg,
        )


__all__ = ["Thumbor", "ThumborUrl", "sign"]
