"""Limits refuse by numbers, and say the numbers."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
import pyvips

import imgsvc_core as imgsvc
from imgsvc_core.errors import ImageTooLarge, OutputTooLarge, SourceTooLarge, SpecError
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.vips import to_array
from imgsvc_core.limits import Limits, check_bytes, check_output, check_source, too_long
from tests.support.encoded import VARIANTS, encoded

NAMES = list(attrs.fields_dict(Limits))


def facts(width: int = 10, height: int = 10, frames: int = 1) -> ImageInfo:
    return ImageInfo(format="gif", width=width, height=height, colorspace="palette", bytes=100, frames=frames)


def test_defaults() -> None:
    assert attrs.asdict(Limits()) == {
        "source_bytes": 50_000_000,
        "source_pixels": 100_000_000,
        "output_pixels": 100_000_000,
        "output_side": 16_384,
        "frames": 500,
        "frame_pixels": 300_000_000,
        "channels": 64,
        "memory_bytes": 1_800_000_000,
        "seconds": 30,
    }


def test_every_limit_says_its_meaning_and_unit() -> None:
    for field in attrs.fields(Limits):
        assert field.metadata["doc"].endswith(".")
        assert field.metadata["unit"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "5"])
def test_only_positive_numbers(name: str, value: Any) -> None:
    with pytest.raises(SpecError, match=rf"Limits '{name}' parameter must be a positive .*, got") as caught:
        Limits(**{name: value})
    assert caught.value.problems[0].path == name


def test_only_time_may_be_a_fraction() -> None:
    assert Limits(seconds=0.5).seconds == 0.5
    with pytest.raises(SpecError, match="positive integer"):
        Limits(frames=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("info", "numbers"),
    [
        (facts(width=10_001, height=10_000), ["10001 x 10000", "100,010,000", "100,000,000"]),
        (facts(frames=501), ["501", "500"]),
        (facts(width=3000, height=1001, frames=100), ["300,300,000", "300,000,000"]),
        (attrs.evolve(facts(), decoded_pixels=100_000_001), ["100,000,001", "100,000,000"]),
        (attrs.evolve(facts(), channels=65), ["65", "64"]),
    ],
)
def test_source_beyond_a_limit(info: ImageInfo, numbers: list[str]) -> None:
    with pytest.raises(ImageTooLarge) as caught:
        check_source(info, Limits())
    assert all(number in caught.value.message for number in numbers)
    check_source(info, Limits.none())


@pytest.mark.parametrize(
    "info",
    [
        facts(width=10_000, height=10_000),
        facts(frames=500),
        facts(3000, 1000, 100),
        attrs.evolve(facts(), decoded_pixels=100_000_000, channels=64),
    ],
)
def test_source_at_a_limit(info: ImageInfo) -> None:
    check_source(info, Limits())


@pytest.mark.parametrize(
    ("size", "number"),
    [
        ((16_385, 1, 1), "16385 x 1"),
        ((1, 16_385, 1), "1 x 16385"),
        ((16_384, 6104, 1), "100,007,936"),
        ((1, 1, 501), "501"),
        ((3000, 1001, 100), "300,300,000"),
    ],
)
def test_output_beyond_a_limit(size: tuple[int, int, int], number: str) -> None:
    with pytest.raises(OutputTooLarge) as caught:
        check_output(*size, Limits())
    assert number in caught.value.message
    check_output(*size, Limits.none())


def test_output_at_the_limits() -> None:
    check_output(16_384, 6103, 1, Limits())
    check_output(3000, 1000, 100, Limits())
    check_output(10_000, 10_000, 1, Limits())
    check_output(1, 1, 500, Limits())


def test_a_still_picture_is_not_measured_as_an_animation() -> None:
    check_source(facts(width=100, height=100), Limits(frame_pixels=1))
    check_output(100, 100, 1, Limits(frame_pixels=1))


def test_bytes_alone() -> None:
    check_bytes(10, Limits(source_bytes=10))
    with pytest.raises(SourceTooLarge, match="11 bytes; at most 10"):
        check_bytes(11, Limits(source_bytes=10))
    check_bytes(50_000_000, Limits())
    with pytest.raises(SourceTooLarge, match="50,000,001 bytes; at most 50,000,000"):
        check_bytes(50_000_001, Limits())
    check_bytes(50_000_001, Limits.none())


@pytest.mark.parametrize("name", VARIANTS)
def test_limits_hold_for_every_format(name: str) -> None:
    variant = encoded(name)
    height, width = variant.pixels.shape[variant.animated :][:2]
    imgsvc.process(variant.data, limits=Limits(source_pixels=width * height))
    with pytest.raises(ImageTooLarge, match=f"{width} x {height}"):
        imgsvc.process(variant.data, limits=Limits(source_pixels=width * height - 1))
    with pytest.raises(SourceTooLarge):
        imgsvc.process(variant.data, limits=Limits(source_bytes=len(variant.data) - 1))


def huge_drawing(side: int = 51_500) -> bytes:
    """A drawing that states no size but a large system of coordinates, as logos of Firefox do."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}">'
        f'<circle cx="{side // 2}" cy="{side // 2}" r="{side // 3}" fill="red"/></svg>'
    ).encode()


