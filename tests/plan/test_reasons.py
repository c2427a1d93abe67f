"""Every stage of an explained plan says why it is there."""

from __future__ import annotations

from typing import Any

import pytest

import imgsvc_core as imgsvc
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.plan.decoding import fits_array


def info(**facts: Any) -> ImageInfo:
    known: dict[str, Any] = {
        "format": "jpg", "width": 2725, "height": 2225, "colorspace": "srgb", "depth": 8, "bytes": 800_000,
    }  # fmt: skip
    return ImageInfo(**known | facts)


def reasons(request: dict[str, Any], **facts: Any) -> dict[str, str]:
    """The last reason of each phase."""
    lines = imgsvc.explain(imgsvc.parse(request), info(**facts)).lines()
    return {line["phase"]: line["why"] for line in lines}


def test_the_decoder_scales_because_enough_pixels_are_left() -> None:
    why = reasons({"resize": {"width": 720}})
    assert why["load"] == "1362 x 1112 pixels are enough for 720 x 588, pixels are needed once, in order"
    assert why["resize"] == "mode auto keeps the aspect within 720 x any"


@pytest.mark.parametrize(
    ("facts", "decoding", "reason"),
    [
        ({}, "JPEG, decode at 1/2 of its size, in order", "pixels are needed once, in order"),
        ({"width": 400, "height": 300}, "JPEG, whole in memory", "the pixels are few"),
        ({"format": "png"}, "PNG, line by line", "pixels are needed once, in order"),
    ],
)
def test_only_what_is_decoded_by_lines_is_called_so(
    facts: dict[str, Any], decoding: str, reason: str
) -> None:
    request = imgsvc.parse({"resize": {"width": 360 if facts else 720}})
    load = imgsvc.explain(request, info(**facts)).lines()[0]
    assert load["text"] == decoding
    assert load["why"].endswith(reason)


@pytest.mark.parametrize(("format", "kept"), [("png", False), ("webp", True)])
def test_lossless_is_a_setting_of_formats_that_have_a_quality(format: str, kept: bool) -> None:
    plan = imgsvc.explain({"output": {"format": format, "lossless": True}}, info())
    assert plan.save[0].lossless is kept


@pytest.mark.parametrize(("subsample", "examined"), [("4:4:4", True), (None, True), ("4:2:0", False)])
def test_only_color_of_a_lower_resolution_makes_a_photograph(subsample: str | None, examined: bool) -> None:
    plan = imgsvc.explain({"output": {"format": "auto"}}, info(width=300, height=200, subsample=subsample))
    assert bool(plan.save_exactly) is examined


@pytest.mark.parametrize(
    ("size", "fits"), [((80, 64), True), ((80, 63), False), ((79, 64), False), ((79, 63), False)]
)
def test_only_whole_pixels_are_decoded_small_into_an_array(size: tuple[int, int], fits: bool) -> None:
    facts = info(width=size[0], height=size[1])
    assert fits_array(facts, 0.5, ()) is fits
    assert fits_array(facts, 1.0, ())


@pytest.mark.parametrize(
    ("width", "least", "scale"), [(100, None, 1 / 8), (100, 0.5, 0.5), (1300, 0.25, 1.0)]
)
def test_a_jpeg_is_decoded_no_smaller_than_allowed(width: int, least: float | None, scale: float) -> None:
    spec = imgsvc.Spec(resize=imgsvc.Resize(width=width, least_scale=least))
    assert imgsvc.explain(spec, info()).load.scale == scale


@pytest.mark.parametrize(
    ("request_", "facts", "phase", "expected"),
    [
        ({}, {"orientation": 6}, "orient", "EXIF orientation 6"),
        ({"flip": {"horizontal": True}}, {"orientation": 6}, "flip", "together with EXIF orientation 6"),
        ({"rotate": {"angle": 90}}, {}, "load", "'turn by 90 degrees clockwise' needs pixels out of order"),
        ({}, {"profile": True}, "orient", "the picture has a profile"),
        ({}, {"colorspace": "cmyk"}, "orient", "the picture is cmyk"),
        ({"scale": {"size": 0.5}}, {}, "scale", "factor 0.5"),
        ({"crop": {"mode": "ratio", "ratio": "16:9"}}, {}, "crop", "the largest part of 16:9, gravity"),
        ({"crop": {"width": 9, "height": 9, "x": 1, "y": 1}}, {}, "crop", "at the given place"),
        ({"crop": {"width": 9, "height": 9, "y": 1}}, {}, "crop", "at the given place"),
        ({"crop": {"width": 9, "height": 9}}, {}, "crop", "gravity center"),
        (
            {"crop": {"width": 9, "height": 9, "gravity": "top", "offset_y": 5}},
            {}, "crop", "gravity top, offset 0, 5",
        ),
        (
            {"resize": {"width": 100, "height": 100, "mode": "fit", "gravity": "top"}},
            {}, "resize", "122 x 100 exceeds the box, gravity top",
        ),
        (
            {"adjust": {"brightness": 10, "contrast": 10}},
            {}, "adjust", "pointwise steps go together",
        ),
        ({"adjust": {"sharpen": 10}}, {}, "adjust", "in a pass of its own, as it looks beyond single pixels"),
        ({"output": {"format": "webp"}}, {}, "output", "as asked for"),
        ({}, {}, "output", "the format of the source"),
        ({}, {"format": "bmp"}, "output", "what BMP becomes unless told otherwise"),
        ({"output": {"format": "auto"}}, {}, "output", "the smallest suitable"),
    ],
)  # fmt: skip
def test_each_stage_has_its_reason(
    request_: dict[str, Any], facts: dict[str, Any], phase: str, expected: str
) -> None:
    assert reasons(request_, **facts)[phase].startswith(expected)


def test_transparency_is_dropped_because_the_format_has_none() -> None:
    plan = imgsvc.explain(imgsvc.parse({"mask": {"shape": "ellipse"}, "output": {"format": "jpg"}}), info())
    assert [line["why"] for line in plan.lines() if line["text"] == "lay on FFFFFF"] == [
        "JPEG has no transparency"
    ]
    assert "lay on FFFFFF (JPEG has no transparency)" in str(plan)


def test_layers_are_told_with_their_sizes() -> None:
    layers = [
        {"shape": {"kind": "ellipse", "color": "F00"}, "width": 10, "height": "1%"},
        {"gradient": {"from": "000", "to": "80FFFFFF"}, "scale": 0.5},
        {"picture": {"source": "https://me:secret@a.b/c.png"}},
    ]
    lines = imgsvc.explain({"layers": layers}, info(width=600, height=400)).lines()
    assert [line["text"] for line in lines if line["phase"] == "layers"] == [
        "draw ellipse of 10 x 4 in FF0000",
        "draw gradient of 300 x 200 from 000000 to 80FFFFFF",
        "lay layer picture 'https://a.b/c.png' over the picture",
    ]
