"""What a worker does with a picture, without a worker."""

from __future__ import annotations

import errno
from pathlib import Path

from imgsvc_core.limits import Limits
from imgsvc_core.spec import Spec
from imgsvc_http.processing.tasks import Process
from tests.support import encoded


def test_a_result_is_written_to_its_target(tmp_path: Path) -> None:
    task = Process(name="a.png", spec=Spec(), limits=Limits(), target=str(tmp_path / "name"))
    outcome = task.run(encoded.png().data, 1)
    assert outcome.facts["written"] == 0
    assert outcome.facts["timing"]["store"] >= 0
    assert [file.name for file in tmp_path.iterdir()] == ["name.png"]
    assert (tmp_path / "name.png").read_bytes() == outcome.data


def test_a_result_that_cannot_be_written_is_told_by_the_number_of_the_error(tmp_path: Path) -> None:
    task = Process(name="a.png", spec=Spec(), limits=Limits(), target=str(tmp_path / "missing" / "name"))
    assert task.run(encoded.png().data, 1).facts["written"] == errno.ENOENT
    (tmp_path / "name.png").symlink_to("/dev/full")
    task = Process(name="a.png", spec=Spec(), limits=Limits(), target=str(tmp_path / "name"))
    assert task.run(encoded.png().data, 1).facts["written"] == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []
