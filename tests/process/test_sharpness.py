"""What a decoder scales down comes out nearly as sharp as the whole picture reduced by Lanczos."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import attrs
import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.plan.geometry import stretch
from tests.support.photos import as_vips, mosaic

_WIDTH, _HEIGHT = 1363, 1113  # no multiples of what decoders reduce by
_EXACT = 53  # decibels, which is less than the rounding to 8 bits


@cache
def _source(format: str) -> bytes:
    photo, data = mosaic(_WIDTH, _HEIGHT), io.BytesIO()
    match format:
        case "tiff":
            return bytes(as_vips(photo).tiffsave_buffer(pyramid=True, tile=True, compression="deflate"))
        case "jp2":
            options: dict[str, Any] = {"quality_mode": "dB", "quality_layers": [45], "irreversible": True}
            Image.fromarray(photo).save(data, "JPEG2000", mct=1, **options)
        case "jpg 444":
            Image.fromarray(photo).save(data, "JPEG", quality=95, subsampling=0)
        case "jpg 420":
            Image.fromarray(photo).save(data, "JPEG", quality=95, subsampling=2)
        case "jpg 422":
            Image.fromarray(photo).save(data, "JPEG", quality=95, subsampling=1)
        case _:
            Image.fromarray(photo).save(data, format, quality=95)
    return data.getvalue()


@cache
def _whole(format: str) -> Image.Image:
    return Image.open(io.BytesIO(_source(format))).convert("RGB")


def _nearness(format: str, factor: float, scaling: str) -> tuple[float, float]:
    """Peak signal-to-noise ratio to what Pillow makes of the whole picture, and the scale of decoding."""
    resize = {"width": int(_WIDTH / factor), "scaling": scaling}
    request = {"resize": resize, "output": {"format": "png", "effort": 0}}
    result = imgsvc.process(_source(format), request)
    found = Image.open(io.BytesIO(result.data)).convert("RGB")
    expected = np.asarray(_whole(format).resize(found.size, Image.Resampling.LANCZOS), float)
    error = float(np.square(expected - np.asarray(found)).mean())
    return 10 * np.log10(255**2 / error), result.plan.load.scale


@pytest.mark.parametrize(
    ("format", "factor", "least"),
    [
        *((format, factor, least) for format in ("jpg 420", "jpg 444") for factor, least in (
            (1.5, _EXACT), (2.9, _EXACT), (3.02, 47), (4.9, 50), (5.03, 42), (6.03, 43), (8.9, 47),
            (9.05, 36.5), (17, 44),
        )),
        *(("jpg 422", factor, least) for factor, least in (
            (3.02, _EXACT), (4.85, 47), (7.9, 48), (8.05, 42.5), (14.3, 46), (14.5, 40),
        )),
        *(("webp", factor, least) for factor, least in (
            (1.95, _EXACT), (2.02, 43), (5.9, 42), (6.03, 41.7), (17, 38.7),
        )),
        *((format, factor, least) for format in ("jp2", "tiff") for factor, least in (
            (2.9, _EXACT), (3.02, 47), (5.9, 50), (6.03, 43), (12.1, 40), (17, 43.5),
        )),
    ],
)  # fmt: skip
def test_fast_is_near_to_the_whole_picture(format: str, factor: float, least: float) -> None:
    nearness, scale = _nearness(format, factor, "fast")
    assert nearness >= least
    assert (scale == 1) == (least >= _EXACT)


@pytest.mark.parametrize(
    ("subsample", "factor"), [("4:2:2", 1.6), ("4:4:0", 1.6), ("4:1:0", 1.6), ("4:1:1", 2.56), ("4:2:0", 1)]
)
def test_color_that_is_halved_in_one_direction_is_not_quartered_too_early(
    subsample: str, factor: float
) -> None:
    """Decoders at a scale halve it in the other direction, too."""
    info = attrs.evolve(imgsvc.inspect(_source("jpg 444")), width=8000, height=8000, subsample=subsample)
    for scale, least in ((1 / 2, 3), (1 / 4, 5), (1 / 8, 9)):
        enough, less = (int(info.width / (least * factor * by)) for by in (1.01, 0.99))
        plans = [imgsvc.explain({"resize": {"width": width}}, info) for width in (enough, less)]
        assert plans[0].load.scale == scale < plans[1].load.scale


@pytest.mark.parametrize("factor", [1.5, 3.02, 6.03, 9.05, 17, 30])
@pytest.mark.parametrize("format", ["jpg 420", "webp", "jp2", "tiff"])
def test_exact_is_the_whole_picture(format: str, factor: float) -> None:
    nearness, scale = _nearness(format, factor, "exact")
    assert nearness >= _EXACT - (factor > 20)  # few pixels, and Pillow rounds between its two passes
    assert scale == 1


@pytest.mark.parametrize("want", [(1, 1), (5, 3), (31, 24), (197, 117), (213, 160), (219, 177)])
def test_exact_weighs_no_copies_of_the_edge(want: tuple[int, int]) -> None:
    """Pillow computes floats without rounding, so that only the last rounding is left."""
    gray = mosaic(220, 180)[..., 1]
    resize = {"width": want[0], "height": want[1], "mode": "stretch", "scaling": "exact"}
    result = imgsvc.process(gray, {"resize": resize, "output": {"format": "png"}})
    found = np.asarray(Image.open(io.BytesIO(result.data)).convert("L"), float)
    expected = Image.fromarray(gray.astype(np.float32)).resize(want, Image.Resampling.LANCZOS)
    assert np.abs(found - np.asarray(expected).clip(0, 255)).max() < 1


@pytest.mark.parametrize("request_", [{"resize": {"width": 100}}, {"scale": {"size": 0.07}}])
def test_resize_and_scale_follow_the_same_rule(request_: dict[str, dict[str, Any]]) -> None:
    info = imgsvc.inspect(_source("jpg 420"))
    ((key, asked),) = request_.items()
    assert imgsvc.explain(imgsvc.parse(request_), info).load.scale == 1 / 8
    assert imgsvc.explain(imgsvc.parse({key: {**asked, "scaling": "exact"}}), info).load.scale == 1


@pytest.mark.parametrize("exact", ["resize", "scale"])
def test_of_two_that_are_done_at_once_one_may_be_exact(exact: str) -> None:
    request: dict[str, dict[str, Any]] = {"resize": {"width": 300}, "scale": {"size": 0.3}}
    request[exact]["scaling"] = "exact"
    assert imgsvc.explain(imgsvc.parse(request), imgsvc.inspect(_source("jpg 420"))).load.scale == 1


def test_variants_are_decoded_for_the_one_that_needs_most() -> None:
    sizes = {"small": {"width": 60}, "large": {"width": 300}, "exact": {"width": 60, "scaling": "exact"}}
    variants = {name: {"resize": size, "output": {"format": "png"}} for name, size in sizes.items()}
    source = _source("jpg 420")
    together = imgsvc.process_variants(source, variants)
    assert {result.plan.load.scale for result in together.values()} == {1}
    assert together["exact"].data == imgsvc.process(source, variants["exact"]).data
    del variants["exact"]
    assert {result.plan.load.scale for result in imgsvc.process_variants(source, variants).values()} == {
        1 / 2
    }


@pytest.mark.parametrize("factor", [2, 4.7, 12.3, 40])
def test_exact_keeps_white_white(factor: float) -> None:
    white = np.full((600, 600, 4), 255, np.uint8)
    request = {"resize": {"width": int(600 / factor), "scaling": "exact"}, "output": {"format": "png"}}
    found = np.asarray(Image.open(io.BytesIO(imgsvc.process(white, request).data)).convert("RGBA"))
    assert (found == 255).all()


@pytest.mark.parametrize("start", [0, 0.375, -0.25, 26.48])
@pytest.mark.parametrize("length", [340.75, 681.25, 1362.5, 1363, 2000])
def test_a_stretch_comes_to_its_place(start: float, length: float) -> None:
    """libvips keeps the middle of what it reduces in the middle."""
    misplaced = []
    for want in range(2, int(length / 1.5), 7):
        found = stretch(start, length, want)
        first = found.first + (found.taken - found.made * found.factor) / 2
        misplaced.append(abs(first - start + found.skipped * found.factor) / found.factor)
        assert int(found.taken / found.factor + 0.5) == found.made >= want + found.skipped
    assert np.mean(misplaced) <= 1 / 64
    assert max(misplaced) <= 1 / 6  # a quarter of a pixel taken, for factors such as 1.5 and 2
