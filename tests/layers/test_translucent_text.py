"""Letters that are transparent or translucent, with and without what lies below them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from imgsvc_core.pixels.layers.text import draw_text
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.layers import Laid
from imgsvc_core.spec import Layer

pytest.importorskip("fontpkg_inter")

LINE = {"width": 4, "color": "FF0000"}
SHADOW = {"x": 20, "y": 20, "blur": 4, "color": "0000FF"}


def drawn(**text: Any) -> Any:
    layer = Layer(text={"size": 120, "font": "Inter Bold", **text})
    return draw_text(Laid(layer, "layers[0]", Size(800, 400))).filled.image.numpy().astype(int)


@pytest.mark.parametrize(
    "text",
    [
        {"text": "Hill", "color": "00FFFFFF"},
        {"spans": [{"text": "Hi", "color": "00FF0000"}, {"text": "ll", "color": "0000FF00"}]},
    ],
)
def test_transparent_letters_leave_no_mark(text: dict[str, Any]) -> None:
    assert drawn(**text)[..., 3].max() == 0


def test_a_transparent_part_takes_its_place() -> None:
    parts = [{"text": "Hi"}, {"text": "ll"}]
    seen = drawn(spans=[parts[0], {**parts[1], "color": "FF0000"}])
    half = drawn(spans=[parts[0], {**parts[1], "color": "00FF0000"}])
    red = (seen[..., 0] > 0).any(0)
    assert np.array_equal(half[:, ~red], seen[:, ~red])
    assert half[:, red, 3].max() == 0


@pytest.mark.parametrize("color", ["00FFFFFF", "80FFFFFF", "FEFFFFFF"])
@pytest.mark.parametrize("parts", [("Hill",), ("Hi", "ll")])
def test_an_outline_lies_outside_of_letters_that_are_seen_through(color: str, parts: tuple[str, ...]) -> None:
    colors = [color, "00000000"][: len(parts)]
    spans = [{"text": part, "color": own} for part, own in zip(parts, colors, strict=True)]
    opaque = drawn(text="Hill", color="FFFFFF", outline=LINE)
    found = drawn(spans=spans, outline=LINE)
    assert found.shape == opaque.shape
    line = (opaque == [255, 0, 0, 255]).all(-1)
    assert line.sum() > 1000
    assert np.abs(found[line] - [255, 0, 0, 255]).max() <= 1
    letters = (opaque == 255).all(-1)
    inside = {tuple(pixel) for pixel in found[letters]}
    alphas = {int(own[:2], 16) for own in colors}
    assert {pixel[3] for pixel in inside} <= alphas
    assert all(pixel[0] == pixel[1] == pixel[2] for pixel in inside if pixel[3])


@pytest.mark.parametrize("color", ["00FFFFFF", "80FFFFFF"])
def test_a_shadow_is_as_dark_below_letters_that_are_seen_through(color: str) -> None:
    opaque, found = (drawn(text="I", color=one, shadow=SHADOW) for one in ("FFFFFFFF", color))
    letter = drawn(text="I", color=color)
    margin = (np.array(found.shape) - letter.shape)[:2] // 2
    beside = np.pad(letter[..., 3], [(margin[0],) * 2, (margin[1],) * 2]) == 0
    shade = beside & (opaque[..., 2] == 255) & (opaque[..., 0] == 0)
    assert shade.sum() > 500
    assert np.array_equal(found[shade], opaque[shade])
