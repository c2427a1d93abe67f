"""Settings of the dialect."""

from functools import cached_property
from typing import Any, ClassVar

from imgsvc_core.errors import invalid
from imgsvc_core.formats.table import FORMATS as TABLE
from imgsvc_core.spec.declare import Parameters, declared, param
from imgsvc_core.spec.kinds import Integer, Number, Text
from imgsvc_urls.dialects.imgproxy.arguments import FORMATS
from imgsvc_urls.dialects.imgproxy.presets import Presets, read_presets
from imgsvc_urls.dialects.imgproxy.sources import Pairs, Sources, read_sources
from imgsvc_urls.dialects.reading import TextTable, texts

_HEX = texts(r"(?:[0-9A-Fa-f]{2})+", "texts of hexadecimal digits")
_FORMAT = "|".join(FORMATS)
_WRITABLE = "|".join(name for name, ours in FORMATS.items() if ours in TABLE and TABLE[ours].writable)
_QUALITIES = {"webp": 79, "avif": 63, "jxl": 77}
_MOST_SECONDS = 10 * 365 * 24 * 3600


@declared
class ImgproxySettings(Parameters):
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
        "Words that are accepted in place of a signature (IMGPROXY_TRUSTED_SIGNATURES).",
        texts(r"[^/\s]+", "words without slashes"),
        default=(),
        secret=True,
    )
    secret: str | None = param(
        "Token that clients must send as Authorization: Bearer (IMGPROXY_SECRET).",
        Text(2000),
        default=None,
        secret=True,
    )
    source_url_encryption_key: str | None = param(
        "Key of encrypted sources, 16, 24 or 32 bytes in hexadecimal (IMGPROXY_SOURCE_URL_ENCRYPTION_KEY).",
        Text(64, minimum=32),
        default=None,
        secret=True,
    )
    arguments_separator: str = param(
        "Separator of an option and its arguments (IMGPROXY_ARGUMENTS_SEPARATOR).", Text(20), default=":"
    )
    presets: tuple[str, ...] = param(
        "Presets, each as name=option:argument/option:argument (IMGPROXY_PRESETS).",
        texts(r"(?s).+", "presets such as card=rs:fill:300:200/q:70", one=True),
        default=(),
    )
    presets_separator: str | None = param(
        "Separator of presets if they are given as one text (IMGPROXY_PRESETS_SEPARATOR).",
        Text(20),
        default=None,
    )
    presets_path: str | None = param(
        "File with one preset on each line; lines that begin with # are comments (IMGPROXY_PRESETS_PATH).",
        Text(4096),
        default=None,
    )
    only_presets: bool = param(
        "Whether URLs name presets only, and no options (IMGPROXY_ONLY_PRESETS).", default=False
    )
    allowed_options: tuple[str, ...] = param(
        "The only options that URLs may have; all if empty (IMGPROXY_ALLOWED_PROCESSING_OPTIONS).",
        texts(r"[a-z_-]+", "names of options"),
        default=(),
    )
    allow_security_options: bool = param(
        "Whether URLs and presets may set limits. These never exceed the limits of the service "
        "(IMGPROXY_ALLOW_SECURITY_OPTIONS).",
        default=False,
    )
    url_replacements: Pairs = param(
        'Beginnings of sources and what replaces them, such as {"old://*/" = "https://example.org/${1}/"} '
        "(IMGPROXY_URL_REPLACEMENTS).",
        TextTable(),
        default=(),
    )
    base_url: tuple[str, ...] = param(
        "Prefix of sources that do not begin with it, such as the name of an origin and a slash. If there "
        "are several, a source may begin with any of them, and the first one is put before all others "
        "(IMGPROXY_BASE_URL).",
        texts(r"\S{0,2000}", "beginnings of sources", one=True),
        default=(),
    )
    allowed_sources: tuple[str, ...] = param(
        "Allowed beginnings of sources, with wildcards. They also count for unsigned URLs and origins "
        "(IMGPROXY_ALLOWED_SOURCES).",
        texts(
            r"https?://[^/\s]+/\S*|(?!https?:)[a-z][a-z0-9+.-]*:\S*",
            "beginnings of URLs with a slash after the host, such as https://*.example.org/ or s3://",
        ),
        default=(),
    )
    origins: Pairs = param(
        'Origins, or folders in them, by the beginnings of sources such as {"s3://bucket/" = "photos/"}; '
        "also for gs://, abs://, swift:// and local:///.",
        TextTable(),
        default=(),
    )
    base64_url_includes_filename: bool = param(
        "Whether sources in base64 end with a file name (IMGPROXY_BASE64_URL_INCLUDES_FILENAME).",
        default=False,
    )
    auto_jxl: bool = param(
        "Whether stills without a format become JPEG XL for clients that accept it (IMGPROXY_AUTO_JXL).",
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
    enforce_jxl: bool = param(
        "Whether stills become JPEG XL for clients that accept it, also if the URL names another format "
        "(IMGPROXY_ENFORCE_JXL).",
        default=False,
    )
    enforce_avif: bool = param(
        "Whether stills become AVIF for clients that accept it, also if the URL names another format "
        "(IMGPROXY_ENFORCE_AVIF).",
        default=False,
    )
    enforce_webp: bool = param(
        "Whether pictures become WebP for clients that accept it, also if the URL names another format "
        "(IMGPROXY_ENFORCE_WEBP).",
        default=False,
    )
    preferred_formats: tuple[str, ...] = param(
        "Formats that pictures keep if the URL names none. Others become the first of these that can hold "
        "them (IMGPROXY_PREFERRED_FORMATS).",
        texts(_WRITABLE, "names of formats that can be written", least=1),
        default=("jpeg", "png", "gif"),
    )
    client_hints: bool = param(
        "Whether dpr and width default to the headers Sec-CH-DPR and Sec-CH-Width, or DPR and Width "
        "(IMGPROXY_ENABLE_CLIENT_HINTS).",
        default=False,
    )
    quality: int = param(
        "Quality of formats that have no other (IMGPROXY_QUALITY).", Integer(1, 100), default=80
    )
    format_quality: tuple[str, ...] = param(
        "Qualities of formats, such as avif=50; by default webp=79, avif=63, jxl=77 "
        "(IMGPROXY_FORMAT_QUALITY).",
        texts(rf"(?:{_FORMAT})=(?:[1-9][0-9]?|100)", "formats and qualities such as avif=50"),
        default=(),
    )
    avif_speed: int = param(
        "Speed of the AVIF encoder. 0 to 2 have the effect of 3 (IMGPROXY_AVIF_SPEED).",
        Integer(0, 9),
        default=8,
    )
    skip_processing_formats: tuple[str, ...] = param(
        "Formats that are delivered as they are (IMGPROXY_SKIP_PROCESSING_FORMATS).",
        texts(_FORMAT, "names of formats"),
        default=(),
    )
    strip_metadata: bool = param("Whether metadata is removed (IMGPROXY_STRIP_METADATA).", default=True)
    keep_copyright: bool = param("Whether the copyright then stays (IMGPROXY_KEEP_COPYRIGHT).", default=True)
    preserve_hdr: bool = param(
        "Whether PNG, TIFF and AVIF keep more than 8 bits per channel (IMGPROXY_PRESERVE_HDR).", default=False
    )
    auto_rotate: bool = param(
        "Whether pictures are turned upright by their orientation (IMGPROXY_AUTO_ROTATE).", default=True
    )
    ttl: int | None = param(
        "How long caches keep pictures; by default delivery.max_age (IMGPROXY_TTL).",
        Integer(0, _MOST_SECONDS),
        unit="seconds",
        default=None,
    )
    cache_control_passthrough: bool = param(
        "Whether Cache-Control and Expires of the source replace ttl (IMGPROXY_CACHE_CONTROL_PASSTHROUGH).",
        default=False,
    )
    watermark: str | None = param("Id of the watermark.", Text(200), default=None)
    watermarks: Pairs = param(
        "Ids of watermarks by the URLs of the option watermark_url.", TextTable(), default=()
    )
    watermark_opacity: float = param(
        "Factor of the opacity of watermarks (IMGPROXY_WATERMARK_OPACITY).", Number(0, 1), default=1.0
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if len(self.keys) != len(self.salts):
            counts = f"got {len(self.keys)} keys and {len(self.salts)} salts"
            raise invalid("salts", f"{self.title} must have as many salts as keys, {counts}")
        self._check_encryption_key()
        _ = self.preset_options, self.sources

    def _check_encryption_key(self) -> None:
        try:
            key = bytes.fromhex(self.source_url_encryption_key or "00" * 16)
        except ValueError:
            key = b""
        if len(key) not in (16, 24, 32):
            name = "source_url_encryption_key"
            raise invalid(name, f"'{name}' must be 16, 24 or 32 bytes in hexadecimal digits")

    @cached_property
    def pairs(self) -> tuple[tuple[bytes, bytes], ...]:
        """The keys and salts of signatures."""
        pairs = zip(self.keys, self.salts, strict=True)
        return tuple((bytes.fromhex(key), bytes.fromhex(salt)) for key, salt in pairs)

    @cached_property
    def encryption_key(self) -> bytes | None:
        """The key of encrypted sources."""
        key = self.source_url_encryption_key
        return None if key is None else bytes.fromhex(key)

    @cached_property
    def preset_options(self) -> Presets:
        """The options of presets by name."""
        return read_presets(
            self.presets,
            self.presets_path,
            between=self.presets_separator,
            separator=self.arguments_separator,
            security=self.allow_security_options,
        )

    @cached_property
    def sources(self) -> Sources:
        """How the text of a source becomes a source."""
        return read_sources(self.url_replacements, self.base_url, self.allowed_sources, self.origins)

    @cached_property
    def qualities(self) -> tuple[tuple[str, int], ...]:
        """The qualities of formats, if the URL names none."""
        named = (item.split("=") for item in self.format_quality)
        return tuple(sorted({**_QUALITIES, **{FORMATS[name]: int(value) for name, value in named}}.items()))

    @cached_property
    def option_defaults(self) -> dict[str, Any]:
        """What the options of URLs change."""
        return {
            "strip_metadata": self.strip_metadata,
            "keep_copyright": self.keep_copyright,
            "preserve_hdr": self.preserve_hdr,
            "auto_rotate": self.auto_rotate,
            "skip_processing": tuple(sorted(FORMATS[name] for name in self.skip_processing_formats)),
        }
