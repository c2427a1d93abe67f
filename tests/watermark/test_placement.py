"""Where a watermark lies and how large it is, by numbers alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core.plan.placement import (
    Tiles,
    gravity_offset,
    watermark_position,
    watermark_size,
    watermark_tiles,
)
from imgsvc_core.spec import Watermark
from imgsvc_core.spec.geometry import EDGES

SIZES = st.tuples(st.integers(1, 3000), st.integers(1, 3000))
BOUNDS = st.none() | st.integers(1, 3000)


@given(SIZES, SIZES, st.floats(0.01, 1), BOUNDS, BOUNDS, st.booleans())
def test_it_is_never_enlarged_and_keeps_its_aspect(
    mark: tuple[int, int],
    image: tuple[int, int],
    scale: float,
    width: int | None,
    height: int | None,
    fit: bool,
) -> None:
    found = watermark_size(mark, image, Watermark(id="a", scale=scale, width=width, height=height, fit=fit))
    assert 1 <= found.width <= mark[0]
    assert 1 <= found.height <= mark[1]
    assert width is None or found.width <= width
    assert height is None or found.height <= height
    if fit:
        assert found.width <= image[0]
        assert found.height <= image[1]
    across, down = found.width / mark[0], found.height / mark[1]
    assert abs(across - down) * max(mark) <= max(mark[0] / mark[1], mark[1] / mark[0]) + 1


@given(SIZES, SIZES)
def test_without_scale_and_bounds_it_keeps_its_size(mark: tuple[int, int], image: tuple[int, int]) -> None:
    assert watermark_size(mark, image, Watermark(id="a")) == mark


def test_scale_comes_before_the_bounds() -> None:
    assert watermark_size((400, 200), (9999, 9999), Watermark(id="a", scale=0.5, width=300)) == (200, 100)
    assert watermark_size((400, 200), (9999, 9999), Watermark(id="a", scale=0.5, width=100)) == (100, 50)


@pytest.mark.parametrize(
    ("gravity", "expected"),
    [
        ("top-left", (5, 5)),
        ("top", (45, 5)),
        ("top-right", (85, 5)),
        ("right", (85, 20)),
        ("bottom-right", (85, 35)),
        ("bottom", (45, 35)),
        ("bottom-left", (5, 35)),
        ("left", (5, 20)),
    ],
)
def test_gravity_pulls_to_an_edge_and_padding_keeps_off_it(gravity: str, expected: tuple[int, int]) -> None:
    watermark = Watermark(id="a", gravity=gravity, padding=5)
    assert watermark_position((10, 10), (100, 50), watermark) == expected


@given(st.sampled_from([None, *EDGES]), st.integers(1, 50), SIZES, SIZES, st.floats(0.01, 1))
def test_what_is_fitted_lies_inside_with_its_padding(
    gravity: str | None, padding: int, mark: tuple[int, int], outer: tuple[int, int], scale: float
) -> None:
    image = (outer[0] + padding, outer[1] + padding)
    distance = padding if gravity else None
    watermark = Watermark(id="a", gravity=gravity, padding=distance, fit=True, scale=scale)
    width, height = watermark_size(mark, image, watermark)
    left, top = watermark_position((width, height), image, watermark)
    named = (gravity or "").split("-")
    assert (padding if "left" in named else 0) <= left
    assert left + width <= image[0] - (padding if "right" in named else 0)
    assert (padding if "top" in named else 0) <= top
    assert top + height <= image[1] - (padding if "bottom" in named else 0)


def test_fitting_takes_no_more_than_it_must() -> None:
    assert watermark_size((400, 200), (100, 100), Watermark(id="a", fit=True)) == (100, 50)
    assert watermark_size((90, 45), (100, 100), Watermark(id="a", fit=True)) == (90, 45)
    padded = Watermark(id="a", fit=True, gravity="right", padding=20)
    assert watermark_size((400, 200), (100, 100), padded) == (80, 40)
    assert watermark_size((80, 90), (100, 100), padded) == (80, 90)


def test_exact_positions_and_the_center() -> None:
    assert watermark_position((10, 10), (100, 50), Watermark(id="a", x=-3, y=7)) == (-3, 7)
    assert watermark_position((10, 10), (100, 50), Watermark(id="a", x=4)) == (4, 0)
    assert watermark_position((10, 10), (100, 50), Watermark(id="a")) == (45, 20)
    assert watermark_position((200, 90), (100, 50), Watermark(id="a")) == (-50, -20)


@given(st.sampled_from([*EDGES, "center"]), SIZES, SIZES)
def test_what_fits_stays_inside(gravity: str, inner: tuple[int, int], outer: tuple[int, int]) -> None:
    left, top = gravity_offset(gravity, inner, outer)
    if inner[0] <= outer[0]:
        assert 0 <= left <= outer[0] - inner[0]
    if inner[1] <= outer[1]:
        assert 0 <= top <= outer[1] - inner[1]


@given(SIZES, SIZES, st.none() | st.integers(-100, 3500), st.none() | st.integers(-100, 3500))
def test_what_is_fitted_at_a_position_lies_inside_from_there_on(
    mark: tuple[int, int], image: tuple[int, int], x: int | None, y: int | None
) -> None:
    watermark = Watermark(id="a", x=x, y=y, fit=True)
    width, height = watermark_size(mark, image, watermark)
    room = image[0] - max(x or 0, 0), image[1] - max(y or 0, 0)
    assert width <= max(1, room[0])
    assert height <= max(1, room[1])
    unbounded = mark[0] <= room[0] and mark[1] <= room[1]
    touches = max(1, room[0]) - width <= 1 or max(1, room[1]) - height <= 1
    assert touches or unbounded, "it is reduced no more than it must be"


def test_bounds_enlarge_it_if_asked() -> None:
    watermark = Watermark(id="a", width=300, height=200, enlarge=True)
    assert watermark_size((40, 20), (1000, 800), watermark) == (300, 150)
    assert watermark_size((400, 800), (1000, 800), watermark) == (100, 200)
    assert watermark_size((40, 20), (1000, 800), Watermark(id="a", enlarge=True)) == (40, 20)


@pytest.mark.parametrize(
    ("gravity", "expected"),
    [
        ("top-left", (3, -4)),
        ("top-right", (87, -4)),
        ("bottom-right", (87, 44)),
        ("right", (87, 16)),
        ("bottom", (48, 44)),
        (None, (48, 16)),
    ],
)
def test_distances_of_each_side_go_inwards(gravity: str | None, expected: tuple[int, int]) -> None:
    watermark = Watermark(id="a", gravity=gravity, offset_x=3, offset_y=-4)
    assert watermark_position((10, 10), (100, 50), watermark) == expected


@pytest.mark.parametrize(("room", "expected"), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 2), (6, 4), (-2, 0)])
def test_the_center_of_one_more_pixel(room: int, expected: int) -> None:
    watermark = Watermark(id="a", past_center=True)
    assert watermark_position((10, 10), (10 + room, 10), watermark) == (expected, 0)


def test_tiles_begin_at_the_edge() -> None:
    watermark = Watermark(id="a", tiles_x="start", gravity="bottom-left", offset_y=5)
    assert watermark_tiles((30, 20), (100, 50), watermark) == (Tiles(0, 30, 4), Tiles(25, 20, 1))


@pytest.mark.parametrize(
    ("side", "room", "gap", "expected"),
    [
        (30, 100, 0, Tiles(-25, 30, 5)),  # 150 pixels hang over by 25 at both edges
        (30, 90, 0, Tiles(0, 30, 3)),
        (30, 100, 5, Tiles(-2, 35, 3, 2)),  # 105 pixels, of which 2 lie before each tile and 3 after it
        (30, 100, -5, Tiles(-12, 25, 5, -2)),
        (200, 100, 0, Tiles(-50, 200, 1)),
        (30, 100, -30, Tiles(0, 1, 101, -15)),  # no step is less than a pixel
        (30, 100, -99, Tiles(0, 1, 101, -49)),
    ],
)
def test_a_centered_tile_lies_in_the_middle(side: int, room: int, gap: int, expected: Tiles) -> None:
    watermark = Watermark(id="a", tiles_x="centered", offset_x=gap)
    assert watermark_tiles((side, 10), (room, 10), watermark)[0] == expected


@given(SIZES, SIZES, st.integers(0, 50))
def test_centered_tiles_cover_the_picture(mark: tuple[int, int], image: tuple[int, int], gap: int) -> None:
    watermark = Watermark(id="a", tiles_x="centered", tiles_y="centered", offset_x=gap, offset_y=gap)
    for tiles, side, room in zip(watermark_tiles(mark, image, watermark), mark, image, strict=True):
        assert tiles.step == side + gap
        assert tiles.number % 2 == 1
        before, after = tiles.start, room - (tiles.start + tiles.number * tiles.step)
        assert before <= 0 >= after
        assert abs(before - after) <= 1


@pytest.mark.parametrize(
    ("mark", "image", "expected"),
    [
        ((30, 20), (100, 50), (Tiles(0, 35, 3), Tiles(0, 30, 2))),
        ((30, 30), (50, 95), (Tiles(0, 40, 2), Tiles(0, 32, 3))),  # less than two fit across
        ((50, 10), (100, 45), (Tiles(0, 50, 2), Tiles(0, 11, 4))),  # two fit exactly
        ((10, 10), (100, 100), (Tiles(0, 10, 10), Tiles(0, 10, 10))),
        ((4, 4), (100, 50), (Tiles(0, 19, 6), Tiles(0, 9, 6))),  # more than 100 would fit
    ],
)
def test_tiles_are_spread_with_equal_distances(
    mark: tuple[int, int], image: tuple[int, int], expected: tuple[Tiles, Tiles]
) -> None:
    watermark = Watermark(id="a", tiles_x="spread", tiles_y="spread")
    assert watermark_tiles(mark, image, watermark) == expected


def test_many_tiles_are_spread_on_one_axis() -> None:
    across, down = watermark_tiles((4, 4), (1000, 50), Watermark(id="a", tiles_x="spread", x=0, y=7))
    assert (across.number, down) == (250, Tiles(7, 4, 1))
