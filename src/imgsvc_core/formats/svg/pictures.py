"""Pictures inside of a drawing as librsvg takes them: PNG or JPEG, upright, in sRGB, with their media type.

Browsers show more formats, go by the content rather than by the media type, turn photographs upright, and
heed color profiles.
"""

from __future__ import annotations

import base64
import re
from contextlib import suppress

import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE, has_profile
from imgsvc_core.errors import EmptySource, UnsupportedFormat
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.format import Format
from imgsvc_core.formats.icc import is_srgb
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import sniff
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.svg.inlined import decoded
from imgsvc_core.formats.svg.markup import MOST_MARKUP
from imgsvc_core.formats.vips import set_int

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
        if kind is None or picture.info.orientation != 1 or _has_other_colors(picture):
            kind, text = _encoded(picture)
        elif kind == declared:
            return uri[0]
    except (EmptySource, UnsupportedFormat):
        return uri[0]
    return b"".join((b"data:", kind, b";base64,", text))


def _has_other_colors(picture: Format) -> bool:
    """Return True if a picture has a profile, but not that of sRGB. librsvg ignores profiles."""
    if not picture.info.profile:
        return False
    with translate_errors(picture.info.format):
        image = pyvips.Image.new_from_source(picture.source.vips(), "")  # decodes no pixels
    return has_profile(image) and not is_srgb(image.get(PROFILE))


def _encoded(picture: Format) -> tuple[bytes, bytes]:
    """Return the media type and the base64 of the first frame, upright and in sRGB."""
    with translate_errors(picture.info.format):
        image = load(picture, LoadSettings(sequential=False))
        assert not isinstance(image, Raster)
        if has_profile(image):
            with suppress(pyvips.Error):  # a damaged profile, or one of another color model
                image = image.icc_transform("srgb", embedded=True, black_point_compensation=True)
        image = image.copy()
        set_int(image, "orientation", picture.info.orientation)
        image = image.autorot().colourspace("srgb")
        if image.hasalpha():
            return b"image/png", base64.b64encode(image.pngsave_buffer(compression=1, keep="none"))
        data = image.jpegsave_buffer(Q=_QUALITY, subsample_mode="off", keep="none")
        return b"image/jpeg", base64.b64encode(data)
