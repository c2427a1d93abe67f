"""The file of a manifest: of other versions, locked, or where it cannot be written."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import imgsvc_batch
from imgsvc_batch import Batch, Manifest, Summary
from imgsvc_batch.preview import preview
from imgsvc_core.errors import TargetError
from tests.batch.pictures import SPEC, fill
from tests.support import requires

# As version 1.0 wrote it.
_EARLIER = """
PRAGMA journal_mode = WAL;
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE inputs (
    key TEXT PRIMARY KEY, location TEXT NOT NULL, size INTEGER NOT NULL, stamp TEXT NOT NULL,
    digest TEXT NOT NULL DEFAULT '', work TEXT NOT NULL, {source} state TEXT NOT NULL,
    error TEXT NOT NULL DEFAULT '', message TEXT NOT NULL DEFAULT '', seconds REAL NOT NULL DEFAULT 0,
    run INTEGER NOT NULL
);
CREATE INDEX inputs_by_state ON inputs (state, key);
CREATE TABLE outputs (
    path TEXT NOT NULL, key TEXT NOT NULL, variant TEXT NOT NULL, format TEXT NOT NULL,
    width INTEGER NOT NULL, height INTEGER NOT NULL, bytes INTEGER NOT NULL, stale INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (path, key)
);
CREATE INDEX outputs_by_key ON outputs (key);
ATTACH '{now}' AS now;
INSERT INTO settings SELECT * FROM now.settings;
INSERT INTO inputs (key, location, size, stamp, digest, work, {name} state, error, message, seconds, run)
    SELECT key, location, size, stamp, digest, work, {name} state, error, message, seconds, run
    FROM now.inputs JOIN now.batches ON batches.id = batch;
INSERT INTO outputs SELECT path, key, variant, format, width, height, bytes, stale
    FROM now.outputs JOIN now.inputs ON inputs.id = input;
"""


def go(source: Path, target: Path, **options: Any) -> Summary:
    return imgsvc_batch.run(source, target, {"": SPEC}, workers=1, **options)


def counts(summary: Summary) -> tuple[int, int, int]:
    return summary.done, summary.failed, summary.skipped


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source ``in``, and a target ``out`` where one input failed."""
    folder = tmp_path_factory.mktemp("finished")
    fill(folder / "in", 3)
    (folder / "in" / "broken.jpg").write_bytes(b"broken")
    assert counts(go(folder / "in", folder / "out")) == (3, 1, 0)
    return folder


@pytest.fixture(params=[True, False], ids=["with sources", "without sources"])
def earlier(finished: Path, request: pytest.FixtureRequest) -> Batch:
    """The same, as if an earlier version had done it."""
    path = finished / "out" / ".imgsvc-batch.sqlite"
    now = shutil.move(path, path.with_suffix(".now")) if not path.with_suffix(".now").exists() else None
    assert now is None or Path(now).exists()
    for old in finished.glob("out/.imgsvc-batch.sqlite*"):
        old.unlink()
    source, name = ("source TEXT NOT NULL DEFAULT '',", "source,") if request.param else ("", "")
    database = sqlite3.connect(path, isolation_level=None)
    database.executescript(_EARLIER.format(now=path.with_suffix(".now"), source=source, name=name))
    database.close()
    return Batch(source=str(finished / "in"), target=str(finished / "out"), variants={"": SPEC})


def test_one_of_an_earlier_version_is_read_as_it_is(earlier: Batch) -> None:
    before = earlier.manifest_path.read_bytes()
    with Manifest(earlier.manifest_path, reading=True) as manifest:
        totals = manifest.totals()
        assert (totals.inputs, totals.done, totals.failed) == (4, 3, 1)
        assert [key for key, *_ in manifest.failures()] == ["broken.jpg"]
        assert len(manifest.done(most=9)) == 3
    assert sorted(wanted for _, wanted in preview(earlier)) == [False] * 3 + [True]
    assert [item.key for item, _ in preview(earlier, retry=True)] == ["broken.jpg"]
    assert earlier.manifest_path.read_bytes() == before


def test_one_of_an_earlier_version_goes_on(earlier: Batch) -> None:
    source, target = Path(earlier.source), Path(earlier.target)
    assert counts(go(source, target, retry=True)) == (0, 1, 0)
    assert counts(go(source, target)) == (0, 1, 3)
    assert counts(go(source, target, force=True)) == (3, 1, 0)  # its results are its own, and may be replaced


def test_an_interrupt_while_one_of_an_earlier_version_is_brought_up_leaves_it(earlier: Batch) -> None:
    database = sqlite3.connect(earlier.manifest_path, isolation_level=None)
    columns = "location, size, stamp, work, state, run"
    database.execute(
        "WITH RECURSIVE many(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM many LIMIT 100000) "
        f"INSERT INTO inputs (key, {columns}) SELECT 'key' || number, {columns} FROM many, "
        "(SELECT * FROM inputs LIMIT 1)"
    )
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            Manifest(earlier.manifest_path)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert database.execute("PRAGMA user_version").fetchone() == (0,)
    assert database.execute("SELECT count(*) FROM inputs").fetchone() == (100_004,)
    database.close()
    Manifest(earlier.manifest_path).close()


def test_one_of_an_earlier_version_that_is_used_stays(earlier: Batch) -> None:
    lock = sqlite3.connect(f"{earlier.manifest_path}.lock", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    before = earlier.manifest_path.read_bytes()
    try:
        with pytest.raises(TargetError, match="is used by a batch that is running"):
            Manifest(earlier.manifest_path)
    finally:
        lock.close()
    assert earlier.manifest_path.read_bytes() == before


def test_one_of_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "manifest.sqlite"
    Manifest(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    for reading in (True, False):
        with pytest.raises(TargetError, match="is of a later version of imgsvc"):
            Manifest(path, reading=reading)


def test_a_folder_that_cannot_be_written_is_the_reason(tmp_path: Path) -> None:
    """The folder of a manifest that nobody else uses is only to be read, even to root."""
    path = tmp_path / "out" / "manifest.sqlite"
    command = [sys.executable, "-c", _LOCKING, str(path)]
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            requires.missing("root needs setpriv to be bound by the modes of files")
        rights = "-dac_override,-dac_read_search"
        command = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}", *command]
    with Manifest(path):  # what SQLite needs beside it to open it is there
        Path(f"{path}.lock").touch()
        path.parent.chmod(0o555)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        path.parent.chmod(0o755)
    assert "cannot be locked" in done.stdout, done.stderr
    assert "running" not in done.stdout


_LOCKING = """
import sys
from pathlib import Path
from imgsvc_batch import Manifest
from imgsvc_core.errors import TargetError
try:
    with Manifest(Path(sys.argv[1])) as manifest:
        manifest.lock()
except TargetError as error:
    print(error.message)
"""
