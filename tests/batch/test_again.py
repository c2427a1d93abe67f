"""What a batch finds when it comes back: its own results, those of other work, and of other sources."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pyvips

import imgsvc_batch
from imgsvc_batch import Event, Manifest, Summary, inputs
from imgsvc_batch.inputs import Input
from imgsvc_core.errors import SpecError, TargetError
from tests.batch.pictures import SPEC, fill, results
from tests.support import encoded

pytestmark = pytest.mark.usefixtures("shared_fork_server")

WIDE = {"resize": {"width": 40}, "output": {"format": "png"}}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    fill(tmp_path / "in", 6)
    return tmp_path / "in"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out"


def go(source: Path | str, target: Path | str, spec: dict[str, Any] = SPEC, **options: Any) -> Summary:
    return imgsvc_batch.run(source, target, {"": spec}, workers=1, **options)


def counts(summary: Summary) -> tuple[int, int, int]:
    return summary.done, summary.failed, summary.skipped


def test_a_resumed_run_skips_what_it_has_forced(source: Path, target: Path) -> None:
    assert counts(go(source, target)) == (6, 0, 0)
    assert counts(go(source, target, force=True)) == (6, 0, 0)
    assert counts(go(source, target, force=True, resume=True)) == (0, 0, 6)


def test_one_work_after_the_other_and_back(source: Path, target: Path) -> None:
    for spec in (SPEC, WIDE, {**SPEC, "resize": {"width": 30}}, WIDE):
        assert counts(go(source, target, spec)) == (6, 0, 0)
    assert len(results(target)) == 12
    assert pyvips.Image.new_from_file(str(target / "photo00001.webp")).width == 30
    with Manifest(target / ".imgsvc-batch.sqlite") as manifest:
        totals = manifest.totals()
        assert totals.bytes_out == sum(path.stat().st_size for path in target.rglob("*.png"))


def test_a_target_that_was_moved_keeps_its_memory(source: Path, target: Path, tmp_path: Path) -> None:
    go(source, target)
    target.rename(tmp_path / "moved")
    assert counts(go(source, tmp_path / "moved")) == (0, 0, 6)


def test_another_bucket_gets_its_own_results(source: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.sqlite"
    for name, done in (("one", 6), ("two", 6), ("two", 0)):
        target = f"memory://{tmp_path.name}/{name}"
        assert go(source, target, manifest=manifest).done == done


def test_a_source_that_was_copied_is_the_same(source: Path, target: Path, tmp_path: Path) -> None:
    go(source, target)
    shutil.copytree(source, tmp_path / "copy", copy_function=shutil.copyfile)
    assert counts(go(tmp_path / "copy", target)) == (6, 0, 0)  # its results become those of the copy
    assert counts(go(tmp_path / "copy", target)) == (0, 0, 6)


def test_another_source_does_not_take_the_names_of_the_first(
    source: Path, target: Path, tmp_path: Path
) -> None:
    go(source, target)
    before = (target / "photo00001.webp").read_bytes()
    other = tmp_path / "other"
    other.mkdir()
    (other / "photo00001.png").write_bytes(encoded.png_gray().data)
    assert counts(go(other, target)) == (0, 1, 0)
    assert (target / "photo00001.webp").read_bytes() == before


def test_resuming_is_for_the_same_work(source: Path, target: Path, tmp_path: Path) -> None:
    go(source, target)
    fill(tmp_path / "other", 1)
    ways: list[dict[str, Any]] = [{"resume": True}, {"retry": True}]
    for options in ways:
        with pytest.raises(SpecError, match="have changed since the last run"):
            go(source, target, WIDE, **options)
        with pytest.raises(SpecError, match="have changed since the last run"):
            go(tmp_path / "other", target, **options)
    assert counts(go(f"{source}/", target, resume=True)) == (0, 0, 6)


def test_resuming_what_never_began_begins_it(source: Path, target: Path) -> None:
    assert counts(go(source, target, resume=True)) == (6, 0, 0)


def test_what_was_not_found_yet_is_found_when_it_goes_on(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "broken.jpg").write_bytes(b"broken")
    known = sorted(inputs.find(str(source)), key=lambda item: item.key)[:4]
    interrupted = threading.Event()

    def slowly(*_: object, **__: object) -> Iterator[Input]:
        yield from known
        interrupted.wait(30)

    told: list[Event] = []

    def interrupt(event: Event) -> None:
        told.append(event)
        if len(told) == len(known):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("imgsvc_batch.checks.find", slowly)
        assert go(source, target, on_event=interrupt).interrupted
        interrupted.set()
    assert counts(go(source, target, resume=True)) == (3, 0, 4)
    assert len(results(target)) == 6


def test_a_disk_that_loses_the_manifest_is_told(source: Path, target: Path) -> None:
    target.mkdir()
    (target / ".imgsvc-batch.sqlite").write_text("no database at all, but a text that is long enough to see")
    with pytest.raises(TargetError, match="cannot be opened"):
        go(source, target)


@pytest.mark.parametrize("at_once", [True, False])
def test_collisions_with_leave_to_replace_still_fail_alone(at_once: bool, source: Path, target: Path) -> None:
    """Whoever came first keeps the name, and the picture under it is theirs."""
    twin = source / "photo00001.jpg"
    if at_once:
        twin.write_bytes(encoded.jpeg_gray().data)
    go(source, target, overwrite=True)
    if not at_once:
        twin.write_bytes(encoded.jpeg_gray().data)
        assert go(source, target, overwrite=True).failed == 1
    with sqlite3.connect(target / ".imgsvc-batch.sqlite") as database:
        ((owner,),) = database.execute(
            "SELECT key FROM outputs JOIN inputs ON id = input WHERE path = 'photo00001.webp'"
        ).fetchall()
        errors = dict(database.execute("SELECT key, error FROM inputs WHERE key LIKE 'photo00001%'"))
    other = ({"photo00001.jpg", "photo00001.png"} - {owner}).pop()
    assert errors == {owner: "", other: "name_collision"}
    alone = target.parent / "alone"
    go(source / owner, alone)
    assert (target / "photo00001.webp").read_bytes() == (alone / "photo00001.webp").read_bytes()


@pytest.mark.parametrize("way", ["resume", "retry"])
def test_what_other_work_has_left_stays_with_it(way: str, source: Path, target: Path, tmp_path: Path) -> None:
    """Two batches of other sources and other specs into one target, neither of which came to its end."""
    fill(tmp_path / "first", 4)
    (tmp_path / "first").rename(source / "first")
    mine, other = f"{source}/photo*", f"{source}/f*/photo*"
    if way == "retry":
        good = {path: path.read_bytes() for path in source.rglob("photo*")}
        for path in good:
            path.write_bytes(b"broken")
        assert go(other, target, SPEC).done == go(mine, target, WIDE).done == 0
        for path, data in good.items():
            path.write_bytes(data)
    else:
        for pattern, spec in ((other, SPEC), (mine, WIDE)):
            interrupted_at_once(pattern, target, spec)
    options: dict[str, Any] = {way: True}
    of_mine = len(list(source.glob("photo*")))
    assert go(mine, target, WIDE, **options).done == of_mine
    assert not [name for name in results(target) if name.startswith("first/")]
    of_other = len(list(source.glob("f*/photo*")))
    assert counts(go(other, target, SPEC)) == (of_other, 0, 0)
    assert {path.suffix for path in (target / "first").iterdir()} == {".webp"}


def test_a_source_goes_on_after_another_one_had_its_turn(source: Path, target: Path, tmp_path: Path) -> None:
    fill(tmp_path / "other", 1)
    (tmp_path / "other" / "sub").rename(tmp_path / "other" / "elsewhere")
    (source / "broken.jpg").write_bytes(b"broken")
    assert counts(go(source, target)) == (6, 1, 0)
    assert counts(go(tmp_path / "other", target)) == (1, 0, 0)
    (source / "broken.jpg").write_bytes(encoded.jpeg().data)
    assert counts(go(source, target, retry=True)) == (1, 0, 6)
    assert counts(go(tmp_path / "other", target)) == (0, 0, 1)
    shutil.copy(source / "broken.jpg", source / "new.jpg")
    assert counts(go(source, target, resume=True)) == (1, 0, 7)


@pytest.mark.parametrize("way", ["resume", "retry"])
def test_what_cannot_go_on_is_named_as_it_was_asked_for(way: str, source: Path, target: Path) -> None:
    go(source, target)
    options: dict[str, Any] = {way: True}
    with pytest.raises(SpecError, match=f"run without {way} to process everything"):
        go(source, target, WIDE, **options)


def interrupted_at_once(source: str, target: Path, spec: dict[str, Any]) -> None:
    """Begin a batch that ends before anything is done."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("imgsvc_batch.runner.ProcessExecutor", interrupt)
        assert go(source, target, spec).interrupted


