"""The one table of formats: names, media types and abilities.

What is here is what a format can do; whether this machine can read or write it is asked of
`imgsvc_core.codecs.availability`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

import attrs


class LoadScaling(enum.Enum):
    """How a decoder can deliver a smaller picture than the one that is stored."""

    NONE = "none"
    DCT = "dct"  # by 2, 4 or 8, in the transform of JPEG
    CONTINUOUS = "continuous"  # to any size
    LEVELS = "levels"  # to one of the sizes in `ImageInfo.levels`


@attrs.frozen(kw_only=True)
class Format:
    """One row: a file format and what it can carry."""

    name: str = attrs.field(metadata={"doc": "Name in requests and results."})
    title: str = attrs.field(metadata={"doc": "Name for people."})
    media_type: str = attrs.field(metadata={"doc": "Media type of the HTTP header."})
    suffixes: tuple[str, ...] = attrs.field(metadata={"doc": "File suffixes, the usual one first."})
    aliases: tuple[str, ...] = attrs.field(
        default=(), metadata={"doc": "Other spellings of the name that requests may use."}
    )
    writable: bool = attrs.field(default=True, metadata={"doc": "Whether it is an output format."})
    alpha: bool = attrs.field(default=True, metadata={"doc": "Whether it carries transparency."})
    animation: bool = attrs.field(default=False, metadata={"doc": "Whether it carries several frames."})
    depth: int = attrs.field(default=8, metadata={"doc": "Bits per channel that the writer keeps at most."})
    quality: int | None = attrs.field(
        default=None, metadata={"doc": "Default quality 1 to 100; none where the format has no such setting."}
    )
    lossless: bool = attrs.field(default=True, metadata={"doc": "Whether it can store pixels exactly."})
    interlaces: bool = attrs.field(
        default=False, metadata={"doc": "Whether it can be written progressively."}
    )
    max_side: int = attrs.field(default=65_535, metadata={"doc": "Longest side in pixels that fits."})
    load_scaling: LoadScaling = attrs.field(
        default=LoadScaling.NONE, metadata={"doc": "How the decoder can scale down."}
    )
    becomes: str = attrs.field(metadata={"doc": "Output format where the request names none."})
    extra: str | None = attrs.field(
        default=None, metadata={"doc": "Extra of the package that brings the codec, where one is needed."}
    )

    @property
    def suffix(self) -> str:
        """The usual file suffix, with its dot."""
        return self.suffixes[0]


_ROWS = (
    Format(
        name="jpg", title="JPEG", media_type="image/jpeg", suffixes=(".jpg", ".jpeg", ".jpe", ".jfif"),
        aliases=("jpeg",), alpha=False, quality=80, lossless=False, interlaces=True,
        load_scaling=LoadScaling.DCT, becomes="jpg",
    ),
    Format(
        name="jp2", title="JPEG 2000", media_type="image/jp2", suffixes=(".jp2", ".j2k", ".jpx", ".j2c"),
        aliases=("jpeg2000",), depth=16, quality=80, load_scaling=LoadScaling.LEVELS, becomes="jp2",
    ),
    Format(
        name="png", title="PNG", media_type="image/png", suffixes=(".png",), depth=16, interlaces=True,
        becomes="png",
    ),
    Format(
        name="apng", title="Animated PNG", media_type="image/apng", suffixes=(".apng",), animation=True,
        depth=16, becomes="apng",
    ),
    Format(
        name="gif", title="GIF", media_type="image/gif", suffixes=(".gif",), animation=True, lossless=False,
        interlaces=True, becomes="gif",
    ),
    Format(
        name="webp", title="WebP", media_type="image/webp", suffixes=(".webp",), animation=True, quality=80,
        max_side=16_383, load_scaling=LoadScaling.CONTINUOUS, becomes="webp",
    ),
    Format(
        name="heic", title="HEIC", media_type="image/heic", suffixes=(".heic", ".heif", ".hif"),
        aliases=("heif",), depth=10, quality=60, lossless=False, max_side=16_384, becomes="heic",
        extra="heic",
    ),
    Format(
        name="avif", title="AVIF", media_type="image/avif", suffixes=(".avif",), depth=10, quality=60,
        max_side=16_384, becomes="avif",
    ),
    Format(
        name="tiff", title="TIFF", media_type="image/tiff", suffixes=(".tiff", ".tif"), aliases=("tif",),
        depth=16, load_scaling=LoadScaling.LEVELS, becomes="jpg",
    ),
    Format(
        name="bmp", title="BMP", media_type="image/bmp", suffixes=(".bmp", ".dib"), writable=False,
        becomes="jpg",
    ),
    Format(
        name="ico", title="ICO", media_type="image/x-icon", suffixes=(".ico", ".cur"), writable=False,
        becomes="png",
    ),
    Format(
        name="psd", title="PSD", media_type="image/vnd.adobe.photoshop", suffixes=(".psd", ".psb"),
        writable=False, depth=16, becomes="jpg",
    ),
    Format(
        name="svg", title="SVG", media_type="image/svg+xml", suffixes=(".svg", ".svgz"), writable=False,
        load_scaling=LoadScaling.CONTINUOUS, becomes="png",
    ),
)  # fmt: skip

FORMATS: Mapping[str, Format] = MappingProxyType({row.name: row for row in _ROWS})

OUTPUT_NAMES: tuple[str, ...] = tuple(row.name for row in _ROWS if row.writable)

_BY_NAME = {name: row for row in _ROWS for name in (row.name, *row.aliases)}
_BY_SUFFIX = {suffix: row for row in _ROWS for suffix in row.suffixes}


def by_name(name: str) -> Format | None:
    """The row of a name or alias, in any case."""
    return _BY_NAME.get(name.lower())


def by_suffix(suffix: str) -> Format | None:
    """The row of a file suffix with its dot, in any case."""
    return _BY_SUFFIX.get(suffix.lower())
