"""Batches of a machine that loses its power: results that were told are there, or made again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import imgsvc_batch
from imgsvc_core import TargetError
from tests.batch.pictures import SPEC, fill, results
from tests.support.failing_disk import failing_disk

COUNT = 12


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    fill(folder, COUNT)
    return folder


def go(source: Path, target: Path, **options: bool) -> tuple[int, int, int]:
    """Run a batch: what is done, failed and skipped."""
    summary = imgsvc_batch.run(source, target, {"": SPEC}, **options)  # type: ignore[arg-type]
    return summary.done, summary.failed, summary.skipped


def contents(target: Path) -> dict[str, bytes]:
    return {name: (target / name).read_bytes() for name in results(target)}


def test_after_a_batch_a_power_failure_takes_nothing(source: Path, tmp_path: Path) -> None:
    with failing_disk(tmp_path) as (disk, lose):
        assert go(source, disk / "out") == (COUNT, 0, 0)
        expected = contents(disk / "out")
        left = lose() / "out"
        assert contents(left) == expected
        assert go(source, left) == (0, 0, COUNT)


def test_a_target_that_is_gone_at_the_end_is_named(source: Path, tmp_path: Path) -> None:
    target, told = tmp_path / "out", list[imgsvc_batch.Event]()

    def remove_at_the_end(event: imgsvc_batch.Event) -> None:
        told.append(event)
        if len(told) == COUNT:
            shutil.rmtree(target)

    with pytest.raises(TargetError, match=r"out.*' cannot be written: No such file or directory\.$"):
        imgsvc_batch.run(source, target, {"": SPEC}, on_event=remove_at_the_end)


@pytest.mark.parametrize("has_manifest", [True, False])
@pytest.mark.parametrize("mode", [{}, {"resume": True}], ids=str)
def test_emptied_results_are_made_again(
    mode: dict[str, bool], has_manifest: bool, source: Path, tmp_path: Path
) -> None:
    """The disk may have the names of results without their content, and nothing of the manifest."""
    target = tmp_path / "out"
    assert go(source, target) == (COUNT, 0, 0)
    expected = contents(target)
    emptied = list(expected)[1::2]
    for name in emptied:
        (target / name).write_bytes(b"")
    if not has_manifest:
        (target / ".imgsvc-batch.sqlite").unlink()
    batch = imgsvc_batch.Batch(source=str(source), target=str(target), variants={"": SPEC})
    problems = [item.problem for item, _ in imgsvc_batch.preview(batch) if item.problem]
    assert len(problems) == (0 if has_manifest else COUNT - len(emptied))
    made = len(emptied) if has_manifest else COUNT
    assert go(source, target, **mode) == (made, 0, COUNT - made)
    assert contents(target) == expected
