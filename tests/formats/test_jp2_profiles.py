"""Color profiles of JPEG 2000 are told beside the stored samples, which no decoder has converted by them."""

from __future__ import annotations

import struct

import imagecodecs
import numpy as np
import pytest

from imgsvc_core.formats.boxes import make_box
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.settings import LoadSettings
from tests.formats.test_profiles import GAMMA, P3, profile
from tests.support import photos
from tests.support.photos import Pixels

_WIDE = profile(GAMMA, P3, name="wide")
_GRAY = profile(GAMMA, name="gray", kTRC=GAMMA).replace(b"mntrRGB XYZ ", b"mntrGRAYXYZ ")


def _jp2(pixels: Pixels, icc: bytes) -> bytes:
    height, width, bands = (*pixels.shape, 1)[:3]
    size = struct.pack(">IIHBBBB", height, width, bands, 8 * pixels.itemsize - 1, 7, 0, 0)
    boxes = make_box(b"ihdr", size) + make_box(b"colr", b"\2\0\0" + icc)
    stream = imagecodecs.jpeg2k_encode(pixels, level=0, codecformat="j2k", reversible=True, mct=False)
    start = make_box(b"jP  ", b"\r\n\x87\n") + make_box(b"ftyp", b"jp2 \0\0\0\0jp2 ")
    return start + make_box(b"jp2h", boxes) + make_box(b"jp2c", bytes(stream))


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_profile_is_not_applied_by_the_decoder(channels: int, bits: int) -> None:
    photo = np.dstack((photos.coffee()[::8, ::8], photos.coffee()[::8, ::8, 0]))[..., :channels]
    pixels = photo if bits == 8 else photo.astype(np.uint16) * 257
    icc = _GRAY if channels == 1 else _WIDE
    image = load(probe(ByteSource(_jp2(np.squeeze(pixels), icc))), LoadSettings(sequential=False))
    assert np.array_equal(image.numpy().reshape(pixels.shape), pixels)
    assert image.get("icc-profile-data") == icc
