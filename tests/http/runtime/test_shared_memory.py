"""The mark of changes: one for all processes of a node, and for commands."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from imgsvc_http.runtime.shared_memory import ChangeMark, note_change
from tests.support import forked_python
from tests.support.processes import leads_to, open_files

NOTE = (
    "import pathlib; from imgsvc_http.runtime.shared_memory import note_change; "
    "note_change(pathlib.Path({!r}))"
)


def test_a_change_by_another_program_is_seen_at_once(tmp_path: Path) -> None:
    mark = ChangeMark(tmp_path)
    seen = {mark.present}
    for _ in range(2):
        forked_python.run("-c", NOTE.format(str(tmp_path))).check_returncode()
        assert mark.present not in seen
        assert mark.present == mark.present
        seen.add(mark.present)


@pytest.mark.parametrize("in_folder", [False, True])
def test_a_change_by_a_fork_is_seen_by_its_parent_and_its_siblings(in_folder: bool, tmp_path: Path) -> None:
    mark = ChangeMark(tmp_path if in_folder else None)
    before = mark.present
    told, telling = os.pipe()
    for notes in (True, False):
        if (pid := os.fork()) == 0:
            if notes:
                mark.note_change()
            os.write(telling, mark.present)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    assert os.read(told, 16) == mark.present * 2
    assert mark.present != before
    os.close(told)
    os.close(telling)


def test_marks_in_memory_are_of_their_own(tmp_path: Path) -> None:
    marks = [ChangeMark(), ChangeMark(), ChangeMark(tmp_path)]
    looks = [mark.present for mark in marks]
    marks[0].note_change()
    assert [mark.present == look for mark, look in zip(marks, looks, strict=True)] == [False, True, True]


def _link_to_nothing(file: Path) -> None:
    file.symlink_to(file.parent / "nothing")


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: None,
        Path.touch,
        lambda file: file.write_bytes(b"x" * 5000),
        lambda file: file.touch(0o400),
        lambda file: os.mkfifo(file),
        _link_to_nothing,
    ],
    ids=["missing", "empty", "long", "read-only", "pipe", "link"],
)
def test_whatever_was_there_is_replaced_by_a_private_file(
    damage: Callable[[Path], object], tmp_path: Path
) -> None:
    file = tmp_path / "changes"
    damage(file)
    old = os.umask(0)
    try:
        mark = ChangeMark(tmp_path)
    finally:
        os.umask(old)
    assert (file.is_symlink(), file.stat().st_mode & 0o777, file.stat().st_size) == (False, 0o600, 8)
    assert os.listdir(tmp_path) == ["changes"]
    before = mark.present
    note_change(tmp_path)
    assert mark.present != before


def test_a_command_makes_no_file_for_a_service_that_never_ran(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        note_change(folder)
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_deleted_meanwhile_is_no_error(tmp_path: Path) -> None:
    mark = ChangeMark(tmp_path)
    (tmp_path / "changes").unlink()
    note_change(tmp_path)
    before = mark.present
    mark.note_change()
    assert mark.present != before


def test_marks_leave_no_open_files() -> None:
    def opened() -> int:
        return sum("memfd:changes" in leads_to(link) for link in open_files(os.getpid()))

    gc.collect()  # marks of other tests
    before = opened()
    marks = [ChangeMark() for _ in range(20)]
    assert opened() >= before + 20
    marks.clear()
    assert opened() == before
