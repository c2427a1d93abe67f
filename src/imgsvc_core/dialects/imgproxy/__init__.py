"""URLs of imgproxy.

::

    /{signature}/{option}:{argument}:.../plain/{escaped URL}@{extension}
    /{signature}/{option}:{argument}:.../{URL in base64}.{extension}
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

import attrs

from imgsvc_core.dialects import ForeignDelivery, ForeignRequest, ForeignUrl
from imgsvc_core.dialects.building import refusing
from imgsvc_core.dialects.imgproxy.arguments import NOT_FOUND
from imgsvc_core.dialects.imgproxy.options import Options, Segment, read_options
from imgsvc_core.dialects.imgproxy.path import mended, read_preset, sign, split, verified
from imgsvc_core.dialects.imgproxy.request import UNPROCESSABLE, request_of
from imgsvc_core.dialects.reading import Texts, accepted_formats
from imgsvc_core.errors import DialectError, Problem, SpecError
from imgsvc_core.info import ImageInfo
from imgsvc_core.jsontext import shown
from imgsvc_core.spec import Spec
from imgsvc_core.spec.declare import Parameters, declared, param
from imgsvc_core.spec.kinds import Integer, Number, Text
from imgsvc_core.urls.sources import Source, source_of

_HEX = Texts(r"(?:[0-9A-Fa-f]{2})+", "texts of hexadecimal digits")


@attrs.frozen(kw_only=True)
class ImgproxyUrl(ForeignUrl):
    """What a URL of imgproxy asks for."""

    expired_status = NOT_FOUND

    options: Options
    watermark: str | None
    watermark_opacity: float
    accepted: tuple[str, ...]

    def spec(self, info: ImageInfo) -> Spec | None:
        """Return the request for a picture, or `None` to deliver its file unchanged."""
        with refusing(UNPROCESSABLE):
            return request_of(
                self.options,
                info,
                watermark=self.watermark,
                opacity=self.watermark_opacity,
                accepted=self.accepted,
            )


@declared
class Imgproxy(Parameters):
    """Settings of the dialect. Those of imgproxy with the same meaning are named in brackets."""

    title: ClassVar[str] = "Dialect 'imgproxy'"
    confidential: ClassVar[bool] = True

    keys: tuple[str, ...] = param("Keys in hexadecimal (IMGPROXY_KEY).", _HEX, default=(), secret=True)
    salts: tuple[str, ...] = param(
        "As many salts in hexadecimal (IMGPROXY_SALT).", _HEX, default=(), secret=True
    )
    signature_size: int = param(
        "Length of signatures (IMGPROXY_SIGNATURE_SIZE).", Integer(1, 32), unit="bytes", default=32
    )
    trusted_signatures: tuple[str, ...] = param(
        "Words that count as signatures (IMGPROXY_TRUSTED_SIGNATURES).",
        Texts(r"[^/\s]+", "words without slashes"),
        default=(),
        secret=True,
    )
    presets: tuple[str, ...] = param(
        "Presets, each as name=option:argument/option:argument (IMGPROXY_PRESETS).",
        Texts(r"(?s).+", "presets such as card=rs:fill:300:200/q:70"),
        default=(),
    )
    only_presets: bool = param(
        "Whether URLs have names of presets in place of options (IMGPROXY_ONLY_PRESETS).", default=False
    )
    allowed_options: tuple[str, ...] = param(
        "The only options that URLs may have; all if empty (IMGPROXY_ALLOWED_PROCESSING_OPTIONS).",
        Texts(r"[a-z_-]+", "names of options"),
        default=(),
    )
    base_url: str = param(
        "What stands before all sources that do not begin with it, such as the name of an origin and a slash "
        "(IMGPROXY_BASE_URL).",
        Text(2000, minimum=0),
        default="",
    )
    base64_url_includes_filename: bool = param(
        "Whether sources in base64 end with a file name (IMGPROXY_BASE64_URL_INCLUDES_FILENAME).",
        default=False,
    )
    auto_avif: bool = param(
        "Whether stills without a format become AVIF for clients that accept it (IMGPROXY_AUTO_AVIF).",
        default=False,
    )
    auto_webp: bool = param(
        "Whether pictures without a format become WebP for clients that accept it (IMGPROXY_AUTO_WEBP).",
        default=False,
    )
    watermark: str | None = param("Id of the watermark.", Text(200), default=None)
    watermark_opacity: float = param(
        "Factor of the opacity of watermarks (IMGPROXY_WATERMARK_OPACITY).", Number(0, 1), default=1.0
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if len(self.keys) != len(self.salts):
            counts = f"got {len(self.keys)} keys and {len(self.salts)} salts"
            raise SpecError([Problem("salts", f"{self.title} must have as many salts as keys, {counts}")])
        presets = _presets(self.presets)
        for name in presets:
            try:
                read_options([("preset", [name])], presets)
            except DialectError as error:
                raise _wrong_preset(f"{name}: {error.message}") from error

    def parse(self, request: ForeignRequest) -> ImgproxyUrl:
        """Return what a request asks for; see `imgsvc_core.dialects.Dialect`."""
        pairs = [
            (bytes.fromhex(key), bytes.fromhex(salt)) for key, salt in zip(self.keys, self.salts, strict=True)
        ]
        text = verified(mended(request.path), pairs, self.signature_size, self.trusted_signatures)
        segments, source = split(
            text, names_file=self.base64_url_includes_filename, only_presets=self.only_presets
        )
        options = read_options(
            segments,
            _presets(self.presets),
            extension=source.extension,
            allowed=() if self.only_presets else self.allowed_options,
        )
        formats = {"avif": self.auto_avif, "webp": self.auto_webp}
        negotiated = options.format is None and any(formats.values())
        return ImgproxyUrl(
            source=self._source(source.text),
            signed=bool(pairs),
            delivery=ForeignDelivery(
                filename=options.filename,
                download=options.return_attachment,
                expires=options.expires or None,
                version=options.cachebuster or None,
            ),
            options=attrs.evolve(options, filename=None, return_attachment=False, expires=0, cachebuster=""),
            watermark=self.watermark,
            watermark_opacity=self.watermark_opacity,
            accepted=accepted_formats(request.header("Accept"), formats) if negotiated else (),
        )

    def _source(self, text: str) -> Source:
        try:
            return source_of(text if text.startswith(self.base_url) else self.base_url + text)
        except SpecError as error:
            raise DialectError(f"{error.message}.", status=NOT_FOUND) from error


@lru_cache(maxsize=16)
def _presets(texts: tuple[str, ...]) -> Mapping[str, list[Segment]]:
    try:
        return dict(map(read_preset, texts))
    except ValueError as error:
        raise _wrong_preset(
            f"must be name=option:argument/option:argument, got {shown(str(error))}"
        ) from None


def _wrong_preset(problem: str) -> SpecError:
    return SpecError([Problem("presets", f"Preset of {Imgproxy.title} {problem}")])


__all__ = ["Imgproxy", "ImgproxyUrl", "sign"]
