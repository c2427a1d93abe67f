"""Few pixels that are reduced in an array are the same as from libvips."""

from __future__ import annotations

import numpy as np
import pytest
import pyvips
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core.formats.metadata import BLOBS
from imgsvc_core.formats.vips import from_array, to_array
from imgsvc_core.pixels import reduction, resampling
from imgsvc_core.plan.geometry import Area, Size
from tests.support.photos import coffee


@given(
    width=st.integers(1, 300),
    height=st.integers(1, 300),
    bands=st.integers(1, 4),
    noisy=st.booleans(),
    data=st.data(),
)
def test_samples_are_those_of_libvips(
    width: int, height: int, bands: int, noisy: bool, data: st.DataObject
) -> None:
    pixels = np.random.default_rng(width * height).integers(0, 256, (height, width, bands), np.uint8)
    if not noisy:
        pixels = np.resize(coffee()[:300], (height, width, bands))
    have = Size(width, height)
    want = Size(data.draw(st.integers(1, width)), data.draw(st.integers(1, height)))
    image = from_array(pixels)
    expected = to_array(resampling.resample(image, have, *want, Area(0, 0, *have)))
    found = reduction.reduced(image, want)
    assert found.interpretation == image.interpretation
    assert np.array_equal(to_array(found), expected)


def test_what_is_attached_stays() -> None:
    image = from_array(coffee()[:80, :90]).copy(xres=4.0, yres=3.0)
    for name in BLOBS:
        image.set_type(pyvips.GValue.blob_type, name, name.encode())
    image.set_type(pyvips.GValue.refstr_type, "resolution-unit", "cm")
    image.set_type(pyvips.GValue.gint_type, "concurrency", 3)
    found = reduction.reduced(image, Size(45, 20))
    assert (found.width, found.height, found.xres, found.yres) == (45, 20, 4.0, 3.0)
    assert [bytes(found.get(name)) for name in BLOBS] == [name.encode() for name in BLOBS]
    assert (found.get("resolution-unit"), found.get("concurrency")) == ("cm", 3)


@pytest.mark.parametrize(
    ("image", "want"),
    [
        (from_array(coffee()[:80, :90]), Size(91, 80)),
        (from_array(coffee()), Size(30, 20)),
        (from_array(coffee()[:80, :90].astype(np.uint16)), Size(45, 40)),
    ],
    ids=["larger", "many pixels", "16 bits"],
)
def test_other_reductions_are_left_to_libvips(image: pyvips.Image, want: Size) -> None:
    assert resampling.reduce_in_array(image, Size(image.width, image.height), want) is None
