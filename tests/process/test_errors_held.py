"""What stays alive with an error that is kept, and with a result."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
import pyvips

import imgsvc_core as imgsvc
from imgsvc_core.processing import process_variants
from tests.support import encoded

REQUEST: dict[str, Any] = {"resize": {"width": 50}}
FORMATS = ("jpg", "png", "webp", "gif", "tiff", "jp2")


@pytest.fixture(autouse=True)
def _no_collection() -> Iterator[None]:
    """Only what nobody refers to any more is gone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def pictures() -> set[int]:
    return {id(item) for item in gc.get_objects() if isinstance(item, pyvips.Image)}


def cut() -> bytes:
    return encoded.jpeg().data[:-600]


@pytest.mark.parametrize("format", FORMATS)
def test_errors_keep_no_pictures_alive(format: str) -> None:
    before = pictures()
    with pytest.raises(imgsvc.CorruptImage) as caught:
        imgsvc.process(cut(), {**REQUEST, "output": {"format": format}})
    assert caught.value.__cause__ is not None
    assert pictures() <= before


def test_errors_of_variants_keep_no_pictures_alive() -> None:
    before = pictures()
    with pytest.raises(imgsvc.CorruptImage):
        process_variants(cut(), {"small": REQUEST, "large": {"resize": {"width": 90}}})
    assert pictures() <= before


@pytest.mark.parametrize("format", FORMATS)
def test_pictures_end_with_the_call(format: str) -> None:
    before = pictures()
    imgsvc.process(encoded.jpeg().data, {**REQUEST, "output": {"format": format}})
    assert pictures() <= before


def test_errors_still_tell_where_they_come_from() -> None:
    with pytest.raises(imgsvc.CorruptImage) as caught:
        imgsvc.process(cut(), REQUEST)
    assert any("formats" in str(entry.path) for entry in caught.traceback)


def test_errors_of_the_caller_keep_their_variables() -> None:
    def fail() -> None:
        kept = "variable"
        raise ZeroDivisionError(kept)

    def fail_twice() -> None:
        try:
            fail()
        except ZeroDivisionError:
            imgsvc.process(cut(), REQUEST)

    with pytest.raises(imgsvc.CorruptImage) as caught:
        fail_twice()
    error: BaseException | None = caught.value
    while error is not None and not isinstance(error, ZeroDivisionError):
        error = error.__context__
    assert error is not None
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    assert frame.f_locals["kept"] == "variable"


class Interrupted(BaseException):
    """What is no error of the library."""


@pytest.mark.parametrize("error", [Interrupted, KeyboardInterrupt, ValueError])
def test_other_errors_keep_no_pictures_alive(error: type[BaseException]) -> None:
    def find(_: str) -> bytes:
        raise error

    before = pictures()
    with pytest.raises(error):
        imgsvc.process(encoded.jpeg().data, {**REQUEST, "watermark": {"id": "w"}}, watermarks=find)
    assert pictures() <= before


def test_what_others_wait_in_goes_on() -> None:
    """An error that comes out of a callback may have been raised elsewhere, where somebody goes on."""
    kept: list[imgsvc.ImgsvcError] = []

    def waiting() -> Iterator[str]:
        try:
            imgsvc.process(cut(), REQUEST)
        except imgsvc.ImgsvcError as error:
            kept.append(error)
            yield "waits"
            yield "went on"

    def find(_: str) -> bytes:
        raise kept[0]

    steps = waiting()
    assert next(steps) == "waits"
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(encoded.jpeg().data, {"watermark": {"id": "w"}}, watermarks=find)
    assert next(steps) == "went on"
