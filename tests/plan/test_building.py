"""The order of a plan is that of the contract, and it shows what will be done to the picture at hand."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import imgsvc_core
from imgsvc_core import PHASES, ImgsvcError, parse
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.pixels.render import function_of_pixels
from imgsvc_core.pixels.spatial.blur import BLURS
from imgsvc_core.plan import Seen, compile_plan, filter_works, pipeline, steps, works
from imgsvc_core.plan.color.steps import filtering
from imgsvc_core.plan.faces import Face
from imgsvc_core.plan.filter_works import WORK_OF_FILTERS
from imgsvc_core.plan.pipeline import FUNCTIONS, PIPELINE, Apply, build_steps
from imgsvc_core.plan.steps import CropBox, Step
from imgsvc_core.spec import FILTERS, OPERATIONS, Filter, Spec
from imgsvc_core.spec.internal import INTERNAL_FILTERS
from imgsvc_core.spec.thumbor_filters import Grayscale, Inscription, QuarterTurn, Rescale
from tests.spec.strategies import operations, specs

PHOTO = ImageInfo(format="jpg", width=640, height=480, colorspace="srgb", depth=8, bytes=90_000)
GRAY = attrs.evolve(PHOTO, colorspace="gray")
CONTRACT = (
    "orient", "redact", "trim", "flip", "rotate", "crop", "resize", "scale", "auto", "adjust", "filter",
    "backdrop", "mask", "canvas", "padding", "background", "border", "watermark", "layers", "opacity",
    "output",
)  # fmt: skip

EVERYTHING: dict[str, Any] = {
    "output": {"format": "jpg"},
    "layers": [{"shape": {"kind": "ellipse", "color": "F00"}}, {"picture": {"id": "a"}}],
    "watermark": {"id": "a"},
    "border": {"size": 3},
    "background": {"kind": "average"},
    "padding": {"size": 5},
    "canvas": {"ratio": "2:1"},
    "mask": {"shape": "ellipse"},
    "stylize": {"vignette": {"value": 50, "radius": 20}, "blur": {"mode": "zoom", "value": 5}},
    "adjust": {"opacity": 0.5, "sharpen": 20},
    "auto": {"enhance": True},
    "scale": {"size": 0.5},
    "resize": {"width": 300, "height": 300, "mode": "fit"},
    "crop": {"width": 600, "height": 400},
    "rotate": {"angle": 10},
    "flip": {"horizontal": True},
    "trim": {"threshold": 10},
    "redact": [{"x": 10, "y": 10, "width": 50, "height": 50}],
}

WORKS = {**works.WORKS, **filter_works.FILTER_WORKS}

ONE_OF_EACH: dict[str, Any] = {  # in the order of the contract
    "isolate": {"color": "C03010"},
    "monochrome": {"value": 70, "color": "3060FF"},
    "sepia": {"value": 60},
    "duotone": {"light": "FFE8A0", "dark": "102050"},
    "blur": {"mode": "gaussian", "value": 30},
    "pixellate": {"value": 40},
    "vignette": {"value": 90, "radius": 20},
    "halftone": {"value": 60},
}


def phases(request: dict[str, Any], info: ImageInfo = PHOTO) -> list[str]:
    return [line["phase"] for line in compile_plan(parse(request), info).lines()]


def texts(request: dict[str, Any], info: ImageInfo = PHOTO) -> list[str]:
    return [line["text"] for line in compile_plan(parse(request), info).lines()[1:-1]]


def test_the_phases_are_those_of_the_contract() -> None:
    assert PHASES == CONTRACT
    assert tuple(OPERATIONS) == tuple(name for name in PHASES if name in OPERATIONS)
    assert [item.key for item in FILTERS if item.key in ONE_OF_EACH] == list(ONE_OF_EACH)


def test_everything_at_once_is_planned_in_the_order_of_the_phases() -> None:
    found = list(dict.fromkeys(phases(EVERYTHING)))
    expected = [phase for phase in PHASES if phase != "orient"]
    assert found == ["load", *expected]
    assert phases({}, attrs.evolve(PHOTO, orientation=6)) == ["load", "orient", "output"]


@given(specs())
def test_every_request_has_the_order_of_the_phases(spec: Spec) -> None:
    try:
        built = build_steps(spec.simplified(), PHOTO).planned
    except ImgsvcError:
        return
    places = [PHASES.index(planned.phase) for planned in built]
    assert places == sorted(places)
    assert all(planned.step.text for planned in built)
    assert not any(planned.step.idle for planned in built)
    assert [planned.before for planned in built[1:]] == [planned.after for planned in built[:-1]]


def test_the_order_comes_from_the_pipeline_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    backwards = PIPELINE[:7] + PIPELINE[7:-1][::-1] + PIPELINE[-1:]
    monkeypatch.setattr(pipeline, "PIPELINE", backwards)
    found = [phase for phase in dict.fromkeys(phases(EVERYTHING)) if phase in PHASES[7:-1]]
    expected = [phase for phase in PHASES[7:-1][::-1] if phase != "backdrop"]
    assert [phase for phase in found if phase != "backdrop"] == expected


def test_gray_pictures_get_no_step_that_only_concerns_colors() -> None:
    assert texts({"adjust": {"saturation": 50, "vibrance": 20}}, GRAY) == []
    assert texts({"adjust": {"saturation": 50, "contrast": 10}}, GRAY) == ["tone LUT of LUT of contrast 10"]
    assert texts({"adjust": {"saturation": 50}}) == ["matrix of saturation 50"]


def test_color_that_comes_into_a_gray_picture_is_planned_for() -> None:
    colored = [
        {"sepia": {"value": 50}},
        {"blur": {"mode": "zoom", "value": 5}},
        {"isolate": {"color": "F00"}},
    ]
    assert (
        texts({"filter": colored}, GRAY)[-1]
        == "matrix of isolate FF0000 0.2, weighted by nearness to the color"
    )
    assert len(texts({"filter": colored[1:]}, GRAY)) == 1
    padded = {
        "resize": {"width": 700, "height": 700, "mode": "fill", "background": "F00"},
        "adjust": {"hue": 5},
    }
    assert texts(padded, GRAY)[-1] == "matrix of hue 5"


@pytest.mark.parametrize(
    "request_",
    [
        {"filter": {"monochrome": {"value": 50, "color": "00FF0000"}}},
        {"filter": [{"monochrome": {"value": 50, "color": "00FF0000"}}, {"sepia": {"value": 0}}]},
    ],
)
def test_what_does_nothing_is_no_stage(request_: dict[str, Any]) -> None:
    assert texts(request_) == []
    assert texts(request_, GRAY) == []


@pytest.mark.parametrize(
    ("lefts", "frame", "kept"),
    [
        ((20, 300), (400, 200), (0, 400)),  # both fit: the middle of both
        ((20, 540), (200, 200), (440, 200)),  # too far apart: the largest, which is the right one
        ((20, 280, 540), (200, 200), (224, 200)),  # too far apart, but the one in the middle is shown
        ((20, 540), (30, 30), (568, 30)),  # the frame is smaller than any face
    ],
)
def test_gravity_to_faces_always_shows_one(
    lefts: tuple[int, ...], frame: tuple[int, int], kept: tuple[int, int]
) -> None:
    faces = [Face(left, 100, 60 + left // 20, 80, 1.0) for left in lefts]
    request = {"crop": {"width": frame[0], "height": frame[1], "gravity": "faces"}}
    [planned] = build_steps(parse(request), PHOTO, Seen(faces=tuple(faces))).planned
    assert isinstance(planned.step, CropBox)
    assert (planned.step.box.left, planned.step.box.width) == kept


def test_a_photograph_on_its_side_is_decoded_as_small_as_an_upright_one() -> None:
    upright, lying = (
        ImageInfo(format="jpg", width=4000, height=3000, colorspace="srgb", bytes=9, orientation=orientation)
        for orientation in (1, 6)
    )
    scales = [
        compile_plan(parse({"rotate": {"angle": 5}, "resize": {"width": width}}), info).load.scale
        for width, info in ((200, upright), (150, lying))
    ]
    assert scales[0] == scales[1] < 1


def test_after_a_smart_crop_gravity_does_not_depend_on_faces() -> None:
    """Where they are is known only when the pixels are there, and the plan has been made by then."""
    spec = parse(
        {
            "crop": {"mode": "smart", "width": 300, "height": 300},
            "resize": {"width": 50, "height": 100, "mode": "fit", "gravity": "face"},
        }
    )
    faces = [Face(200, 150, 60, 60, 1.0)]
    planned, without = compile_plan(spec, PHOTO, seen=Seen(faces=tuple(faces))), compile_plan(spec, PHOTO)
    assert planned.steps == without.steps
    assert planned.faces_in_result([(130, 100)]) == (Face(0, 17, 18, 20, 1.0),)


@given(specs(), st.lists(st.builds(
    Face, st.integers(0, 600), st.integers(0, 440), st.integers(1, 40), st.integers(1, 40), st.floats(0, 9)
), max_size=3))  # fmt: skip
def test_faces_lie_in_the_frame(spec: Spec, faces: list[Face]) -> None:
    try:
        plan = compile_plan(spec, PHOTO, seen=Seen(faces=tuple(faces)))
    except ImgsvcError:
        return
    for face in plan.faces_in_result([(3, 5), (7, 0)]) or ():
        assert face.left >= 0
        assert face.top >= 0
        assert face.left + face.width <= plan.size.width
        assert face.top + face.height <= plan.size.height


KINDS = {
    kind
    for kind in vars(steps).values()
    if isinstance(kind, type) and issubclass(kind, Step) and kind is not Step
}


@pytest.mark.parametrize("name", sorted({*FUNCTIONS.values(), *(work.pixels for work in WORKS.values())}))
def test_each_step_and_each_work_has_its_function_of_pixels(name: str) -> None:
    assert callable(function_of_pixels(name))


def test_the_pipeline_lists_all_kinds_of_steps() -> None:
    assert set(FUNCTIONS) == KINDS
    for stage in PIPELINE:
        assert stage.made_by.items() <= FUNCTIONS.items()


@given(specs())
def test_each_stage_leads_to_the_steps_that_it_lists(spec: Spec) -> None:
    try:
        built = build_steps(spec.simplified(), attrs.evolve(PHOTO, orientation=6)).planned
    except ImgsvcError:
        return
    listed = {stage.name: {*stage.made_by, *WORKS} for stage in PIPELINE}
    for planned in built:
        step = planned.step
        assert type(step.asked if isinstance(step, Apply) else step) in listed[planned.phase]


@given(st.sampled_from(FILTERS).flatmap(operations))
def test_each_filter_has_its_function_of_pixels_or_its_formula_in_color(item: Filter) -> None:
    assert (filtering(item) is None) == (type(item) in WORK_OF_FILTERS)


def test_each_internal_filter_has_its_function_of_pixels() -> None:
    elsewhere = {Grayscale, Inscription, QuarterTurn, Rescale}  # a formula, a layer, and moves
    assert set(INTERNAL_FILTERS) - set(WORK_OF_FILTERS) == elsewhere


def test_each_mode_of_blur_has_its_function() -> None:
    assert list(BLURS) == imgsvc_core.params(imgsvc_core.Blur)["mode"].schema()["enum"]


def test_requests_and_steps_share_no_names() -> None:
    asked = {operation.__name__ for operation in (*OPERATIONS.values(), *FILTERS)}
    assert asked.isdisjoint(kind.__name__ for kind in KINDS)


@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_exact_scaling_is_exact_for_turned_pictures(orientation: int) -> None:
    info = ImageInfo(
        format="jpg", width=4000, height=3000, colorspace="srgb", bytes=10**6, orientation=orientation
    )
    plan = imgsvc_core.explain({"resize": {"width": 100, "scaling": "exact"}}, info)
    assert plan.load.scale == 1
    assert any(isinstance(one.step, steps.Resample) and one.step.exact for one in plan.steps)
