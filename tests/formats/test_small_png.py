"""PNGs of few pixels, which the library encodes itself: every pixel, as other decoders see it."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
import pyvips
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.saving import save
from imgsvc_core.formats.settings import SaveSettings
from tests.support.photos import Pixels, as_vips, coffee

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _encoded(pixels: Pixels, effort: int | None = None) -> bytes:
    data = save(as_vips(pixels), SaveSettings(format="png", effort=effort)).data
    assert data is not None
    return data


@given(
    width=st.integers(1, 70),
    height=st.integers(1, 70),
    bands=st.integers(1, 4),
    smooth=st.booleans(),
    seed=st.integers(0, 99),
)
def test_other_decoders_see_every_pixel(width: int, height: int, bands: int, smooth: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    if smooth:
        y, x, band = np.mgrid[0:height, 0:width, 0:bands]
        pixels = (x * 3 + y * 5 + band * 80 + seed).astype(np.uint8)
    else:
        pixels = random.integers(0, 256, (height, width, bands), np.uint8)
    data = _encoded(pixels)
    with Image.open(io.BytesIO(data)) as found:
        assert found.mode == _MODES[bands]
        assert np.array_equal(np.asarray(found).reshape(pixels.shape), pixels)
    assert np.array_equal(
        pyvips.Image.pngload_buffer(data, fail_on="warning").numpy().reshape(pixels.shape), pixels
    )


def test_lines_have_the_filters_of_the_format() -> None:
    """Other decoders have undone them above."""
    noise = np.random.default_rng(3).integers(0, 256, (8, 64))
    across, down = np.cumsum(noise % 5, axis=1), noise[:1] + np.arange(8)[:, None] * 3
    slopes = np.vstack([noise, across, down, coffee()[40:48, 50:114, 0], across[:1] + down]).astype(np.uint8)
    data = _encoded(slopes[..., None])
    start = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[start - 4 : start])
    lines = zlib.decompress(data[start + 4 : start + 4 + length])
    filters = set(lines[:: slopes.shape[1] + 1])
    assert {0, 1, 2} < filters <= {0, 1, 2, 3, 4}


def _icon() -> Pixels:
    icon = np.zeros((48, 48, 3), np.uint8)
    icon[8:40, 8:40], icon[16:32, 16:32] = (30, 120, 220), (255, 255, 255)
    return icon


@pytest.mark.parametrize("pixels", [coffee()[100:164, 200:264], coffee()[:20, :31], _icon()])
@pytest.mark.parametrize("filter", ["none", "avg", "all"])
def test_small_files_are_no_larger_than_those_of_libvips(pixels: Pixels, filter: str) -> None:
    theirs = as_vips(pixels).pngsave_buffer(compression=6, filter=filter, keep="none")
    assert len(_encoded(pixels)) <= len(theirs) + 5


def test_effort_is_that_of_the_compression() -> None:
    pixels = coffee()[:64, :64]
    assert len(_encoded(pixels, effort=9)) <= len(_encoded(pixels, effort=1))


def test_the_resolution_stays() -> None:
    image = as_vips(coffee()[:20, :20]).copy(xres=11.811, yres=5.9055)
    found = pyvips.Image.pngload_buffer(save(image, SaveSettings(format="png")).data)
    assert (round(found.xres, 3), round(found.yres, 3)) == (11.811, 5.906)


def test_damage_met_while_pixels_are_computed_is_told() -> None:
    source = Image.fromarray(coffee())
    stored = io.BytesIO()
    source.save(stored, "PNG")
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(stored.getvalue()[:100_000], {"resize": {"width": 32}})


@pytest.mark.parametrize("resolution", [0, 0.001, 4e9])
def test_any_resolution_of_a_source_is_taken(resolution: float) -> None:
    tiff = io.BytesIO()
    Image.new("RGB", (4, 4)).save(tiff, "TIFF", resolution=resolution, resolution_unit="cm")
    result = imgsvc.process(tiff.getvalue(), {"output": {"format": "png"}})
    assert result.to_pil().size == (4, 4)
