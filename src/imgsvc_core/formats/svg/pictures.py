"""Pictures inside of a drawing in a form that librsvg takes: PNG or JPEG, upright, with their media type.

Browsers show more formats, go by the content rather than by the media type, and turn photographs upright.
"""

from __future__ import annotations

import base64
import re

from imgsvc_core.errors import EmptySource, UnsupportedFormat
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.format import Format
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import sniff
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.svg.inlined import decoded
from imgsvc_core.formats.svg.markup import MOST_MARKUP

_INLINED = re.compile(rb"""(?<=["'])\s*+data:([^"',;]*+)([^"',]*+),([^"']*+)""", re.IGNORECASE)
_TAKEN = {"png": b"image/png", "apng": b"image/png", "jpg": b"image/jpeg"}
_QUALITY = 95


def with_known_pictures(markup: bytes) -> bytes:
    """Return the drawing with each inlined picture as librsvg takes it. What is no picture stays.

    Raises:
        CorruptImage: a picture is damaged.
    """
    taken = _INLINED.sub(_taken, markup)
    return taken if len(taken) <= MOST_MARKUP else markup


def _taken(uri: re.Match[bytes]) -> bytes:
    declared, parameters, text = uri.groups()
    if not parameters.rstrip().lower().endswith(b"base64"):
        return uri[0]
    try:
        source = ByteSource(decoded(uri[0].decode("latin-1")))
        format = sniff(source)
        if format is None or format.name == "svg":
            return uri[0]
        picture = format.probe(HeaderReader(source, format.title))
        kind = _TAKEN.get(picture.info.format)
        if kind is None or picture.info.orientation != 1:
            kind, text = _encoded(picture)
        elif kind == declared:
            return uri[0]
    except (EmptySource, UnsupportedFormat):
        return uri[0]
    return b"".join((b"data:", kind, b";base64,", text))


def _encoded(picture: Format) -> tuple[bytes, bytes]:
    """Return the media type and the base64 of the first frame, upright."""
    with translate_errors(picture.info.format):
        image = load(picture, LoadSettings(sequential=False))
        assert not isinstance(image, Raster)
        image = image.autorot().colourspace("srgb")
        if image.hasalpha():
            return b"image/png", base64.b64encode(image.pngsave_buffer(compression=1, keep="none"))
        data = image.jpegsave_buffer(Q=_QUALITY, subsample_mode="off", keep="none")
        return b"image/jpeg", base64.b64encode(data)
