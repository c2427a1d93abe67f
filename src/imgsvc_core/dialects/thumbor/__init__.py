"""URLs of thumbor.

::

    /{unsafe or signature}/{crop}/{fit-in}/{width}x{height}/{alignment}/filters:{name}({arguments})/{image}
"""

from typing import ClassVar

import attrs

from imgsvc_core.dialects import ForeignDelivery, ForeignRequest, ForeignUrl
from imgsvc_core.dialects.building import refusing
from imgsvc_core.dialects.reading import Texts, TextTable, accepted_formats
from imgsvc_core.dialects.thumbor.filters import Filter, read_filters
from imgsvc_core.dialects.thumbor.geometry import FocalArea
from imgsvc_core.dialects.thumbor.path import BAD_REQUEST, UNSAFE, Parts, extracted, sign, split, verified
from imgsvc_core.dialects.thumbor.request import Smart, check_possible, focal_areas, named_format, request_of
from imgsvc_core.info import ImageInfo
from imgsvc_core.spec import Spec
from imgsvc_core.spec.declare import Parameters, declared, param
from imgsvc_core.spec.kinds import Text
from imgsvc_core.urls.sources import Source, source_of


@attrs.frozen(kw_only=True)
class ThumborUrl(ForeignUrl):
    """What a URL of thumbor asks for."""

    parts: Parts
    filters: tuple[Filter, ...]
    focal: tuple[FocalArea, ...]
    smart: Smart
    watermarks: tuple[tuple[str, str], ...]
    accepted: tuple[str, ...]

    def spec(self, info: ImageInfo) -> Spec | None:
        """Return the request for a picture."""
        with refusing(BAD_REQUEST):
            return request_of(
                self.parts,
                self.filters,
                info,
                focal=self.focal,
                smart=self.smart,
                watermarks=dict(self.watermarks),
                accepted=self.accepted,
            )


@declared
class Thumbor(Parameters):
    """Settings of the dialect. Those of thumbor with the same meaning are named in brackets."""

    title: ClassVar[str] = "Dialect 'thumbor'"
    confidential: ClassVar[bool] = True

    keys: tuple[str, ...] = param(
        "Keys, of which any signs URLs (SECURITY_KEY).", Texts(r"(?s).+", "texts"), default=(), secret=True
    )
    unsafe: bool = param("Whether unsigned URLs are served (ALLOW_UNSAFE_URL).", default=False)
    base_url: str = param(
        "What stands before images that do not begin with http, such as the name of an origin and a slash.",
        Text(2000, minimum=0),
        default="http://",
    )
    smart: Smart = param(
        "The gravity that smart stands for: none, like thumbor without detectors, face, faces or smart.",
        default="none",
    )
    watermarks: tuple[tuple[str, str], ...] = param(
        "Ids of watermarks by the URLs in filters.", TextTable(), default=()
    )

    auto_webp: bool = param(
        "Whether stills without a format become WebP for clients that accept it (AUTO_WEBP).", default=False
    )
    auto_avif: bool = param(
        "Whether stills without a format become AVIF for clients that accept it, but not WebP (AUTO_AVIF).",
        default=False,
    )

    def parse(self, request: ForeignRequest) -> ThumborUrl:
        """Return what a request asks for; see `imgsvc_core.dialects.Dialect`."""
        parts = split(verified(request.path, self.keys, unsafe=self.unsafe))
        filters = read_filters(parts.filters)
        check_possible(parts, filters)
        focal, image = tuple(focal_areas(filters)), parts.image
        inner = extracted(image) if Filter("extract_focal") in filters else None
        if inner is not None:
            image = inner[0]
            focal = (*focal, FocalArea(*inner[1]))
        formats = {"webp": self.auto_webp, "avif": self.auto_avif}
        negotiated = named_format(filters) is None and any(formats.values())
        ages = [int(item.arguments[0]) for item in filters if item.name == "max_age"]
        return ThumborUrl(
            source=self._source(image),
            signed=not request.path.startswith(f"/{UNSAFE}/"),
            delivery=ForeignDelivery(max_age=ages[-1] if ages else None),
            parts=attrs.evolve(parts, filters=(), image=""),
            filters=tuple(item for item in filters if item.name != "max_age"),
            focal=focal,
            smart=self.smart,
            watermarks=self.watermarks,
            accepted=accepted_formats(request.header("Accept"), formats) if negotiated else (),
        )

    def _source(self, image: str) -> Source:
        with refusing(BAD_REQUEST):
            return source_of(image if image.startswith("http") else self.base_url + image)


__all__ = ["Thumbor", "ThumborUrl", "sign"]
