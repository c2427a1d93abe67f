"""Any stack folds into few blocks, and the blocks say what exact arithmetic says."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from imgsvc_core.plan.color import steps, white_balance
from imgsvc_core.plan.color.steps import ColorStep, CurveStep
from imgsvc_core.plan.folding import LutBlock, MatrixBlock, ToneBlock, fold
from imgsvc_core.spec import Adjust, Color, Duotone, Filter, Isolate, Monochrome, Sepia
from tests.adjust.exact import COLORS, GRAYS, exact, levels_off, run
from tests.support.colors import color_steps
from tests.support.photos import deep

ALL_CURVES = {
    "temperature": 30,
    "tint": 20,
    "exposure": 10,
    "shadow": 40,
    "highlight": -30,
    "brightness": 5,
    "contrast": 20,
    "gamma": -10,
}
CHROMATIC = {"vibrance": 40, "saturation": -20, "hue": 30}


def stack(*filters: Filter, **adjust: Any) -> list[ColorStep]:
    return color_steps(Adjust(**adjust), *filters)


def kinds(blocks: tuple[object, ...]) -> list[type]:
    return [type(block) for block in blocks]


def test_nothing_folds_to_nothing() -> None:
    assert fold([]) == ()


@pytest.mark.parametrize("gray", [False, True])
def test_neutral_steps_vanish(gray: bool) -> None:
    neutral = [
        *(step for name in ALL_CURVES if (step := steps.adjustment(name, 0))),
        *(step for name in CHROMATIC if (step := steps.adjustment(name, 0))),
        *stack(
            Sepia(value=0),
            Monochrome(value=0, color=Color.parse("f00")),
            Monochrome(value=50, color=Color.parse("00ff0000")),
            Isolate(color=Color.parse("f00"), threshold=1),
        ),
    ]
    assert len(neutral) == 15
    assert fold(neutral, gray=gray) == ()


def test_eight_curves_are_one_table() -> None:
    (block,) = fold(stack(**ALL_CURVES))
    assert isinstance(block, LutBlock)
    assert [step.name for step in block.steps] == list(ALL_CURVES)


def test_twelve_adjustments_are_one_table_and_one_matrix() -> None:
    lut, matrix = fold(stack(**ALL_CURVES, **CHROMATIC, invert=True))
    assert isinstance(lut, LutBlock)
    assert lut.steps[-1].name == "invert"
    assert isinstance(matrix, MatrixBlock)


def test_adjacent_matrices_are_one() -> None:
    (block,) = fold(
        stack(Monochrome(value=50, color=Color.parse("f80")), Sepia(value=30), saturation=20, hue=10)
    )
    assert isinstance(block, MatrixBlock)
    assert block.weight is None


def test_matrices_join_the_weighted_matrix_before_them() -> None:
    assert kinds(fold(stack(Sepia(value=30), vibrance=20, saturation=20))) == [MatrixBlock]
    assert kinds(fold(stack(Isolate(color=Color.parse("f80")), Sepia(value=30)))) == [MatrixBlock]


def test_no_color_is_left_to_weight_when_saturation_is_minus_100() -> None:
    (block,) = fold(stack(vibrance=50, saturation=-100))
    assert isinstance(block, MatrixBlock)
    assert block.weight is None
    assert block.scaled is None


def test_duotone_needs_one_row() -> None:
    luma, tone = fold(stack(Duotone(light=Color.parse("fff"), dark=Color.parse("003")), saturation=30))
    assert isinstance(luma, MatrixBlock)
    assert len(luma.fixed) == 1
    assert isinstance(tone, ToneBlock)
    assert tone.color


@pytest.mark.parametrize(
    "crossed",
    [
        Sepia(value=50),
        Monochrome(value=50, color=Color.parse("f80")),
        Duotone(light=Color.parse("ff8"), dark=Color.parse("008")),
        Isolate(color=Color.parse("f80")),
    ],
)
def test_invert_stays_behind_what_it_does_not_commute_with(crossed: Filter) -> None:
    brightness = CurveStep("brightness", (10,))
    blocks = fold([brightness, *stack(crossed), CurveStep("invert")])
    assert blocks[0] == LutBlock((brightness,))
    assert "invert" in blocks[-1].summary


def test_invert_joins_following_curves_rather_than_crossing() -> None:
    saturation, invert, gamma = *stack(saturation=30), CurveStep("invert"), CurveStep("gamma", (20,))
    assert kinds(fold([saturation, invert, gamma])) == [MatrixBlock, LutBlock]


def test_gray_pictures_need_one_table_of_one_band() -> None:
    (block,) = fold(stack(contrast=20, **CHROMATIC, invert=True), gray=True)
    assert isinstance(block, ToneBlock)
    assert not block.color
    assert block.summary == "tone LUT of LUT of contrast 20, invert"


@pytest.mark.parametrize("skipped", [stack(**CHROMATIC), stack(Isolate(color=Color.parse("f80")))])
def test_gray_pictures_skip_what_moves_colors_only(skipped: list[ColorStep]) -> None:
    assert fold(skipped, gray=True) == ()


@pytest.mark.parametrize(
    "bringing",
    [
        stack(Sepia(value=1)),
        stack(Monochrome(value=50, color=Color.parse("f80"))),
        stack(Duotone(light=Color.parse("ff8"), dark=Color.parse("000"))),
        stack(temperature=10),
        stack(tint=10),
    ],
)
def test_color_comes_into_gray_pictures(bringing: list[ColorStep]) -> None:
    (block,) = fold(bringing, gray=True)
    assert isinstance(block, ToneBlock)
    assert block.color


@pytest.mark.parametrize(
    "kept",
    [
        stack(Monochrome(value=50, color=Color.parse("888"))),
        stack(Duotone(light=Color.parse("ccc"), dark=Color.parse("111"))),
    ],
)
def test_gray_filters_leave_gray_pictures_with_one_band(kept: list[ColorStep]) -> None:
    (block,) = fold(kept, gray=True)
    assert isinstance(block, ToneBlock)
    assert not block.color


def test_blocks_say_what_they_hold() -> None:
    blocks = fold(
        stack(
            Duotone(light=Color.parse("fff"), dark=Color.parse("003")),
            exposure=20,
            contrast=10,
            saturation=-30,
            hue=12,
        )
    )
    assert [block.summary for block in blocks] == [
        "LUT of exposure 20, contrast 10",
        "matrix of saturation -30, hue 12",
        "tone LUT of duotone 000033 to FFFFFF",
    ]
    assert fold(stack(vibrance=20))[0].summary == "matrix of vibrance 20, weighted by chroma"
    weighted = fold(stack(vibrance=20, hue=12))[0].summary
    assert weighted == "matrix of vibrance 20, hue 12, weighted by chroma"


def test_folding_is_a_value() -> None:
    once, again = (fold(stack(**ALL_CURVES, **CHROMATIC, invert=True)) for _ in range(2))
    assert once == again
    assert hash(once) == hash(again)


def test_clamping_happens_where_a_block_ends() -> None:
    recovered = run(COLORS, exposure=50, brightness=-40)
    assert len(np.unique(recovered[COLORS > 200])) > 3
    clamped = run(COLORS, exposure=100, saturation=-50)
    assert (clamped[(COLORS > 200).all(axis=2)] == 255).all()


_signed = st.integers(-100, 100)
_percent = st.integers(0, 100)
_adjust = st.fixed_dictionaries(
    {},
    optional={
        "temperature": _percent,
        "tint": _percent,
        "exposure": _signed,
        "shadow": _percent,
        "highlight": st.integers(-100, 0),
        "brightness": _signed,
        "contrast": _signed,
        "gamma": _signed,
        "vibrance": _signed,
        "saturation": _signed,
        "hue": st.integers(-180, 180),
        "invert": st.booleans(),
    },
)
_channel = st.integers(0, 255)
_color = st.builds(Color, _channel, _channel, _channel, _channel)
_opaque = st.builds(Color, _channel, _channel, _channel)
_vivid = _opaque.filter(lambda c: max(c.rgb) > 0 and (max(c.rgb) - min(c.rgb)) / max(c.rgb) > 0.15)
_isolate = st.builds(Isolate, color=_vivid, threshold=st.floats(0, 1))
_monochrome = st.builds(Monochrome, value=st.floats(0, 100), color=_color)
_sepia = st.builds(Sepia, value=st.floats(0, 100))
_duotone = st.builds(Duotone, light=_opaque, dark=_opaque)
_object = st.tuples(*(st.none() | item for item in (_isolate, _monochrome, _sepia, _duotone)))
_array = st.lists(_isolate | _monochrome | _sepia | _duotone, max_size=5).map(tuple)
_filters = _object | _array
"""As an object, at most one of each in the fixed order; or as an array, in any order and with repeats."""


def gains(adjust: dict[str, Any]) -> dict[str, Any]:
    """The gains themselves are checked in the tests of temperature and tint."""
    return {
        "temperature": np.array(white_balance.temperature_gains(adjust.get("temperature", 0))),
        "tint": np.array(white_balance.tint_gains(adjust.get("tint", 0))),
    }


@given(_adjust, _filters)
@example({**ALL_CURVES, **CHROMATIC, "invert": True}, (None, None, None, None))
def test_8_bit_stacks_are_within_one_level_of_exact_arithmetic(
    adjust: dict[str, Any], filters: tuple[Filter | None, ...]
) -> None:
    asked = [operation for operation in filters if operation]
    expected = exact(COLORS, gains(adjust), *asked, **adjust)
    assert levels_off(run(COLORS, *asked, **adjust), expected) <= 0.7


@given(_adjust, _filters)
@example({**ALL_CURVES, **CHROMATIC, "invert": True}, (None, None, None, None))
def test_16_bit_stacks_are_close_to_exact_arithmetic(
    adjust: dict[str, Any], filters: tuple[Filter | None, ...]
) -> None:
    asked = [operation for operation in filters if operation]
    pixels = deep(COLORS) ^ np.arange(COLORS.size, dtype=np.uint16).reshape(COLORS.shape) % 256
    expected = exact(pixels, gains(adjust), *asked, **adjust)
    assert levels_off(run(pixels, *asked, **adjust), expected) <= 64


@given(_adjust, _filters)
def test_gray_pictures_become_what_the_same_grays_become_in_rgb(
    adjust: dict[str, Any], filters: tuple[Filter | None, ...]
) -> None:
    asked = [operation for operation in filters if operation]
    result = run(GRAYS, *asked, **adjust)
    in_rgb = exact(np.dstack([GRAYS] * 3), gains(adjust), *asked, **adjust)
    if result.ndim == 2:
        assert np.allclose(in_rgb, in_rgb[:, :, :1], atol=1e-3)
        in_rgb = in_rgb[:, :, 0]
    assert levels_off(result, in_rgb) <= 0.7


def test_folding_needs_no_numpy() -> None:
    """Planning is part of what a light import loads."""
    code = (
        "import sys, imgsvc_core.plan.folding, imgsvc_core.pixels.pointwise; sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
