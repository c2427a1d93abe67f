"""What every spatial operation must do, whatever it does: shared by the tests of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
import pyvips
from hypothesis import strategies as st

from tests.support.photos import Pixels, as_pixels, as_vips, astronaut, camera, cut_out, deep, mosaic

Operation: TypeAlias = Callable[[pyvips.Image], pyvips.Image]

KINDS = {
    "gray": camera,
    "gray with alpha": lambda: np.dstack([camera(), cut_out()[:, :, 3]]),
    "color": astronaut,
    "color with alpha": cut_out,
    "deep gray": lambda: deep(camera()),
    "deep gray with alpha": lambda: deep(np.dstack([camera(), cut_out()[:, :, 3]])),
    "deep color": lambda: deep(astronaut()),
    "deep color with alpha": lambda: deep(cut_out()),
}

every_kind = pytest.mark.parametrize("kind", KINDS)


@st.composite
def pictures(draw: st.DrawFn, largest: int = 20) -> Pixels:
    """Noise of any kind from 1 x 1 pixels on: (height, width, bands)."""
    width, height = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    bands = draw(st.integers(1, 4))
    dtype: Any = draw(st.sampled_from([np.uint8, np.uint16]))
    random = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    return random.integers(0, np.iinfo(dtype).max, (height, width, bands), dtype, endpoint=True)


def assert_same_kind(result: pyvips.Image, source: pyvips.Image) -> None:
    """Size, bands, format and interpretation are kept, and all pixels can be computed."""
    kind = [
        (image.width, image.height, image.bands, image.format, image.interpretation)
        for image in (result, source)
    ]
    assert kind[0] == kind[1]
    assert len(result.write_to_memory()) == len(source.write_to_memory())


def assert_keeps_metadata(operation: Operation) -> None:
    """Fields that came with the picture, such as a color profile, are still there."""
    image = as_vips(cut_out()).copy()
    image.set_type(pyvips.GValue.blob_type, "icc-profile-data", b"profile")
    image.set_type(pyvips.GValue.gint_type, "loop", 3)
    result = operation(image)
    assert result.get("icc-profile-data") == b"profile"
    assert result.get("loop") == 3


def assert_flat_is_exact(operation: Operation, *, size: tuple[int, int] = (61, 83)) -> None:
    """A picture of one color does not change by a single level."""
    width, height = size
    grays, colors = ((0,), (1,), (77,), (128,), (254,), (255,)), ((0, 200, 3), (1, 77, 255), (254, 128, 90))
    for color in (*grays, *colors, *((*color, alpha) for color in colors for alpha in (255, 90))):
        pixels = np.full((height, width, len(color)), color, np.uint8)
        np.testing.assert_array_equal(as_vips(pixels).numpy(), operation(as_vips(pixels)).numpy())
    pixels = np.full((height, width, 3), (65535, 12345, 1), np.uint16)
    np.testing.assert_array_equal(pixels, operation(as_vips(pixels)).numpy())


def assert_no_halo(operation: Operation) -> None:
    """White next to fully transparent black stays white wherever it can be seen."""
    pixels = cut_out()
    pixels[:, :, :3] = np.where(pixels[:, :, 3:] > 0, 255, 0)
    result = operation(as_vips(pixels)).numpy()
    seen = result[:, :, 3] > 0
    assert seen.any()
    assert result[seen][:, :3].min() == 255


def assert_streams(operation: Operation) -> None:
    """Works on a source that can only be read once, from top to bottom, with the same pixels."""
    data = as_vips(mosaic(900, 1300)).pngsave_buffer(compression=0)
    streamed = operation(pyvips.Image.new_from_buffer(data, "", access="sequential"))
    written = pyvips.Image.new_from_buffer(streamed.pngsave_buffer(compression=0), "")
    np.testing.assert_array_equal(as_pixels(written), as_pixels(operation(as_vips(mosaic(900, 1300)))))


def assert_deep(operation: Operation) -> None:
    """16 bits are computed as such: the same picture as in 8 bits, but with the levels in between."""
    fine = operation(as_vips(deep(astronaut()))).numpy()
    coarse = operation(as_vips(astronaut())).numpy()
    assert np.abs(fine / 257 - coarse).mean() < 0.6
    assert np.unique(fine).size > 2000
