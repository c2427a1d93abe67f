"""What all pointwise operations have in common on pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
import pyvips

from imgsvc_core.errors import UnsupportedOperation
from imgsvc_core.pixels.pointwise import apply_blocks
from imgsvc_core.plan.folding import Block, fold
from imgsvc_core.spec import Adjust, Color, Duotone, Filter, Isolate, Sepia
from tests.support.colors import color_steps
from tests.support.photos import as_vips, astronaut, camera, cut_out, deep

STACKS: dict[str, tuple[Adjust, tuple[Filter, ...]]] = {
    "table": (Adjust(contrast=10), ()),
    "matrix": (Adjust(saturation=20), ()),
    "weighted matrix": (Adjust(vibrance=20), (Isolate(color=Color.parse("f80"), threshold=0.3),)),
    "all": (
        Adjust(exposure=10, vibrance=20, invert=True),
        (Sepia(value=20), Duotone(light=Color.parse("ffd"), dark=Color.parse("003"))),
    ),
}


def blocks_of(name: str, *, gray: bool = False) -> tuple[Block, ...]:
    adjust, filters = STACKS[name]
    return fold(color_steps(adjust, *filters), gray=gray)


@pytest.mark.parametrize("name", STACKS)
def test_metadata_stay(name: str) -> None:
    strip = as_vips(cut_out()).copy()
    strip.set_type(pyvips.GValue.gint_type, "page-height", 256)
    strip.set_type(pyvips.GValue.gint_type, "loop", 3)
    strip.set_type(pyvips.GValue.array_int_type, "delay", [100, 200])
    strip.set_type(pyvips.GValue.blob_type, "icc-profile-data", b"profile")
    result = apply_blocks(strip, blocks_of(name))
    for field in ("page-height", "loop", "delay", "icc-profile-data"):
        assert result.get(field) == strip.get(field)


@pytest.mark.parametrize("name", STACKS)
def test_depth_and_interpretation_stay(name: str) -> None:
    for pixels in (astronaut(), deep(astronaut())):
        image = as_vips(pixels)
        result = apply_blocks(image, blocks_of(name))
        assert (result.format, result.interpretation) == (image.format, image.interpretation)


def test_gray_becomes_rgb_of_the_same_depth() -> None:
    for pixels, interpretation in ((camera(), "srgb"), (deep(camera()), "rgb16")):
        assert apply_blocks(as_vips(pixels), blocks_of("all", gray=True)).interpretation == interpretation


@pytest.mark.parametrize("name", STACKS)
def test_pixels_stream(name: str, tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    as_vips(astronaut()).pngsave(str(path))
    streamed = pyvips.Image.new_from_file(str(path), access="sequential")
    expected = apply_blocks(as_vips(astronaut()), blocks_of(name)).write_to_memory()
    assert apply_blocks(streamed, blocks_of(name)).write_to_memory() == expected


def test_no_blocks_give_the_very_picture() -> None:
    image = as_vips(astronaut())
    assert apply_blocks(image, ()) is image


def test_floats_are_refused() -> None:
    with pytest.raises(UnsupportedOperation, match="8 or 16 bits per channel, got float"):
        apply_blocks(as_vips(astronaut()).cast("float"), blocks_of("table"))
