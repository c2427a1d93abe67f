"""Layers over pixels in an array, which must be the same samples as by libvips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import pyvips

import imgsvc_core as imgsvc
from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.formats.raster import Raster
from imgsvc_core.pixels import render
from tests.support.photos import as_vips, photo

pytest.importorskip("fontpkg_inter")

PICTURE = photo("astronaut")[:300, :400]
JPEG = as_vips(PICTURE).jpegsave_buffer(Q=90)
GRAY = as_vips(PICTURE[..., :1]).jpegsave_buffer(Q=90)
NOISE = np.random.default_rng(1).integers(0, 256, (350, 380, 4), np.uint8)
MARKS = {
    name: as_vips(NOISE[..., :bands]).copy(interpretation=space).pngsave_buffer()
    for name, bands, space in (("color", 4, "srgb"), ("gray", 2, "b-w"), ("opaque", 3, "srgb"))
}
TEXT = {"text": {"text": "Autumn leaves", "size": 40, "color": "80FF3300"}}
LAYERS: dict[str, list[dict[str, Any]]] = {
    "text": [{**TEXT, "x": 20, "y": 30}],
    "over two edges": [{**TEXT, "x": 250, "y": -20}],
    "outside": [{**TEXT, "x": 500, "y": 0}],
    "gray text": [{"text": {"text": "gray", "size": 90, "color": "808080"}}],
    "faded": [{**TEXT, "opacity": 0.4}],
    "pictures": [{"picture": {"id": name}, "x": 30, "y": -60} for name in MARKS],
    "faded picture": [{"picture": {"id": "color"}, "opacity": 0.6}],
    "gray picture": [{"picture": {"id": "gray"}, "x": -40, "y": 20}],
    "several": [
        {"gradient": {"from": "00000000", "to": "cc000000"}},
        {**TEXT, "blend": "multiply"},
        {"shape": {"kind": "ellipse", "color": "80336699"}, "width": 150, "height": 90, "rotation": 20},
        {**TEXT, "shadow": {"x": 3, "y": 3}, "repeat": {}},
    ],
}


def made(source: bytes, request: dict[str, Any]) -> Any:
    return imgsvc.process(source, request, watermarks=MARKS).to_numpy()


@pytest.mark.parametrize("resize", [{}, {"resize": {"width": 333}}])
@pytest.mark.parametrize("source", [JPEG, GRAY], ids=["color", "gray"])
@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)
def test_samples_are_those_of_libvips(
    layers: list[dict[str, Any]], source: bytes, resize: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = {**resize, "layers": layers, "output": {"format": "png"}}
    in_array = made(source, request)
    monkeypatch.setattr(render, "_fit_array", lambda *_: False)
    monkeypatch.setattr("imgsvc_core.plan.compiler.fits_array", lambda *_: False)
    assert np.array_equal(in_array, made(source, request))


def test_a_source_in_an_array_serves_several_results() -> None:
    layers = [{"shape": {"kind": "rectangle", "color": "ff0000"}, "width": 50, "height": 50}]
    png = {"format": "png"}
    both = imgsvc.process_variants(
        JPEG, {"with": {"layers": layers, "output": png}, "without": {"output": png}}
    )
    with_layers, without = (both[name].to_numpy() for name in ("with", "without"))
    assert (with_layers[125:175, 175:225] == (255, 0, 0)).all()
    assert np.array_equal(without, pyvips.Image.new_from_buffer(JPEG, "").numpy())


@pytest.mark.parametrize("resize", [{}, {"resize": {"width": 333}}])
def test_the_profile_stays(resize: dict[str, Any]) -> None:
    tagged = as_vips(PICTURE).copy()
    profile = pyvips.Operation.call("profile_load", "srgb")
    tagged.set_type(pyvips.GValue.blob_type, PROFILE, profile)
    result = imgsvc.process(tagged.jpegsave_buffer(), {**resize, "layers": LAYERS["text"]})
    assert pyvips.Image.new_from_buffer(result.data, "").get(PROFILE) == profile


def test_small_jpegs_stay_in_an_array(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    usual = render.render

    def noted(image: Any, *rest: Any) -> Any:
        found = usual(image, *rest)
        seen.append(found.image)
        return found

    monkeypatch.setattr("imgsvc_core.making.render", noted)
    made(JPEG, {"layers": LAYERS["text"]})
    made(JPEG, {"layers": LAYERS["text"], "resize": {"width": 333}})
    made(as_vips(np.dstack([PICTURE, PICTURE[..., :1]])).pngsave_buffer(), {"layers": LAYERS["text"]})
    assert [isinstance(image, Raster) for image in seen] == [True, True, False]


def test_the_resolution_is_told_in_the_unit_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    source = as_vips(PICTURE).copy(xres=300 / 25.4, yres=300 / 25.4).tiffsave_buffer(resunit="inch")
    request = {"resize": {"width": 333}, "layers": LAYERS["text"], "output": {"format": "tiff"}}
    in_array = imgsvc.process(source, request).data
    monkeypatch.setattr(render, "_fit_array", lambda *_: False)
    monkeypatch.setattr("imgsvc_core.plan.compiler.fits_array", lambda *_: False)
    assert in_array == imgsvc.process(source, request).data
