"""URLs of imagor.

::

    /{unsafe or signature}/{crop}/{fit-in}/{width}x{height}/{padding}/{alignment}/filters:{filter}/{image}
"""

from collections.abc import Iterator
from typing import ClassVar

import attrs

from imgsvc_core.errors import ImageTooLarge, ImgsvcError, SourceTooLarge
from imgsvc_core.fonts import catalog
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Spec, Trim
from imgsvc_core.spec.declare import Parameters, declared, param
from imgsvc_core.spec.kinds import Integer, Text
from imgsvc_urls.dialects import Document, ForeignDelivery, ForeignRequest, ForeignUrl
from imgsvc_urls.dialects.building import Smart, refusing
from imgsvc_urls.dialects.imagor.drawing import plane
from imgsvc_urls.dialects.imagor.geometry import within
from imgsvc_urls.dialects.imagor.path import NOT_ACCEPTABLE, Filter, Parts, SignerType, sign, split, verified
from imgsvc_urls.dialects.imagor.request import (
    Allowed,
    Known,
    named_format,
    overlay_ids,
    request_of,
    trim_of,
)
from imgsvc_urls.dialects.reading import TextTable, accepted_formats, texts
from imgsvc_urls.sources import InlineSource, Source, source_of

_WITH_FONTS = ("text", "label")  # replaced fonts change what these filters write
_MEDIA_TYPES = {"jpg": ("image/jpeg", "image/*", "*/*")}
"""The media types of which clients must accept one, if they are others than the format's own."""


@attrs.frozen(kw_only=True)
class ImagorUrl(ForeignUrl):
    """What a URL of imagor asks for."""

    unreachable_status, late_status, unusable_status = 404, 408, 406

    parts: Parts
    smart: Smart
    allowed_filters: Allowed
    watermarks: tuple[tuple[str, str], ...]
    metadata: str
    accepted: tuple[str, ...]
    fonts: str = ""

    def failure_status(self, error: ImgsvcError) -> int:
        """Return the status of imagor if the source cannot be used."""
        if isinstance(error, SourceTooLarge):
            return 400
        return 422 if isinstance(error, ImageTooLarge) else super().failure_status(error)

    def trim(self, info: ImageInfo) -> Trim | None:
        """Return what is cut away before all else."""
        return trim_of(self.parts, info)

    def of_part(self, box: Box, size: Size) -> ForeignUrl:
        """Return the URL that asks for the same of the part of a picture that a trim leaves."""
        return attrs.evolve(self, parts=within(self.parts, box, size))

    def spec(self, info: ImageInfo) -> Spec | Document | None:
        """Return the request for a picture, facts about it, or `None` to deliver its file unchanged."""
        with refusing(NOT_ACCEPTABLE):
            return request_of(
                self.parts,
                info,
                Known(
                    smart=self.smart,
                    allowed=self.allowed_filters,
                    watermarks=dict(self.watermarks),
                    facts=self.facts,
                ),
                metadata=self.metadata,
                accepted=self.accepted,
            )