def coverage(drawing: bytes, **request: Any) -> Any:
    data = imgsvc.process(drawing, {**request, "output": {"format": "png"}}).data
    return to_array(pyvips.Image.new_from_buffer(data, "")[3]).astype(int)


@pytest.mark.parametrize(
    "request_",
    [
        {"resize": {"width": 200}},
        {"crop": {"mode": "ratio", "ratio": "2:1"}, "resize": {"width": 300}},
        {"rotate": {"angle": 90}, "resize": {"width": 200}},
    ],
)
def test_of_a_drawing_the_size_counts_at_which_it_is_rendered(request_: dict[str, Any]) -> None:
    small, large = (coverage(huge_drawing(side), **request_) for side in (6_000, 60_000))
    assert small.shape == large.shape
    assert small.max() == 255
    assert np.abs(small - large).max() <= 8


@pytest.mark.parametrize(
    ("request_", "size"),
    [
        ({}, "51500 x 51500"),
        ({"trim": {"threshold": 10}, "resize": {"width": 200}}, "51500 x 51500"),
        ({"adjust": {"sharpen": 50}, "resize": {"width": 12_000}}, "12000 x 12000"),
    ],
)
def test_a_drawing_that_is_rendered_too_large_is_refused(request_: dict[str, Any], size: str) -> None:
    limits = attrs.evolve(Limits(), memory_bytes=None)
    with pytest.raises(ImageTooLarge, match=f"rendered at {size} = .*: ask for a smaller size"):
        imgsvc.process(huge_drawing(), {**request_, "output": {"format": "png"}}, limits=limits)


def test_a_drawing_is_rendered_at_any_size_without_limits() -> None:
    info = imgsvc.inspect(huge_drawing())
    plan = imgsvc.explain({"resize": {"width": 20_000}}, info, limits=Limits.none())
    assert plan.size == (20_000, 20_000)


def test_a_watermark_is_a_drawing_of_any_size() -> None:
    picture = pyvips.Image.black(100, 100, bands=3).copy(interpretation="srgb")
    marks = {"mark": huge_drawing()}
    request = {"watermark": {"id": "mark", "width": 50}, "output": {"format": "png"}}
    data = imgsvc.process(picture, request, watermarks=marks).data
    assert pyvips.Image.new_from_buffer(data, "").max() == 255


def test_limits_of_one_are_told_in_the_singular() -> None:
    with pytest.raises(ImageTooLarge, match="at most 1 is allowed"):
        imgsvc.process(encoded("gif_animated").data, limits=imgsvc.Limits(frames=1))
    assert "longer than the 1 second that is allowed:" in too_long(1).message
    assert "longer than the 1.5 seconds that are allowed:" in too_long(1.5).message
