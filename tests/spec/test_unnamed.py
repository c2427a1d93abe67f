"""Operations with one required parameter take it without its name, and no operation takes others so."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import imgsvc_core as imgsvc
from imgsvc_core.spec import Operation
from imgsvc_core.spec.declare import params

OPERATIONS = [
    item
    for item in (getattr(imgsvc, name) for name in dir(imgsvc))
    if isinstance(item, type) and issubclass(item, Operation) and params(item)
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_the_only_required_parameter_needs_no_name(operation: type[Operation]) -> None:
    required = [item.attribute for item in params(operation).values() if item.required]
    unnamed = [item.attribute for item in params(operation).values() if not item.kw_only]
    assert unnamed == (required if len(required) == 1 else [])
    kinds = inspect.signature(operation).parameters.values()
    assert [item.name for item in kinds if item.kind is item.POSITIONAL_OR_KEYWORD] == unnamed


@pytest.mark.parametrize(
    ("unnamed", "named"),
    [
        (imgsvc.Sepia(60), imgsvc.Sepia(value=60)),
        (imgsvc.Rotate(90), imgsvc.Rotate(angle=90)),
        (imgsvc.Border(2, color="f80"), imgsvc.Border(size=2, color="f80")),
        (imgsvc.Isolate("f80", threshold=0.5), imgsvc.Isolate(color="f80", threshold=0.5)),
        (imgsvc.Watermark("logo"), imgsvc.Watermark(id="logo")),
    ],
)
def test_it_is_the_same_with_and_without_a_name(unnamed: Operation, named: Operation) -> None:
    assert unnamed == named


def test_it_is_checked_as_with_a_name() -> None:
    with pytest.raises(imgsvc.SpecError, match=r"Sepia 'value' parameter must be .* got 600"):
        imgsvc.Sepia(600)


@pytest.mark.parametrize(
    ("operation", "given", "message"),
    [
        ("Resize", (300,), "Resize takes its parameters by name, such as Resize(width=300), got 300."),
        (
            "Resize",
            (300, 200),
            "Resize takes its parameters by name, such as Resize(width=300, height=200), got 300, 200.",
        ),
        ("Crop", (100,), "Crop takes its parameters by name, such as Crop(width=100), got 100."),
        ("Blur", (20,), "Blur takes its parameters by name, such as Blur(value=20), got 20."),
        (
            "Output",
            ("webp",),
            "Output takes its parameters by name, such as Output(format='webp'), got \"webp\".",
        ),
        ("Flip", (True,), "Flip takes its parameters by name, such as Flip(horizontal=True), got true."),
        ("Resize", ("a" * 99,), f'Resize takes its parameters by name, got "{"a" * 56}....'),
        ("Picture", ("https://me:secret@a.b",), "Picture takes its parameters by name, got something else."),
        ("Sepia", (60, 5), "Sepia takes only 'value' without its name, and once, got 60, 5."),
    ],
)
def test_others_are_told_their_names(operation: str, given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        getattr(imgsvc, operation)(*given)
    assert str(caught.value) == message


def test_a_parameter_is_given_once() -> None:
    with pytest.raises(TypeError, match="Sepia takes only 'value' without its name, and once, got 60"):
        imgsvc.Sepia(60, value=5)  # type: ignore[misc]


def test_a_parameter_has_a_known_name() -> None:
    expected = r"Sepia\.__init__\(\) got an unexpected keyword argument 'amount'"
    with pytest.raises(TypeError, match=expected):
        imgsvc.Sepia(amount=5)  # type: ignore[call-arg]


def test_a_long_value_is_left_out_of_the_example() -> None:
    with pytest.raises(TypeError, match=r"such as Spec\(resize=\.\.\.\), got Resize"):
        imgsvc.Spec(imgsvc.Resize(width=300))  # type: ignore[call-arg, arg-type]
