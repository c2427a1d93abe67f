"""Sizes and positions, for any picture."""

from __future__ import annotations

import math
from typing import Any, Literal

import attrs
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from imgsvc_core.plan import geometry, turns
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Flip, Resize, Scale

SIDES = st.integers(1, 20_000)
SIZES = st.builds(Size, SIDES, SIDES)


def _keeps_aspect(size: Size, result: Size) -> bool:
    """Whether one side follows from the other to within half a pixel, but is at least 1."""
    across, down = result.width / size.width, result.height / size.height
    return (
        abs(max(1, size.height * across) - result.height) <= 0.5 + 1e-9
        or abs(max(1, size.width * down) - result.width) <= 0.5 + 1e-9
    )


@given(SIZES, st.none() | SIDES, st.none() | SIDES, st.booleans())
def test_auto_stays_within_the_box_and_keeps_the_aspect(
    size: Size, width: int | None, height: int | None, upscale: bool
) -> None:
    if width is None and height is None:
        return
    scaled, final = geometry.resized(size, Resize(width=width, height=height, upscale=upscale))
    assert scaled == final
    assert min(scaled) >= 1
    assert width is None or scaled.width <= width
    assert height is None or scaled.height <= height
    assert _keeps_aspect(size, scaled)
    if upscale:
        assert scaled.width == width or scaled.height == height
    else:
        assert scaled.width <= size.width
        assert scaled.height <= size.height


@given(SIZES, SIZES, st.booleans())
def test_fit_covers_the_box_and_cuts_to_it(size: Size, box: Size, upscale: bool) -> None:
    request = Resize(width=box.width, height=box.height, mode="fit", upscale=upscale)
    scaled, final = geometry.resized(size, request)
    assert _keeps_aspect(size, scaled)
    if upscale:
        assert final == box
        assert scaled.width >= box.width
        assert scaled.height >= box.height
        assert scaled.width == box.width or scaled.height == box.height
    else:
        assert final == Size(min(scaled.width, box.width), min(scaled.height, box.height))
        assert scaled.width <= max(size.width, 1)
        assert scaled.height <= max(size.height, 1)


@given(SIZES, SIZES, st.booleans())
def test_fill_lies_inside_the_box_and_pads_to_it(size: Size, box: Size, upscale: bool) -> None:
    request = Resize(width=box.width, height=box.height, mode="fill", upscale=upscale)
    scaled, final = geometry.resized(size, request)
    assert final == box
    assert 1 <= scaled.width <= box.width
    assert 1 <= scaled.height <= box.height
    assert _keeps_aspect(size, scaled)


LEAST = st.none() | st.integers(1, 3000)


@given(SIZES, SIDES, SIDES, LEAST, LEAST, st.booleans(), st.sampled_from(["auto", "fit"]))
def test_least_sides_enlarge_and_the_box_cuts(
    size: Size, width: int, height: int, least_width: int | None, least_height: int | None, upscale: bool,
    mode: Literal["auto", "fit"],
) -> None:  # fmt: skip
    request = Resize(width=width, height=height, mode=mode, upscale=upscale)
    plain = geometry.resized(size, request)
    request = attrs.evolve(request, min_width=least_width, min_height=least_height)
    scaled, final = geometry.resized(size, request)
    least = least_width or 1, least_height or 1
    assert scaled.width >= least[0]
    assert scaled.height >= least[1]
    assert _keeps_aspect(size, scaled)
    assert final == (min(scaled.width, width), min(scaled.height, height))
    if plain.scaled.width >= least[0] and plain.scaled.height >= least[1]:
        assert scaled == plain.scaled
    else:
        assert scaled.width == least[0] or scaled.height == least[1]


@given(SIZES, st.integers(1, 3000))
def test_without_a_box_only_what_is_smaller_is_enlarged(size: Size, least: int) -> None:
    scaled, final = geometry.resized(size, Resize(min_width=least))
    assert scaled == final
    if size.width >= least:
        assert scaled == size
    else:
        assert scaled == geometry.resized(size, Resize(width=least)).scaled


