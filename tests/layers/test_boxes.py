"""Results tell where their layers lie."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import imgsvc_core as imgsvc
from imgsvc_core.spec.geometry import EdgeOrCenter
from tests.process.pictures import pixels_of
from tests.support import encoded
from tests.support.photos import as_vips

BLACK = bytes(as_vips(np.zeros((90, 120, 3), np.uint8)).pngsave_buffer())
GRAVITIES = [None, *(value for edge in get_args(EdgeOrCenter) for value in get_args(edge) or (edge,))]


def made(layer: dict[str, Any]) -> tuple[Any, Any]:
    """The box of a layer, and the rows and columns that it draws on black."""
    result = imgsvc.process(BLACK, {"layers": [layer], "output": {"format": "png"}})
    drawn = np.asarray(pixels_of(result.data))[..., :3].any(axis=2)
    return result.layers[0], (np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0)))


@given(
    gravity=st.sampled_from(GRAVITIES),
    x=st.integers(-20, 60) | st.just("12%"),
    y=st.integers(-20, 60) | st.just("-5%"),
    size=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    turn=st.sampled_from([0, 90, 180]),
)
def test_the_box_of_a_shape_is_what_it_covers(
    gravity: str | None, x: int | str, y: int | str, size: tuple[int, int], turn: int
) -> None:
    shape = {"kind": "rectangle", "color": "ffffff"}
    place = {"gravity": gravity, "x": x, "y": y, "rotation": turn}
    box, (rows, columns) = made({"shape": shape, "width": size[0], "height": size[1], **place})
    for start, end, whole, found in (
        (box.left, box.right, 120, columns),
        (box.top, box.bottom, 90, rows),
    ):
        first, last = max(0, start), min(whole, end)
        if first >= last or not len(found):
            assert not len(found)
        else:
            assert (found[0], found[-1]) == (first, last - 1)


def test_copies_and_shadows_are_no_part_of_a_box() -> None:
    shape = {"shape": {"kind": "ellipse", "color": "ffffff"}, "width": 20, "height": 10, "x": 30, "y": 20}
    more = {"repeat": {"spacing": 5}, "shadow": {"x": 9, "blur": 6, "color": "ff0000"}}
    assert made(shape)[0] == made({**shape, **more})[0] == (30, 20, 20, 10)


def test_the_box_of_words_is_that_of_their_lines() -> None:
    words = {"text": {"text": "Words", "size": 20, "color": "ffffff"}, "gravity": "right", "padding": 4}
    box, (rows, columns) = made(words)
    assert (box.right, box.height) == (116, 24)
    assert abs(columns[0] - box.left) <= 1
    assert abs(columns[-1] + 1 - box.right) <= 1
    assert box.top <= rows[0] < rows[-1] < box.bottom


def test_boxes_stand_in_the_order_of_layers_and_are_those_of_the_first_frame() -> None:
    layers = [
        {"gradient": {"from": "000000", "to": "ffffff"}},
        {"text": {"text": "a", "size": 8}, "x": 3, "y": 2},
    ]
    result = imgsvc.process(encoded.gif_animated().data, {"layers": layers})
    assert result.layers[0] == (0, 0, *result.output.upright_size)
    assert result.layers[1][:2] == (3, 2)
    assert imgsvc.process(BLACK, {"resize": {"width": 9}}).layers == ()
    unfinished = imgsvc.process(BLACK, {"layers": layers[1:]})
    assert unfinished.layers[0][:2] == (3, 2)
