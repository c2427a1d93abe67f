"""How results are encoded by default: as their source and their pixels suggest."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.plan import compile_plan
from imgsvc_core.plan.encoding import settings_for
from tests.process.pictures import pixels_of
from tests.support.photos import Pixels, as_vips, coffee, number_of_colors


def few_colors() -> Pixels:
    """Nine colored fields, with one of half transparency and one without any color."""
    colors = np.random.default_rng(5).integers(0, 256, (3, 3, 4), np.uint8)
    colors[..., 3] = 255
    colors[1, 1, 3] = 128
    colors[2, 2] = 0
    return np.repeat(np.repeat(colors, 20, axis=0), 20, axis=1)


def indexed_png() -> bytes:
    file = io.BytesIO()
    Image.fromarray(few_colors()).quantize(16, method=Image.Quantize.FASTOCTREE).save(file, "PNG")
    return file.getvalue()


def encoded(source: Any, **request: Any) -> imgsvc.Result:
    return imgsvc.process(source, request)


@pytest.mark.parametrize(
    "request_", [{}, {"crop": {"width": 50, "height": 50}}, {"flip": {"horizontal": True}}]
)
def test_an_indexed_picture_stays_indexed_and_exact(request_: dict[str, Any]) -> None:
    source = indexed_png()
    result = imgsvc.process(source, request_)
    assert result.output.colorspace == "palette"
    exact = imgsvc.process(source, {**request_, "output": {"format": "tiff"}}).data
    assert exact is not None
    assert np.array_equal(pixels_of(result.data or b""), pixels_of(exact))


def test_a_gif_becomes_an_indexed_png() -> None:
    file = io.BytesIO()
    Image.fromarray(coffee()).quantize(200).save(file, "GIF")
    result = encoded(file.getvalue(), output={"format": "png"})
    assert result.output.colorspace == "palette"
    with Image.open(file) as picture:
        assert np.array_equal(pixels_of(result.data or b""), np.asarray(picture.convert("RGB")))


def test_a_gif_of_grays_is_told_as_it_is_stored() -> None:
    """Decoders deliver it as a gray picture."""
    file = io.BytesIO()
    Image.fromarray(coffee()).convert("L").save(file, "GIF")
    told = imgsvc.process(file.getvalue(), {"output": {"format": "png"}}).input
    assert told == imgsvc.inspect(file.getvalue())
    assert told.colorspace == "palette"


def test_black_and_white_stays_at_one_bit() -> None:
    file = io.BytesIO()
    Image.fromarray(coffee()).convert("1").save(file, "PNG")
    result = encoded(file.getvalue())
    assert result.output.bytes < 1.2 * len(file.getvalue())
    with Image.open(file) as picture:
        assert np.array_equal(pixels_of(result.data or b""), np.asarray(picture.convert("L")))


def test_more_colors_than_a_palette_holds_are_kept() -> None:
    result = encoded(indexed_png(), filter={"blur": {"mode": "gaussian", "value": 40}})
    assert result.output.colorspace == "srgb"
    assert number_of_colors(pixels_of(result.data or b"")) > 256


@pytest.mark.parametrize(("stored", "known"), [("on", True), ("off", False)])
def test_a_source_with_less_color_is_a_photograph(stored: str, known: bool) -> None:
    source = as_vips(coffee()).jpegsave_buffer(Q=90, subsample_mode=stored)
    assert _is_photograph(source) == known
    assert (
        _is_photograph(source, adjust={"saturation": -90}, filter={"vignette": {"value": 50, "radius": 50}})
        == known
    )


_STYLES: dict[str, dict[str, Any]] = {
    "gray": {"adjust": {"saturation": -100, "contrast": 10}},
    "one hue": {"filter": {"monochrome": {"value": 100, "color": "#ff0000"}}},
    "no hue": {"filter": {"isolate": {"color": "#ff0000", "threshold": 0}}},
    "two colors": {"filter": {"duotone": {"dark": "#000000", "light": "#00ff00"}}},
    "cells": {"filter": {"pixellate": {"value": 80}}},
    "dots": {"adjust": {"saturation": -100}, "filter": {"halftone": {"value": 50}}},
}


def _is_photograph(source: bytes, **request: Any) -> bool:
    return compile_plan(imgsvc.parse(request), imgsvc.inspect(source)).save[0].photograph


@pytest.mark.parametrize("style", _STYLES.values(), ids=_STYLES)
def test_a_photograph_that_became_a_graphic_gets_a_palette(style: dict[str, Any]) -> None:
    source = as_vips(coffee()).jpegsave_buffer(Q=90, subsample_mode="on")
    assert not _is_photograph(source, **style)
    result = imgsvc.process(source, {**style, "output": {"format": "png"}})
    assert result.output.colorspace == "palette"
    exact = imgsvc.process(source, {**style, "output": {"format": "tiff"}}).data
    assert np.array_equal(pixels_of(result.data), pixels_of(exact))


def test_grays_of_a_colored_picture_take_no_more_than_those_of_a_gray_one() -> None:
    gray = encoded(coffee(), adjust={"saturation": -100}, output={"format": "png"})
    one_band = encoded(pixels_of(gray.data)[..., 0], output={"format": "png"})
    assert gray.output.bytes < 1.02 * one_band.output.bytes


def test_what_the_format_does_not_support_is_left_out_when_it_is_chosen_later() -> None:
    limited = imgsvc.Output(subsampling="444", colors=16)
    webp, jpeg, png = (
        settings_for(FORMATS[name], limited, photograph=False) for name in ("webp", "jpg", "png")
    )
    assert (webp.subsampling, webp.colors) == (None, None)
    assert (jpeg.subsampling, jpeg.colors) == ("444", None)
    assert (png.subsampling, png.colors) == (None, 16)
    auto = settings_for(FORMATS["jpg"], imgsvc.Output(subsampling="auto"), photograph=False)
    assert auto.subsampling is None