@declared
class Imagor(Parameters):
    """Settings of the dialect. Those of imagor with the same meaning are named in brackets."""

    title: ClassVar[str] = "Dialect 'imagor'"
    confidential: ClassVar[bool] = True

    keys: tuple[str, ...] = param(
        "Keys. Each URL is signed with one of them (IMAGOR_SECRET).",
        texts(r"(?s).+", "texts"),
        default=(),
        secret=True,
    )
    unsafe: bool = param("Whether unsigned URLs are served (IMAGOR_UNSAFE).", default=False)
    signer_type: SignerType = param("Hash function of signatures (IMAGOR_SIGNER_TYPE).", default="sha1")
    signer_truncate: int = param(
        "Length of signatures; 0 keeps them whole (IMAGOR_SIGNER_TRUNCATE).",
        Integer(0, 88),
        unit="characters",
        default=0,
    )
    base_url: str = param(
        "Prefix of images that do not begin with http, such as the name of an origin and a slash "
        "(HTTP_LOADER_DEFAULT_SCHEME).",
        Text(2000, minimum=0),
        default="https://",
    )
    smart: Smart = param(
        "What smart looks for: smart, as in imagor, face or faces; none keeps the center.", default="smart"
    )
    watermarks: tuple[tuple[str, str], ...] = param(
        "Ids of watermarks by the URLs in filters.", TextTable(), default=()
    )
    auto_avif: bool = param(
        "Whether pictures without a format become AVIF for clients that accept it (IMAGOR_AUTO_AVIF).",
        default=False,
    )
    auto_webp: bool = param("The same for WebP, if not AVIF (IMAGOR_AUTO_WEBP).", default=False)
    auto_jpeg: bool = param("The same for JPEG, if neither AVIF nor WebP (IMAGOR_AUTO_JPEG).", default=False)
    strip_metadata: bool = param(
        "Whether results lose the metadata of their sources (VIPS_STRIP_METADATA).", default=False
    )

    max_animation_frames: int = param(
        "Most frames of an animation; -1 keeps all (VIPS_MAX_ANIMATION_FRAMES).",
        Integer(-1, 65_535),
        default=-1,
    )
    max_filter_ops: int = param(
        "Most filters of a picture. Later ones that change pixels are left out; -1 keeps all "
        "(VIPS_MAX_FILTER_OPS).",
        Integer(-1, 1000),
        default=-1,
    )
    disable_filters: tuple[str, ...] = param(
        "Names of filters that are left out (VIPS_DISABLE_FILTERS).", texts(r"[a-z_]+", "names"), default=()
    )

    health_path: ClassVar[str] = "healthcheck"

    def parse(self, request: ForeignRequest) -> ImagorUrl:
        """Return what a request asks for; see `imgsvc_urls.dialects.Dialect`."""
        text, signed = verified(
            request.path, self.keys, self.signer_type, self.signer_truncate, unsafe=self.unsafe
        )
        parts = split(text)
        allowed = Allowed(most=self.max_filter_ops, disabled=self.disable_filters)
        filters = (*allowed.of(parts.filters), *self._limits())
        drawn = plane(parts)
        return ImagorUrl(
            source=InlineSource(drawn[0].encode()) if drawn else self._source(parts.image),
            pictures=tuple(overlay_ids(parts.filters, dict(self.watermarks), allowed)),
            signed=signed,
            delivery=_delivery(parts.filters),
            parts=attrs.evolve(parts, filters=filters, image=""),
            smart=self.smart,
            allowed_filters=allowed,
            watermarks=self.watermarks,
            metadata="strip" if self.strip_metadata else "keep",
            accepted=() if named_format(filters) else self._accepted(request),
            fonts=catalog().digest if any(name in text for name in _WITH_FONTS) else "",
        )

    def _limits(self) -> Iterator[Filter]:
        """Yield what settings add to the filters of a URL."""
        if self.max_animation_frames != -1:
            yield Filter("max_frames", (str(max(1, self.max_animation_frames)),))

    def _accepted(self, request: ForeignRequest) -> tuple[str, ...]:
        """Return the formats of pictures without one that the client accepts, the preferred one first."""
        wanted = {"avif": self.auto_avif, "webp": self.auto_webp, "jpg": self.auto_jpeg}
        if not any(wanted.values()):
            return ()
        return accepted_formats(request.header("Accept") or "*/*", wanted, _MEDIA_TYPES)

    def _source(self, image: str) -> Source:
        with refusing():
            return source_of(image if image.startswith("http") else self.base_url + image.lstrip("/"))


def _delivery(filters: tuple[Filter, ...]) -> ForeignDelivery:
    called = {item.name: item for item in filters}
    expire = called["expire"].whole() if "expire" in called else 0
    name = called["attachment"].text(0) if "attachment" in called else ""
    return ForeignDelivery(
        filename=name or None,
        download="attachment" in called,
        expires=expire // 1000 if expire > 0 else None,
        max_age=max(0, called["max_age"].whole()) if "max_age" in called else None,
    )


__all__ = ["Imagor", "ImagorUrl", "sign"]