def test_least_sides_of_some_pictures() -> None:
    def both(source: tuple[int, int], **request: Any) -> tuple[Size, Size]:
        return geometry.resized(Size(*source), Resize(**request))

    assert both((2725, 2225), width=300, height=200, min_width=400) == ((400, 327), (300, 200))
    assert both((2725, 2225), width=300, height=200, min_width=400, upscale=False) == ((400, 327), (300, 200))
    assert both((200, 100), width=100, min_height=80) == ((160, 80), (100, 80))
    assert both((10_000, 1), width=100, min_width=400) == ((400, 1), (100, 1))


@pytest.mark.parametrize("mode", ["auto", "fit", "fill", "stretch"])
def test_a_box_that_is_hardly_larger_enlarges_nothing(
    mode: Literal["auto", "fit", "fill", "stretch"],
) -> None:
    request = Resize(width=101, height=81, mode=mode, upscale=False)
    assert geometry.resized(Size(100, 80), request).scaled == (100, 80)
    assert geometry.resized(Size(100, 80), attrs.evolve(request, upscale=True)).scaled.width == 101


def test_halves_of_pixels_are_rounded_up() -> None:
    for height, rounded in ((125, 63), (127, 64)):
        assert geometry.resized(Size(200, height), Resize(width=100)).scaled == (100, rounded)
        assert geometry.scaled(Size(200, height), Scale(size=0.5)) == (100, rounded)


