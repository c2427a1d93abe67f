"""Several sources that share a target: each keeps what is its own.

The sources are in memory, so that no processes have to start.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import fsspec
import pytest
import pyvips

import imgsvc_batch
from imgsvc_batch import Batch, Event, Manifest, Summary
from imgsvc_batch.previewing import preview
from tests.batch.killing import kill

SPEC = {"output": {"format": "png"}}
SMALL = {"resize": {"width": 4}, "output": {"format": "png"}}
RED, BLUE, GREEN = (255, 0, 0), (0, 0, 255), (0, 255, 0)


def painted(color: tuple[int, int, int]) -> bytes:
    picture = (pyvips.Image.black(8, 8, bands=3) + list(color)).cast("uchar").copy(interpretation="srgb")
    return bytes(picture.pngsave_buffer())


def paint(source: str, color: tuple[int, int, int], key: str = "a.png") -> None:
    fsspec.filesystem("memory").pipe_file(f"{source}/{key}", painted(color))


def identity(path: Path) -> tuple[int, ...]:
    """What changes when a file is written again, and not when it is read."""
    file = path.stat()
    return file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns


def color_of(data: bytes) -> tuple[int, ...]:
    return tuple(int(value) for value in pyvips.Image.new_from_buffer(data, "").getpoint(1, 1))


@pytest.fixture
def first(tmp_path: Path) -> str:
    source = f"memory://{tmp_path.name}/first"
    paint(source, RED)
    return source


@pytest.fixture
def second(tmp_path: Path) -> str:
    source = f"memory://{tmp_path.name}/second"
    paint(source, BLUE)
    return source


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out"


def go(source: str, target: Path | str, spec: dict[str, Any] = SPEC, **options: Any) -> Summary:
    return imgsvc_batch.run(source, target, {"": spec}, workers=1, **options)


def counts(summary: Summary) -> tuple[int, int, int]:
    return summary.done, summary.failed, summary.skipped


def test_a_collision_costs_the_first_source_nothing(first: str, second: str, target: Path) -> None:
    assert counts(go(first, target)) == (1, 0, 0)
    told: list[Event] = []
    assert counts(go(second, target, on_event=told.append)) == (0, 1, 0)
    assert told[0].error == "name_collision"
    assert counts(go(first, target)) == (0, 0, 1)
    assert counts(go(second, target)) == (0, 1, 0)
    paint(first, GREEN)
    assert counts(go(first, target)) == (1, 0, 0)
    assert color_of((target / "a.png").read_bytes()) == GREEN
    with Manifest(target / ".imgsvc-batch.sqlite") as manifest:
        totals = manifest.totals()
    assert (totals.inputs, totals.done, totals.failed) == (2, 1, 1)


def test_a_folder_and_one_below_it_share_a_target(first: str, target: Path) -> None:
    paint(f"{first}/below", BLUE, "b.png")
    for source, unchanged in ((first, 2), (f"{first}/below", 1)):
        assert go(source, target).failed == 0
        assert counts(go(source, target)) == (0, 0, unchanged)
    assert counts(go(first, target)) == (0, 0, 2)
    assert sorted(path.relative_to(target).as_posix() for path in target.rglob("[ab].png")) == [
        "a.png", "b.png", "below/b.png",
    ]  # fmt: skip


def test_results_of_another_source_are_replaced_where_that_is_allowed(
    first: str, second: str, target: Path
) -> None:
    go(first, target)
    assert counts(go(second, target, overwrite=True)) == (1, 0, 0)
    assert color_of((target / "a.png").read_bytes()) == BLUE
    assert counts(go(second, target)) == (0, 0, 1)
    assert counts(go(first, target)) == (0, 1, 0)  # its result is gone, and told to be
    assert color_of((target / "a.png").read_bytes()) == BLUE
    assert counts(go(first, target, overwrite=True)) == (1, 0, 0)


def test_leave_to_replace_lets_no_input_take_the_name_of_another(first: str, target: Path) -> None:
    """Whoever came first keeps it, on every run; none of them is done again."""
    paint(first, BLUE, "a.gif")
    run = functools.partial(go, first, target, overwrite=True)
    assert run().failed == 1
    written = identity(target / "a.png")
    for _ in range(2):
        planned = Batch(source=first, target=str(target), variants={"": SPEC}, overwrite=True)
        ((foretold, problem),) = [(item.key, item.problem) for item, wanted in preview(planned) if wanted]
        told: list[Event] = []
        assert counts(run(on_event=told.append)) == (0, 1, 1)
        ((key, message),) = [(event.key, event.message) for event in told]
        assert (foretold, problem) == (key, message)
        assert "the name of the result of" in message
    assert identity(target / "a.png") == written


def test_a_source_that_was_moved_goes_on(first: str, target: Path) -> None:
    go(first, target)
    moved = first.replace("first", "moved")
    fsspec.filesystem("memory").mv(first, moved, recursive=True)
    assert counts(go(moved, target)) == (1, 0, 0)
    with Manifest(target / ".imgsvc-batch.sqlite") as manifest:
        assert manifest.totals().inputs == 1
    paint(moved, GREEN)
    assert counts(go(moved, target)) == (1, 0, 0)
    assert color_of((target / "a.png").read_bytes()) == GREEN


def test_what_may_come_out_the_same_is_not_foretold_to_fail(first: str, second: str, target: Path) -> None:
    """Only a picture of the same size, on which the same is done, can be what was there before the move."""
    go(first, target)
    moved, larger = f"{first}-moved", painted(BLUE) + b" "
    paint(moved, RED)
    fsspec.filesystem("memory").pipe_file(f"{second}/a.png", larger)
    for source, spec, fails in ((moved, SMALL, True), (second, SPEC, True), (moved, SPEC, False)):
        planned = Batch(source=source, target=str(target), variants={"": spec})
        ((item, wanted),) = preview(planned)
        assert wanted
        assert ("exists already" in item.problem) == fails
        assert go(source, target, spec).failed == fails


def test_what_a_killed_batch_replaced_is_its_sources(first: str, second: str, target: Path) -> None:
    """Be it that it was replaced with leave, or twice."""
    target.mkdir()
    (target / "a.png").write_bytes(painted(GREEN))
    for _ in range(2):
        kill(first, target, SPEC, overwrite=True)
        assert color_of((target / "a.png").read_bytes()) == RED
    assert counts(go(second, target)) == (0, 1, 0)
    assert counts(go(first, target, SMALL)) == (1, 0, 0)
    paint(first, BLUE)
    kill(first, target, SMALL)
    assert counts(go(first, target)) == (1, 0, 0)


def test_what_a_killed_batch_wrote_is_its_sources(first: str, second: str, target: Path) -> None:
    kill(first, target, SPEC)
    assert counts(go(second, target)) == (0, 1, 0)
    assert color_of((target / "a.png").read_bytes()) == RED
    assert counts(go(first, target, SMALL)) == (1, 0, 0)  # other work, whose result replaces it
    assert pyvips.Image.new_from_file(str(target / "a.png")).width == 4


def test_what_a_killed_batch_did_not_put_in_place_is_made_again(first: str, target: Path) -> None:
    for color in (RED, GREEN):  # a new result, and one that was there
        paint(first, color)
        kill(first, target, SPEC, placed=False)
        assert list(target.glob(".imgsvc-batch-*/*"))
        assert counts(go(first, target, resume=True)) == (1, 0, 0)
        assert color_of((target / "a.png").read_bytes()) == color
        assert not list(target.glob(".imgsvc-batch-*"))
