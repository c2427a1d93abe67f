"""Photographs by jpegli, which takes a third of the time of progressive encoding for a twentieth less bytes.

It writes baseline files with one color for four pixels and without any metadata. Drawings, text and smooth
gradients become larger by it.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from importlib.util import find_spec
from typing import Any

import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE, bands_of, size_of
from imgsvc_core.formats.boundary import encoder
from imgsvc_core.formats.jpeg.quantization import JPEGLI_QUALITIES
from imgsvc_core.formats.jpeg.segments import make_segment, of_profile
from imgsvc_core.formats.metadata import blob, jpeg_segments
from imgsvc_core.formats.settings import MOST_EXAMINED, SaveSettings

MOST_SMOOTH = 0.75
"""The share of neighbors that differ by at most one level, up to which pictures become smaller: it is up to
.7 in photographs, mostly over .8 in drawings and text, and 1 in smooth gradients.
"""
# Qualities of jpegli at which photographs have the same SSIMULACRA2 as at those of libjpeg, as
# `benchmarks.encoders` measures. Below the first, the coarsest tables of jpegli are too fine.
_OWN_QUALITIES = (13, 23, 35, 51, 60, 70, 81, 89)

_START = b"\xff\xd8"


@functools.cache
def has_encoder() -> bool:
    """Return True if jpegli is installed."""
    return find_spec("pyjpegli") is not None


def can_write(image: pyvips.Image, settings: SaveSettings) -> bool:
    """Return True if the encoder is there and takes what is asked for, with one color for four pixels."""
    width, height = size_of(image)
    quality = settings.quality or 0
    return (
        settings.progressive is not True
        and JPEGLI_QUALITIES[0] <= quality <= JPEGLI_QUALITIES[-1]
        and bands_of(image) == 3
        and width * height <= MOST_EXAMINED
        and has_encoder()
    )


def encode(image: pyvips.Image, quality: int, pixels: Any = None) -> bytes:
    """Return the file, with the metadata and the profile of the picture, whose pixels may be known."""
    import pyjpegli

    samples = image.write_to_memory() if pixels is None else pixels
    with encoder("jpg"):
        encoded = pyjpegli.encode(samples, *size_of(image), own_quality(quality))
    profile = b"".join(make_segment(*part) for part in of_profile(blob(image, PROFILE) or b""))
    return b"".join((_START, jpeg_segments(image), profile, encoded[len(_START) :]))


def own_quality(quality: int) -> int:
    """Return the quality of jpegli at which photographs look as by libjpeg at this one."""
    place = min(bisect_right(JPEGLI_QUALITIES, quality), len(JPEGLI_QUALITIES) - 1)
    below, above = JPEGLI_QUALITIES[place - 1 : place + 1]
    own_below, own_above = _OWN_QUALITIES[place - 1 : place + 1]
    return round(own_below + (own_above - own_below) * (quality - below) / (above - below))