@given(st.integers(0, 8 * 6000), st.integers(8, 8 * 30_000), st.integers(1, 6000))
@example(4, 8 * 640, 320)  # of half a pixel at each end, libvips makes one more
@example(2, 8 * 480, 320)
def test_what_starts_within_a_pixel_is_reduced_in_its_place(start: int, length: int, want: int) -> None:
    """As libvips reduces: the middle of a row stays in the middle, and its length is rounded."""
    place, whole = start / 8, length / 8
    assume(whole >= 1.2 * want and whole >= want + 1)
    way = geometry.stretch(place, whole, want)
    assert math.floor(way.taken / way.factor + 0.5) == way.made
    assert 0 <= way.skipped <= way.made - want
    for pixel in (0, want // 2, want - 1):
        from_middle = way.skipped + pixel + 0.5 - way.made / 2
        found = way.first + way.taken / 2 + from_middle * way.factor
        assert abs(found - place - (pixel + 0.5) * whole / want) <= way.factor / 128


@given(SIZES, SIZES)
def test_stretch_is_the_box(size: Size, box: Size) -> None:
    free = geometry.resized(size, Resize(width=box.width, height=box.height, mode="stretch"))
    assert free.final == box
    held = geometry.resized(size, Resize(width=box.width, height=box.height, mode="stretch", upscale=False))
    assert held.final == Size(min(size.width, box.width), min(size.height, box.height))


@given(SIZES, st.floats(0.01, 10), st.none() | st.floats(0.01, 100))
def test_scaling_multiplies_and_never_vanishes(size: Size, factor: float, ratio: float | None) -> None:
    width, height = geometry.scaled(size, Scale(size=factor, ratio=ratio))
    assert width == max(1, width)
    assert abs(width - size.width * factor) <= 0.5 or width == 1
    wanted = size.height * factor if ratio is None else width * ratio
    assert abs(height - wanted) <= 0.5 or height == 1


@given(SIZES, st.floats(-360, 360))
def test_a_rotated_frame_holds_the_whole_picture(size: Size, angle: float) -> None:
    frame = geometry.rotated(size, angle)
    turn = np.radians(angle)
    corners = np.array(
        [[x, y] for x in (-size.width / 2, size.width / 2) for y in (-size.height / 2, size.height / 2)]
    )
    turned = corners @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    spans = turned.max(axis=0) - turned.min(axis=0)
    assert abs(frame.width - max(spans[0], 1)) <= 0.5 + 1e-6
    assert abs(frame.height - max(spans[1], 1)) <= 0.5 + 1e-6


@given(SIZES, st.integers(1, 100), st.integers(1, 100))
def test_the_part_of_a_ratio_is_the_largest(size: Size, across: int, down: int) -> None:
    part = geometry.largest_of_ratio(size, (across, down))
    assert 1 <= part.width <= size.width
    assert 1 <= part.height <= size.height
    assert part.width == size.width or part.height == size.height
    assert (
        abs(part.width * down / across - part.height) <= 0.5
        or abs(part.height * across / down - part.width) <= 0.5
        or 1 in part
    )


@given(SIZES, st.integers(-30_000, 30_000), st.integers(-30_000, 30_000), SIDES, SIDES)
def test_a_clipped_box_lies_in_the_picture(size: Size, left: int, top: int, width: int, height: int) -> None:
    part = geometry.clipped(size, left, top, width, height)
    outside = left >= size.width or top >= size.height or left + width <= 0 or top + height <= 0
    assert (part is None) == outside
    if part is not None:
        assert part.left >= 0
        assert part.top >= 0
        assert part.left + part.width <= size.width
        assert part.top + part.height <= size.height
        assert min(part.size) >= 1


@given(SIZES, st.data())
def test_a_part_around_a_point_stays_inside(size: Size, data: st.DataObject) -> None:
    inner = Size(data.draw(st.integers(1, size.width)), data.draw(st.integers(1, size.height)))
    center = (data.draw(st.floats(-1e5, 1e5)), data.draw(st.floats(-1e5, 1e5)))
    left, top = geometry.around(center, inner, size)
    assert 0 <= left <= size.width - inner.width
    assert 0 <= top <= size.height - inner.height


_NUMPY = {
    1: lambda a: a,
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: np.transpose,
    6: lambda a: np.rot90(a, -1),
    7: lambda a: np.rot90(np.transpose(a), 2),
    8: np.rot90,
}


@given(st.integers(1, 8), st.integers(1, 8))
def test_turns_combine_as_pictures_do(first: int, second: int) -> None:
    picture = np.arange(6).reshape(2, 3)
    combined = _NUMPY[turns.then(first, second)](picture)
    assert np.array_equal(combined, _NUMPY[second](_NUMPY[first](picture)))
    assert turns.then(first, turns.inverse(first)) == 1


@given(st.integers(1, 8), st.integers(1, 30), st.integers(1, 30), st.data())
def test_a_turned_box_holds_the_same_pixels(turn: int, width: int, height: int, data: st.DataObject) -> None:
    picture = np.arange(width * height).reshape(height, width)
    left, top = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    box = Box(left, top, data.draw(st.integers(1, width - left)), data.draw(st.integers(1, height - top)))
    part = picture[box.top : box.top + box.height, box.left : box.left + box.width]
    moved = turns.turned_box(box, Size(width, height), turn)
    turned = _NUMPY[turn](picture)
    assert turned.shape[::-1] == turns.turned(Size(width, height), turn)
    same = turned[moved.top : moved.top + moved.height, moved.left : moved.left + moved.width]
    assert np.array_equal(same, _NUMPY[turn](part))


@given(st.booleans(), st.booleans())
def test_flips_are_turns(horizontal: bool, vertical: bool) -> None:
    picture = np.arange(6).reshape(2, 3)
    expected = picture[:: -1 if vertical else 1, :: -1 if horizontal else 1]
    turn = turns.of_flip(Flip(horizontal=horizontal, vertical=vertical))
    assert np.array_equal(_NUMPY[turn](picture), expected)


def test_angles_are_turns() -> None:
    assert [turns.of_angle(angle) for angle in (0, 90, 180, 270, 360, -90, -360, 45)] == [
        1,
        6,
        3,
        8,
        1,
        8,
        1,
        None,
    ]