def states(target: Path) -> dict[str, str]:
    with sqlite3.connect(target / ".imgsvc-batch.sqlite") as database:
        return dict(database.execute("SELECT key, error FROM inputs WHERE fingerprint != ''"))


def test_failures_end_with_their_reason(source: Path, target: Path) -> None:
    """A deleted input and a folder that can be listed again are failures no more."""
    (source / "gone.jpg").write_bytes(b"broken")
    (source / "other.jpg").write_bytes(b"broken")
    assert go(source, target).failed == 2
    with sqlite3.connect(target / ".imgsvc-batch.sqlite") as database:
        at = source / "locked"
        database.execute(f"UPDATE inputs SET key = 'locked/', location = '{at}' WHERE key = 'other.jpg'")
    (source / "gone.jpg").unlink()
    (source / "other.jpg").unlink()
    assert counts(go(source, target)) == (0, 0, 6)
    assert set(states(target).values()) == {""}


def test_a_folder_that_could_not_be_listed_is_tried_again(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = os.scandir

    def forbidden(folder: str) -> Any:
        if str(folder).endswith("/sub"):
            raise PermissionError(13, "Permission denied")
        return scan(folder)

    with monkeypatch.context() as patch:
        patch.setattr("os.scandir", forbidden)
        assert counts(go(source, target)) == (4, 1, 0)
        assert counts(go(source, target, retry=True)) == (0, 1, 4)
    assert counts(go(source, target, retry=True)) == (2, 0, 4)
    assert set(states(target).values()) == {""}


def test_files_of_a_folder_that_cannot_be_listed_are_not_gone(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "sub" / "broken.jpg").write_bytes(b"broken")
    assert go(source, target).failed == 1
    scan = os.scandir
    monkeypatch.setattr(
        "os.scandir", lambda folder: scan("/none" if str(folder).endswith("/sub") else folder)
    )
    assert go(source, target).failed == 1
    assert states(target)["sub/broken.jpg"] == "unsupported_format"


def test_a_touched_input_without_its_result_is_done_again(source: Path, target: Path) -> None:
    go(source, target)
    os.utime(source / "photo00002.webp", (1, 1))
    (target / "photo00002.webp").unlink()
    assert counts(go(source, target)) == (1, 0, 5)
    assert (target / "photo00002.webp").exists()


@pytest.mark.parametrize("name", ["ETag", "etag", "md5Hash", "mtime", "LastModified", "created"])
def test_an_object_has_changed_if_what_its_store_says_has(name: str) -> None:
    first, second = (inputs.stamp_of_object({"size": 5, name: value}) for value in ("one", "two"))
    assert first
    assert first != second
    assert inputs.stamp_of_object({"size": 5}) == ""


def test_a_source_that_is_named_has_any_name(tmp_path: Path) -> None:
    named = str(tmp_path / "photo.data")
    assert inputs.belonging(named)("photo.data", named)
    assert not inputs.belonging(str(tmp_path))("photo.data", named)
