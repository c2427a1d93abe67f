"""The file of a manifest: of other versions, in use, or where it cannot be written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from imgsvc_batch import Event, Manifest
from imgsvc_batch.events import Output
from imgsvc_batch.inputs import Input
from imgsvc_batch.places import parts_of, several
from imgsvc_core.errors import TargetError
from tests.support import requires


@pytest.mark.parametrize("reading", [True, False])
def test_one_of_another_version_is_refused(reading: bool, tmp_path: Path) -> None:
    path = tmp_path / "manifest.sqlite"
    Manifest(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(TargetError, match="is of another version of imgsvc"):
        Manifest(path, reading=reading)


def test_one_batch_writes_and_others_read(tmp_path: Path) -> None:
    path = tmp_path / "manifest.sqlite"
    with Manifest(path):
        with pytest.raises(TargetError, match="a batch that is running uses it"):
            Manifest(path)
        with Manifest(path, reading=True) as other:
            assert other.totals().inputs == 0
    Manifest(path).close()


def test_a_folder_that_cannot_be_written_is_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "out" / "manifest.sqlite"
    path.parent.mkdir()
    path.parent.chmod(0o555)
    command = [sys.executable, "-c", _OPENING, str(path)]
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            requires.missing("root needs setpriv to be bound by the modes of files")
        rights = "-dac_override,-dac_read_search"
        command = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    path.parent.chmod(0o755)
    assert done.stdout == f"Manifest '{path}' cannot be opened: Permission denied.\n", done.stderr


_OPENING = """
import sys
from pathlib import Path
from imgsvc_batch import Manifest
from imgsvc_core.errors import TargetError
try:
    Manifest(Path(sys.argv[1]))
except TargetError as error:
    print(error.message)
"""


def test_the_inputs_that_saved_the_most_come_first(tmp_path: Path) -> None:
    with Manifest(tmp_path / "manifest.sqlite") as manifest, manifest.change():
        for key, before, after in (("large.png", 2000, 1900), ("small.png", 1000, 10), ("same.png", 50, 50)):
            made = Output(variant="", path=f"{key}.webp", format="webp", width=9, height=9, bytes=after)
            event = Event(key=key, outcome="done", bytes=before, outputs=(made,))
            item = Input(key=key, location=f"/in/{key}", size=before)
            manifest.record_outputs(item, event)
            manifest.record_outcome(item, "fingerprint", event)
    with Manifest(tmp_path / "manifest.sqlite", reading=True) as manifest:
        assert [key for key, *_ in manifest.done(most=9)] == ["small.png", "large.png", "same.png"]
        assert [key for key, *_ in manifest.done(most=1)] == ["small.png"]


def test_an_input_whose_results_are_on_their_way_has_no_outcome(tmp_path: Path) -> None:
    """A batch that is killed then finds neither a failure nor a result of before."""
    item = Input(key="a.png", location="/in/a.png", size=9)
    made = Output(variant="", path="a.webp", format="webp", width=9, height=9, bytes=5)
    failed = Event(key="a.png", outcome="failed", bytes=9, error="corrupt_image", message="It is damaged.")
    with Manifest(tmp_path / "manifest.sqlite") as manifest:
        with manifest.change():
            manifest.record_outcome(item, "fingerprint", failed)
        assert manifest.totals().failed == 1
        with manifest.change():
            manifest.record_outputs(item, Event(key="a.png", outcome="done", bytes=9, outputs=(made,)))
        assert manifest.failures_of("/in") == {}
        assert [*manifest.failures()] == manifest.reasons() == []
        assert (manifest.totals().inputs, manifest.done(most=9)) == (0, [])
        found = manifest.input_of_output("a.webp")
        assert found is not None
        assert found.is_input(item)


def test_only_the_last_failure_of_an_input_is_known(tmp_path: Path) -> None:
    with Manifest(tmp_path / "manifest.sqlite") as manifest:
        for error, message in (("corrupt_image", "It is damaged."), ("timeout", "It took too long.")):
            item = Input(key="a.png", location="/in/a.png", size=9, stamp=f"when {error}")
            told = {"error": error, "message": message, "digest": f"of {error}"}
            failed = Event(key="a.png", outcome="failed", bytes=9, **told)
            manifest.record_outcome(item, "fingerprint", failed)
            assert [*manifest.failures()] == [("a.png", error, message)]
            known = manifest.find(item)
            assert known is not None
            assert (known.stamp, known.digest) == (item.stamp, failed.digest)


def test_reading_leaves_no_files(tmp_path: Path) -> None:
    path = tmp_path / "manifest.sqlite"
    Manifest(path).close()
    before = sorted(os.listdir(tmp_path))
    with Manifest(path, reading=True) as manifest:
        assert manifest.totals().inputs == 0
    assert sorted(os.listdir(tmp_path)) == before


def test_failures_of_thousands_of_named_files_are_found_soon(tmp_path: Path) -> None:
    paths = [f"{tmp_path}/{number % 20}/{number}.jpg" for number in range(2000)]
    source = several(paths)
    with Manifest(tmp_path / "manifest.sqlite") as manifest:
        failed = Event(key="", outcome="failed", bytes=1, error="corrupt_image")
        for prefix, path in parts_of(source):
            manifest.record_outcome(Input(key=prefix + Path(path).name, location=path), "fingerprint", failed)
        manifest.record_outcome(Input(key="0/0.jpg", location="/elsewhere/0/0.jpg"), "fingerprint", failed)
        began = time.process_time()
        assert len(manifest.failures_of(source)) == 2000
        assert time.process_time() - began < 2  # comparing each with all took 12 s
