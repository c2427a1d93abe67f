"""URLs of imgproxy.

::

    /{signature}/{option}:{argument}:.../plain/{escaped URL}@{extension}
    /{signature}/{option}:{argument}:.../{URL in base64}.{extension}
"""

import hmac
from typing import Any, ClassVar

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.errors import ImgsvcError
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.spec import Spec, Trim
from imgsvc_core.spec.declare import declared
from imgsvc_urls.dialects import ForeignDelivery, ForeignRequest, ForeignUrl
from imgsvc_urls.dialects.building import half_up, refusing
from imgsvc_urls.dialects.imgproxy.arguments import FORBIDDEN, FORMATS, NOT_FOUND, not_found
from imgsvc_urls.dialects.imgproxy.options import Options, read_options
from imgsvc_urls.dialects.imgproxy.path import mended, sign, split, verified
from imgsvc_urls.dialects.imgproxy.request import UNPROCESSABLE, Encoding, request_of, trim_of
from imgsvc_urls.dialects.imgproxy.settings import ImgproxySettings
from imgsvc_urls.dialects.reading import accepted_formats, decimal
from imgsvc_urls.errors import DialectError, SourceRefused

_MOST_DENSITY = 8


@attrs.frozen(kw_only=True)
class ImgproxyUrl(ForeignUrl):
    """What a URL of imgproxy asks for."""

    expired_status = unreachable_status = NOT_FOUND

    options: Options
    watermark: str | None
    watermark_opacity: float
    encoding: Encoding

    @property
    def upright(self) -> bool:
        """Return True if pictures are turned by their EXIF orientation before all else."""
        return self.options.auto_rotate

    def trim(self, info: ImageInfo) -> Trim | None:
        """Return what is cut away before all that the request asks for."""
        with refusing(UNPROCESSABLE):
            return trim_of(self.options, info, self.encoding)

    def failure_status(self, error: ImgsvcError) -> int:
        """Return the status of imgproxy if the source cannot be used."""
        status = super().failure_status(error)
        return 502 if isinstance(error, SourceRefused) and error.status >= 500 else status

    def spec(self, info: ImageInfo) -> Spec | None:
        """Return the request for a picture, or `None` to deliver its file unchanged."""
        with refusing(UNPROCESSABLE):
            return request_of(
                self.options,
                info,
                watermark=self.watermark,
                opacity=self.watermark_opacity,
                encoding=self.encoding,
            )


@declared
class Imgproxy(ImgproxySettings):
    """URLs of imgproxy; see `imgsvc_urls.dialects.Dialect`."""

    health_path: ClassVar[str] = "health"

    def parse(self, request: ForeignRequest) -> ImgproxyUrl:
        """Return what a request asks for."""
        self._check_secret(request)
        text = verified(mended(request.path), self.pairs, self.signature_size, self.trusted_signatures)
        segments, source = split(
            text,
            separator=self.arguments_separator,
            names_file=self.base64_url_includes_filename,
            only_presets=self.only_presets,
            encryption_key=self.encryption_key,
        )
        options = read_options(
            segments,
            self.preset_options,
            defaults={**self.option_defaults, **self._hints(request)},
            extension=source.extension,
            allowed=() if self.only_presets else self.allowed_options,
            security=self.allow_security_options,
        )
        return ImgproxyUrl(
            source=self.sources.source(source.text),
            signed=bool(self.pairs),
            allowed=bool(self.allowed_sources),
            delivery=ForeignDelivery(
                filename=options.filename,
                download=options.return_attachment,
                expires=options.expires or None,
                version=options.cachebuster or None,
                max_age=self.ttl,
                source_age=self.cache_control_passthrough or None,
            ),
            options=attrs.evolve(options, filename=None, return_attachment=False, expires=0, cachebuster=""),
            watermark=self._watermark(options),
            watermark_opacity=self.watermark_opacity,
            encoding=self._encoding(request, options),
        )

    def _check_secret(self, request: ForeignRequest) -> None:
        if self.secret is None:
            return
        expected, got = f"Bearer {self.secret}", request.header("Authorization")
        if not hmac.compare_digest(expected.encode(), got.encode("utf-8", "surrogateescape")):
            message = "The request must have the header Authorization: Bearer with the secret of the service."
            raise DialectError(message, status=FORBIDDEN)

    def _hints(self, request: ForeignRequest) -> dict[str, Any]:
        """Return the pixel density and the width that the client wants unless the URL says otherwise."""
        if not self.client_hints:
            return {}
        densities = [_number(request.header(name)) for name in ("Sec-CH-DPR", "DPR")]
        widths = [_number(request.header(name)) for name in ("Sec-CH-Width", "Width")]
        dpr = next((value for value in densities if 0 < value <= _MOST_DENSITY), 1.0)
        width = next((value for value in widths if value >= 1 and value.is_integer()), None)
        return {"dpr": dpr} | ({} if width is None else {"width": half_up(width / dpr)})

    def _watermark(self, options: Options) -> str | None:
        """Return the id of the watermark that the URL names, or of the usual one."""
        url = options.pro.watermark_url
        if url is None:
            return self.watermark
        if (found := dict(self.watermarks).get(url)) is None:
            message = f"Option 'watermark_url' must be a key of the setting 'watermarks', got {shown(url)}."
            raise not_found(message)
        return found

    def _encoding(self, request: ForeignRequest, options: Options) -> Encoding:
        """Return how pictures are encoded where the URL leaves it open, or has no say."""
        choices = {"jxl": self.enforce_jxl, "avif": self.enforce_avif, "webp": self.enforce_webp}
        if options.format is None:
            automatic = {"jxl": self.auto_jxl, "avif": self.auto_avif, "webp": self.auto_webp}
            choices = {name: choices[name] or automatic[name] for name in choices}
        accepted: tuple[str, ...] = ()
        if any(choices.values()) and not options.raw:
            accepted = accepted_formats(request.header("Accept"), choices)
        return Encoding(
            accepted,
            tuple(FORMATS[name] for name in self.preferred_formats),
            self.qualities,
            self.quality,
            self.avif_speed,
        )


def _number(text: str) -> float:
    try:
        return decimal(text)
    except ValueError:
        return 0.0


__all__ = ["Imgproxy", "ImgproxyUrl", "sign"]
