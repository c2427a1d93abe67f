"""Sizes and places of layers, against arithmetic of their own."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from imgsvc_core.errors import SpecError
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.layers import Laid
from imgsvc_core.spec import Layer

SIZES = st.builds(Size, st.integers(1, 3000), st.integers(1, 3000))
LONGEST = 65_535  # pixels of a side
WORDS = {"left": (0, None), "right": (1, None), "top": (None, 0), "bottom": (None, 1)}
GRAVITIES = [
    "top-left", "top", "top-right", "right", "bottom-right", "bottom", "bottom-left", "left", "center",
]  # fmt: skip
GRADIENT = {"from": "000", "to": "fff"}


def lengths(low: int, high: int) -> st.SearchStrategy[int | str]:
    return st.integers(low, high) | st.integers(low, high).map(lambda share: f"{share / 8}%")


def in_pixels(length: int | str | None, whole: int) -> int:
    """The nearest whole number, halves upward."""
    if length is None:
        return 0
    exact = Fraction(length) if isinstance(length, int) else Fraction(length[:-1]) * whole / 100
    return int((exact + Fraction(1, 2)) // 1)


def ends(gravity: str) -> tuple[int | None, int | None]:
    """Across and down: 0 for the left or top edge, 1 for the other one, None for the middle."""
    sides = [WORDS[word] for word in gravity.split("-") if word in WORDS]
    across = next((side[0] for side in sides if side[0] is not None), None)
    down = next((side[1] for side in sides if side[1] is not None), None)
    return across, down


@given(
    frame=SIZES, size=SIZES, gravity=st.sampled_from(GRAVITIES),
    x=lengths(-500, 500) | st.none(), y=lengths(-500, 500) | st.none(), padding=lengths(0, 300) | st.none(),
)  # fmt: skip
def test_places_count_inwards_from_the_edges_of_gravity(
    frame: Size, size: Size, gravity: str, x: Any, y: Any, padding: Any
) -> None:
    layer = Layer(gradient=GRADIENT, gravity=gravity, x=x, y=y, padding=padding)
    place = Laid(layer, "layers[0]", frame).place(size)
    margin = in_pixels(padding, min(frame))
    for axis, (end, offset) in enumerate(zip(ends(gravity), (x, y), strict=True)):
        moved = in_pixels(offset, frame[axis])
        free = frame[axis] - size[axis]
        expected = {
            0: margin + moved,
            1: free - margin - moved,
            None: free // 2 + moved,
        }[end]
        assert place[axis] == expected


@given(frame=SIZES, size=SIZES, x=lengths(-500, 500), y=lengths(-500, 500) | st.none())
def test_without_gravity_places_count_from_the_top_left(frame: Size, size: Size, x: Any, y: Any) -> None:
    laid = Laid(Layer(gradient=GRADIENT, x=x, y=y), "layers[0]", frame)
    assert laid.place(size) == (in_pixels(x, frame.width), in_pixels(y, frame.height))


@given(frame=SIZES, size=SIZES)
def test_without_anything_a_layer_is_centered(frame: Size, size: Size) -> None:
    left, top = Laid(Layer(gradient=GRADIENT), "layers[0]", frame).place(size)
    assert 0 <= frame.width - size.width - 2 * left <= 1
    assert 0 <= frame.height - size.height - 2 * top <= 1


@given(
    frame=SIZES, own=SIZES, width=lengths(1, 900) | st.none(), height=lengths(1, 900) | st.none(),
    scale=st.floats(0.01, 10), upscale=st.booleans(),
)  # fmt: skip
@example(frame=Size(9, 9), own=Size(200, 100), width=900, height=None, scale=0.5, upscale=False)
@example(frame=Size(9, 9), own=Size(200, 100), width=None, height=None, scale=2.0, upscale=True)
def test_pictures_keep_their_aspect_within_width_and_height(
    frame: Size, own: Size, width: Any, height: Any, scale: float, upscale: bool
) -> None:
    layer = Layer(picture={"id": "a"}, width=width, height=height, scale=scale, upscale=upscale)
    bounds = [in_pixels(length, whole) for length, whole in zip((width, height), frame, strict=True)]
    assume(all(bound or length is None for bound, length in zip(bounds, (width, height), strict=True)))
    assume(max(bound or 1 for bound in bounds) * max(own) <= LONGEST * min(own))
    found = Laid(layer, "layers[0]", frame).picture_size(own)
    if not upscale:
        for side, most in zip(found, own, strict=True):
            assert side <= max(1, min(1.0, scale) * most + 0.5 + 1e-6)
    for side, bound, length in zip(found, bounds, (width, height), strict=True):
        assert length is None or side <= bound
    # within a pixel of the same aspect, or one pixel high or wide
    assert abs(found.width * own.height - found.height * own.width) <= max(own) or 1 in found
    factor = scale if upscale else min(1.0, scale)
    if width is None and height is None:
        assert abs(found.width - max(1, own.width * factor)) <= 0.5 + 1e-6
    elif upscale:
        assert any(side == bound for side, bound in zip(found, bounds, strict=True) if bound)


@given(frame=SIZES, width=lengths(1, 2000) | st.none(), height=lengths(1, 2000) | st.none())
def test_gradients_fill_their_sides_or_the_picture(frame: Size, width: Any, height: Any) -> None:
    laid = Laid(Layer(gradient=GRADIENT, width=width, height=height), "layers[0]", frame)
    wanted = [
        whole if length is None else in_pixels(length, whole)
        for length, whole in zip((width, height), frame, strict=True)
    ]
    if 0 in wanted:
        with pytest.raises(SpecError):
            _ = laid.drawn_size
    else:
        assert laid.drawn_size == tuple(wanted)


def test_a_line_lies_along_the_only_side_that_is_given() -> None:
    shape = {"kind": "line", "color": "fff", "thickness": "2%"}
    frame = Size(1000, 400)
    assert Laid(Layer(shape=shape, width=300), "", frame).drawn_size == (300, 8)
    assert Laid(Layer(shape=shape, height="50%"), "", frame).drawn_size == (8, 200)
    assert Laid(Layer(shape=shape), "", frame).drawn_size == (1000, 400)


@pytest.mark.parametrize(
    ("layer", "path"),
    [
        ({"shape": {"kind": "ellipse", "color": "f00"}, "width": "0.1%"}, "layers[3].width"),
        ({"gradient": GRADIENT, "height": "1000%"}, "layers[3].height"),
        ({"gradient": GRADIENT, "scale": 10, "height": 9000}, "layers[3].scale"),
    ],
)
def test_sides_that_come_out_as_nothing_or_too_much_are_told(layer: dict[str, Any], path: str) -> None:
    with pytest.raises(SpecError) as caught:
        _ = Laid(Layer(**{"gradient": None, **layer}), "layers[3]", Size(100, 9000)).drawn_size
    assert [problem.path for problem in caught.value.problems] == [path]
