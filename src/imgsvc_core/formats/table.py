"""The one table of formats: how each is told, parsed, decoded and encoded, and what it can carry.

A row is a class, and says what the format and our code can do. Whether this machine can read or write it,
with the packages that are installed, is asked of `imgsvc_core.formats.availability`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from imgsvc_core.formats.apng import Apng
from imgsvc_core.formats.bmp import Bmp
from imgsvc_core.formats.format import Format, LoadScaling
from imgsvc_core.formats.gif import Gif
from imgsvc_core.formats.heif import Avif, Heic
from imgsvc_core.formats.ico import Ico
from imgsvc_core.formats.jp2 import Jp2
from imgsvc_core.formats.jpeg import Jpeg
from imgsvc_core.formats.jxl import Jxl
from imgsvc_core.formats.png import Png
from imgsvc_core.formats.psd import Psd
from imgsvc_core.formats.svg import Svg
from imgsvc_core.formats.tiff import Tiff
from imgsvc_core.formats.webp import Webp

__all__ = [
    "FORMATS", "OUTPUT_NAMES", "Format", "LoadScaling", "OutputName", "by_name", "by_suffix", "codec_effort",
]  # fmt: skip

# Default qualities and efforts are measured by ``benchmarks.encoding``: the qualities make photographs look
# alike in all lossy formats, and more effort than the default costs far more time than it saves bytes. The
# scales leave out what never pays: level 3 of zlib, the steps 4 and 5 of GIF, and those of AVIF above 6 that
# take up to four times as long for 1 %.
_ROWS: tuple[type[Format], ...] = (
    Jpeg, Jp2, Png, Apng, Gif, Webp, Heic, Avif, Jxl, Tiff, Bmp, Ico, Psd, Svg,
)  # fmt: skip

OutputName = Literal["jpg", "jp2", "png", "apng", "gif", "webp", "heic", "avif", "jxl", "tiff"]
"""The names of all rows that are writable, for type checkers."""

FORMATS: Mapping[str, type[Format]] = MappingProxyType({row.name: row for row in _ROWS})

OUTPUT_NAMES: tuple[str, ...] = tuple(row.name for row in _ROWS if row.writable)

_BY_NAME = {name: row for row in _ROWS for name in (row.name, *row.aliases)}
_BY_SUFFIX = {suffix: row for row in _ROWS for suffix in row.suffixes}


def by_name(name: str) -> type[Format] | None:
    """Return the row of a name or alias, in any case."""
    return _BY_NAME.get(name.lower())


def by_suffix(suffix: str) -> type[Format] | None:
    """Return the row of a file suffix with its dot, in any case."""
    return _BY_SUFFIX.get(suffix.lower())


def codec_effort(format: str, effort: int | None) -> int | str:
    """Return what the codec of a format is told for an effort, or for its default one."""
    own = FORMATS[format].effort
    assert own is not None, format
    return own.scale[own.default if effort is None else effort]
