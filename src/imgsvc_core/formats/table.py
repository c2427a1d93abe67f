"""The one table of formats: how each is told, parsed, decoded and encoded, and what it can carry.

A row says what the format and our code can do. Whether this machine can read or write it, with the packages
that are installed, is asked of `imgsvc_core.formats.availability`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Literal

import attrs


class LoadScaling(enum.Enum):
    """How a decoder can deliver a smaller picture than the one that is stored."""

    NONE = "none"
    DCT = "dct"  # by 2, 4 or 8, in the transform of JPEG
    CONTINUOUS = "continuous"  # to any size
    LEVELS = "levels"  # to one of the sizes in `ImageInfo.levels`


@attrs.frozen
class Memory:
    """How many bytes a codec holds for each byte of samples, at most, beyond some lines of the image.

    ``whole`` is for progressive and interlaced images, and ``deep`` replaces ``usual`` for samples of more
    than 8 bits, which some decoders hold as wide as narrow ones. Of an animation a codec holds all frames,
    unless they come ``one_by_one``. The numbers are measured by ``benchmarks.memory_bound``.
    """

    usual: float
    whole: float = 0
    alpha: float = 0
    lossless: float = 0
    palette: float = 0
    deep: float | None = None
    one_by_one: bool = False

    def copies(
        self,
        *,
        whole: bool = False,
        alpha: bool = False,
        lossless: bool = False,
        palette: bool = False,
        deep: bool = False,
    ) -> float:
        """Return the number for an image with these properties."""
        special = (whole * self.whole, alpha * self.alpha, lossless * self.lossless, palette * self.palette)
        return max(self.deep if deep and self.deep is not None else self.usual, *special)


@attrs.frozen
class Coder:
    """A decoder or an encoder: its function, its memory, and the packages that may do the work.

    The preferred package is the first. One of ``libvips:operation`` is present if libvips has the operation,
    or the HEIF compression.
    """

    function: str
    memory: Memory
    packages: tuple[str, ...]


@attrs.frozen
class Effort:
    """What the codec is told for ``effort`` 0 (fast) to 9 (small), and the default effort."""

    scale: tuple[int | str, ...]
    default: int


@attrs.frozen(kw_only=True)
class Format:
    """One row: a file format.

    Functions are named as ``module:function`` in this package and imported when they are first needed. For
    their signatures see `sniff`, `probe`, `readers` and `writers`.
    """

    name: str = attrs.field(metadata={"doc": "Name in requests and results."})
    title: str = attrs.field(metadata={"doc": "Name for people."})
    media_type: str = attrs.field(metadata={"doc": "Media type of the HTTP header."})
    suffixes: tuple[str, ...] = attrs.field(metadata={"doc": "File suffixes, the usual one first."})
    aliases: tuple[str, ...] = attrs.field(
        default=(), metadata={"doc": "Other spellings of the name that requests may use."}
    )
    magic: bytes = attrs.field(metadata={"doc": "Regular expression that the first bytes match."})
    accept: str | None = attrs.field(
        default=None, metadata={"doc": "Function that decides if the first bytes are not enough."}
    )
    header: str = attrs.field(metadata={"doc": "Function that reads the facts of the header."})
    reader: Coder = attrs.field(metadata={"doc": "How it is decoded."})
    writer: Coder | None = attrs.field(
        default=None, metadata={"doc": "How it is encoded, if it is an output format."}
    )
    internal: bool = attrs.field(
        default=False, metadata={"doc": "Whether only code can ask for it as output, such as dialects."}
    )
    effort: Effort | None = attrs.field(
        default=None, metadata={"doc": "How long the encoder may take, if it has such a setting."}
    )
    alpha: bool = attrs.field(default=True, metadata={"doc": "Whether it carries transparency."})
    animation: bool = attrs.field(default=False, metadata={"doc": "Whether it carries several frames."})
    depth: int = attrs.field(default=8, metadata={"doc": "Bits per channel that the writer keeps at most."})
    quality: int | None = attrs.field(
        default=None, metadata={"doc": "Default quality 1 to 100; None if the format has no such setting."}
    )
    lossless: bool = attrs.field(default=True, metadata={"doc": "Whether it can store pixels exactly."})
    subsamplings: tuple[str, ...] = attrs.field(
        default=(), metadata={"doc": "Resolutions of color that the writer offers: 420, 444."}
    )
    palette: bool = attrs.field(
        default=False, metadata={"doc": "Whether the number of colors can be limited to a palette."}
    )
    interlaces: bool = attrs.field(
        default=False, metadata={"doc": "Whether it can be written progressively."}
    )
    metadata: tuple[str, ...] = attrs.field(
        default=(), metadata={"doc": "What results can carry: exif, xmp, iptc, profile."}
    )
    max_side: int = attrs.field(default=65_535, metadata={"doc": "Longest side in pixels that fits."})
    load_scaling: LoadScaling = attrs.field(
        default=LoadScaling.NONE, metadata={"doc": "How the decoder can scale down."}
    )
    becomes: str = attrs.field(metadata={"doc": "Output format if the request names none."})
    extra: str | None = attrs.field(
        default=None, metadata={"doc": "Extra of the package that brings the codec, if one is needed."}
    )

    @property
    def suffix(self) -> str:
        """The usual file suffix, with its dot."""
        return self.suffixes[0]

    @property
    def writable(self) -> bool:
        """True if requests can name it as output."""
        return self.writer is not None and not self.internal


_PNG = rb"\x89PNG\r\n\x1a\n"
_BOXES = rb".{4}ftyp"
_SUBSAMPLINGS = ("420", "444")
_TURBOJPEG = find_spec("simplejpeg") is not None  # without it, libvips decodes each JPEG as a whole
_DEFLATE = Effort((1, 1, 2, 4, 4, 5, 6, 7, 8, 9), default=6)  # level 0 of zlib does not compress at all

# Default qualities and efforts are measured by ``benchmarks.encoding``: the qualities make photographs look
# alike in all lossy formats, and more effort than the default costs far more time than it saves bytes. The
# scales leave out what never pays: level 3 of zlib, the steps 4 and 5 of GIF, and those of AVIF above 6 that
# take up to four times as long for 1 %.
_ROWS = (
    Format(
        name="jpg", title="JPEG", media_type="image/jpeg", suffixes=(".jpg", ".jpeg", ".jpe", ".jfif"),
        aliases=("jpeg",),
        magic=rb"\xff\xd8\xff",
        header="jpeg.header:read_info",
        reader=Coder(
            "jpeg.reading:read", Memory(0 if _TURBOJPEG else 2.1, whole=2.1), ("libvips:jpegload_source",)
        ),
        writer=Coder("jpeg.writing:write", Memory(0.8, whole=4.5), ("libvips:jpegsave_target",)),
        effort=Effort((*["plain"] * 3, *["optimized"] * 4, *["trellis"] * 2, "exhaustive"), default=0),
        metadata=("exif", "xmp", "iptc", "profile"),
        alpha=False, quality=80, lossless=False, subsamplings=_SUBSAMPLINGS, interlaces=True,
        load_scaling=LoadScaling.DCT, becomes="jpg",
    ),
    Format(
        name="jp2", title="JPEG 2000", media_type="image/jp2", suffixes=(".jp2", ".j2k", ".jpx", ".j2c"),
        aliases=("jpeg2000",),
        magic=rb"\0\0\0\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51",
        header="jp2.header:read_info",
        reader=Coder(
            "jp2.reading:read", Memory(6.8, deep=3.6), ("libvips:jp2kload_source", "imagecodecs", "PIL")
        ),
        writer=Coder(
            "jp2.writing:write", Memory(2.2, lossless=3.1), ("libvips:jp2ksave_target", "imagecodecs", "PIL")
        ),
        metadata=("profile",),
        depth=16, quality=80, load_scaling=LoadScaling.LEVELS, becomes="jp2",
    ),
    Format(
        name="png", title="PNG", media_type="image/png", suffixes=(".png",),
        magic=_PNG, accept="png.header:is_still",
        header="png.header:read_info",
        reader=Coder("png.reading:read", Memory(0, whole=1.3), ("libvips:pngload_source",)),
        writer=Coder("png.writing:write", Memory(1.2, whole=2.4, palette=8), ("libvips:pngsave_target",)),
        effort=_DEFLATE,
        metadata=("exif", "xmp", "profile"),
        depth=16, palette=True, interlaces=True, becomes="png",
    ),
    Format(
        name="apng", title="Animated PNG", media_type="image/apng", suffixes=(".apng",),
        magic=_PNG, accept="png.header:is_animated",
        header="png.header:read_info",
        reader=Coder("apng.reading:read", Memory(2.3), ("libvips:pngload_source",)),
        writer=Coder("apng.writing:write", Memory(3.3), ("libvips:pngsave_target",)),
        effort=_DEFLATE,
        metadata=("exif", "xmp", "profile"),
        animation=True, depth=16, becomes="apng",
    ),
    Format(
        name="gif", title="GIF", media_type="image/gif", suffixes=(".gif",),
        magic=rb"GIF8[79]a",
        header="gif.header:read_info",
        reader=Coder("gif.reading:read", Memory(2.6, one_by_one=True), ("PIL",)),
        writer=Coder("gif.writing:write", Memory(4.2, one_by_one=True), ("libvips:gifsave_target",)),
        effort=Effort((3, 3, 3, 3, 3, 6, 7, 8, 9, 10), default=5),
        animation=True, lossless=False, palette=True, interlaces=True, becomes="gif",
    ),
    Format(
        name="webp", title="WebP", media_type="image/webp", suffixes=(".webp",),
        magic=rb"RIFF.{4}WEBP",
        header="webp.header:read_info",
        reader=Coder("webp.reading:read", Memory(3.3, one_by_one=True), ("libvips:webpload_source",)),
        writer=Coder(
            "webp.writing:write", Memory(2.6, alpha=7.6, lossless=9.6, one_by_one=True),
            ("libvips:webpsave_target",),
        ),
        effort=Effort((0, 1, 1, 2, 3, 3, 4, 5, 5, 6), default=6),
        metadata=("exif", "xmp", "profile"),
        animation=True, quality=80, subsamplings=("420",), max_side=16_383,
        load_scaling=LoadScaling.CONTINUOUS, becomes="webp",
    ),
    Format(
        name="heic", title="HEIC", media_type="image/heic", suffixes=(".heic", ".heif", ".hif"),
        aliases=("heif",),
        magic=_BOXES, accept="heif.header:is_heic",
        header="heif.header:read_info",
        reader=Coder("heif.reading:read_heic", Memory(2.2), ("libvips:hevc", "pillow_heif")),
        writer=Coder("heif.writing:write_heic", Memory(2.6, alpha=10), ("libvips:hevc", "pillow_heif")),
        effort=Effort(
            ("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "slower",
             "veryslow"), default=2,
        ),
        metadata=("exif", "xmp", "profile"),
        depth=10, quality=45, lossless=False, subsamplings=_SUBSAMPLINGS, max_side=16_384, becomes="heic",
        extra="heic",
    ),
    Format(
        name="avif", title="AVIF", media_type="image/avif", suffixes=(".avif",),
        magic=_BOXES, accept="heif.header:is_avif",
        header="heif.header:read_info",
        reader=Coder("heif.reading:read_avif", Memory(5.6), ("libvips:heifload_source",)),
        writer=Coder("heif.writing:write_avif", Memory(7.5, alpha=10, lossless=12.6), ("libvips:av1",)),
        effort=Effort((0, 1, 2, 3, 3, 4, 4, 5, 5, 6), default=2),
        metadata=("exif", "xmp", "profile"),
        depth=10, quality=60, subsamplings=_SUBSAMPLINGS, max_side=16_384, becomes="avif",
    ),
    Format(
        name="tiff", title="TIFF", media_type="image/tiff", suffixes=(".tiff", ".tif"), aliases=("tif",),
        magic=rb"II[*+]\0|MM\0[*+]",
        header="tiff.header:read_info",
        reader=Coder("tiff.reading:read", Memory(2.6), ("libvips:tiffload_source",)),
        writer=Coder("tiff.writing:write", Memory(1.2), ("libvips:tiffsave_target",)),
        metadata=("exif", "xmp", "iptc", "profile"),
        depth=16, load_scaling=LoadScaling.LEVELS, becomes="jpg",
    ),
    Format(
        name="bmp", title="BMP", media_type="image/bmp", suffixes=(".bmp", ".dib"),
        magic=rb"BM", accept="bmp.header:is_bmp",
        header="bmp.header:read_info",
        reader=Coder("bmp.reading:read", Memory(2.2), ("numpy",)),
        writer=Coder("bmp.writing:write", Memory(4), ("numpy",)), internal=True,
        becomes="jpg",
    ),
    Format(
        name="ico", title="ICO", media_type="image/x-icon", suffixes=(".ico", ".cur"),
        magic=rb"\0\0[\x01\x02]\0(?!\0\0)",
        header="ico.header:read_info",
        reader=Coder("ico.reading:read", Memory(3), ("numpy",)),
        writer=Coder("ico.writing:write", Memory(2.4), ("libvips:pngsave_target",)), internal=True,
        max_side=256,
        becomes="png",
    ),
    Format(
        name="psd", title="PSD", media_type="image/vnd.adobe.photoshop", suffixes=(".psd", ".psb"),
        magic=rb"8BPS\0[\x01\x02]",
        header="psd.header:read_info",
        reader=Coder("psd.reading:read", Memory(3.4), ("psd_tools",)),
        depth=16, becomes="jpg",
    ),
    Format(
        name="svg", title="SVG", media_type="image/svg+xml", suffixes=(".svg", ".svgz"),
        magic=rb"", accept="svg.header:is_svg",
        header="svg.header:read_info",
        reader=Coder("svg.reading:read", Memory(2), ("libvips:svgload_buffer",)),
        load_scaling=LoadScaling.CONTINUOUS, becomes="png",
    ),
)  # fmt: skip

OutputName = Literal["jpg", "jp2", "png", "apng", "gif", "webp", "heic", "avif", "tiff"]
"""The names of all rows that are writable, for type checkers."""

FORMATS: Mapping[str, Format] = MappingProxyType({row.name: row for row in _ROWS})

OUTPUT_NAMES: tuple[str, ...] = tuple(row.name for row in _ROWS if row.writable)

_BY_NAME = {name: row for row in _ROWS for name in (row.name, *row.aliases)}
_BY_SUFFIX = {suffix: row for row in _ROWS for suffix in row.suffixes}


def by_name(name: str) -> Format | None:
    """Return the row of a name or alias, in any case."""
    return _BY_NAME.get(name.lower())


def by_suffix(suffix: str) -> Format | None:
    """Return the row of a file suffix with its dot, in any case."""
    return _BY_SUFFIX.get(suffix.lower())


def codec_effort(format: str, effort: int | None) -> int | str:
    """Return what the codec of a format is told for an effort, or for its default one."""
    own = FORMATS[format].effort
    assert own is not None, format
    return own.scale[own.default if effort is None else effort]
