"""One watchdog for all pictures: it stops what is due, lets the rest run, and survives a fork."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import attrs
import pytest
import pyvips

import imgsvc_core as imgsvc
from imgsvc_core.deadline import deadline
from imgsvc_core.errors import SpecError, TimeLimitExceeded
from imgsvc_core.processing import process_variants


def endless(side: int = 20_000) -> pyvips.Image:
    """A picture that takes minutes to compute."""
    return pyvips.Image.gaussnoise(side, side).gaussblur(30)


def test_the_earliest_deadline_comes_first() -> None:
    with deadline(60):
        started = time.monotonic()
        with pytest.raises(TimeLimitExceeded, match=r"0\.3 seconds"), deadline(0.3) as watch:
            watch.over(endless()).avg()
        assert time.monotonic() - started < 10


def test_a_watch_that_has_ended_stops_nothing() -> None:
    with deadline(0.2) as watch:
        image = watch.over(pyvips.Image.black(10, 10))
        assert image.avg() == 0
    time.sleep(0.5)
    assert image.avg() == 0
    assert not watch.expired


@pytest.mark.parametrize("request_", [{}, {"resize": {"width": 19_000}}, {"rotate": {"angle": 90}}])
def test_a_picture_that_is_computed_on_and_on_is_stopped_once_for_all(request_: dict[str, Any]) -> None:
    limits = attrs.evolve(imgsvc.Limits.none(), seconds=0.3)
    started = time.monotonic()
    with pytest.raises(TimeLimitExceeded):
        imgsvc.process(endless(), {**request_, "output": {"format": "png"}}, limits=limits)
    assert time.monotonic() - started < 10


def test_a_watermark_that_is_computed_on_and_on_is_stopped() -> None:
    limits = attrs.evolve(imgsvc.Limits.none(), seconds=0.3)
    started = time.monotonic()
    with pytest.raises(TimeLimitExceeded):
        imgsvc.process(
            pyvips.Image.black(50, 50),
            {"watermark": {"id": "w"}},
            watermarks={"w": endless(9_000)},
            limits=limits,
        )
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("kept", [True, False])
def test_what_a_codec_finishes_too_late_is_no_result(tmp_path: Path, kept: bool) -> None:
    picture = pyvips.Image.gaussnoise(1500, 1500, mean=128, sigma=60).cast("uchar").copy_memory()
    target = tmp_path / "late.gif" if kept else None
    with pytest.raises(TimeLimitExceeded):
        imgsvc.process(picture, {"output": {"format": "gif"}}, target, limits=imgsvc.Limits(seconds=0.05))
    assert not list(tmp_path.iterdir())


def test_other_errors_after_the_time_is_up_are_told_as_what_they_are() -> None:
    def find(id_: str) -> None:
        time.sleep(0.5)
        raise KeyError(id_)

    limits = imgsvc.Limits(seconds=0.1)
    with pytest.raises(SpecError, match="known watermark"):
        imgsvc.process(pyvips.Image.black(50, 50), {"watermark": {"id": "w"}}, watermarks=find, limits=limits)


def test_the_picture_of_the_caller_is_not_marked() -> None:
    picture = pyvips.Image.black(10, 10)
    imgsvc.process(picture, threads=1)
    assert "concurrency" not in picture.get_fields()


@pytest.mark.parametrize("threads", [0, -1, 1025, True, 1.5, "1"])
def test_threads_that_are_none_are_refused(threads: Any) -> None:
    picture = pyvips.Image.black(10, 10)
    with pytest.raises(SpecError, match=r"Threads must be an integer from 1 to 1024, or null, got "):
        imgsvc.process(picture, threads=threads)
    with pytest.raises(SpecError, match=r"Threads must be"):
        process_variants(picture, {"a": {}}, threads=threads)


def test_watches_that_have_ended_wake_nobody_when_they_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[float] = []
    waiting = threading.Condition.wait

    def wait(condition: threading.Condition, timeout: float | None = None) -> bool:
        if threading.current_thread().name == "imgsvc-watchdog":
            woken.append(time.monotonic())
        return waiting(condition, timeout)

    monkeypatch.setattr(threading.Condition, "wait", wait)
    for _ in range(50):
        with deadline(0.5):
            time.sleep(0.01)
    with deadline(60):
        time.sleep(1)
    assert len(woken) < 10


def test_many_pictures_share_one_thread() -> None:
    for _ in range(20):
        imgsvc.process(pyvips.Image.black(10, 10))
    assert [thread.name for thread in threading.enumerate()].count("imgsvc-watchdog") <= 1


def test_a_forked_child_has_a_watchdog_of_its_own() -> None:
    with deadline(60):
        child = os.fork()
        if child == 0:
            with deadline(0.2) as watch:
                time.sleep(1)
            os._exit(0 if watch.expired else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
