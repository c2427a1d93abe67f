"""What a run writes down, where there are many inputs: an interrupt waits for each of these steps."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from imgsvc_batch import Manifest
from imgsvc_batch.inputs import Input
from imgsvc_batch.journal import RESUMED, RETRIED, Journal

SOME, MANY = 2_000, 30_000
SOURCE = "/pictures"


def journal(manifest: Manifest, takes_up: str = "") -> Journal:
    return Journal(manifest, source=SOURCE, work="work", settings={}, takes_up=takes_up)


def note(manifest: Manifest, count: int) -> None:
    found = [
        Input(key=f"{n}.png", location=f"{SOURCE}/{n}.png", size=100, stamp="100-1") for n in range(count)
    ]
    run = journal(manifest)
    run.note(found)
    run.finish_listing()


def test_room_is_kept_for_some_failures_and_not_for_millions(tmp_path: Path) -> None:
    with Manifest(tmp_path / "manifest.sqlite") as manifest:
        note(manifest, MANY)
        (pages,) = manifest.file.db.execute("PRAGMA freelist_count").fetchone()
        (size,) = manifest.file.db.execute("PRAGMA page_size").fetchone()
    assert 2**20 <= pages * size <= 1.1 * 2**24


def test_what_is_left_is_taken_up_as_it_is_begun(tmp_path: Path) -> None:
    """Going on changes what is handed out, and not all that waits."""
    path = tmp_path / "manifest.sqlite"
    with Manifest(path) as manifest:
        note(manifest, SOME)
    for takes_up in (RESUMED, RETRIED):
        if takes_up == RETRIED:
            with sqlite3.connect(path) as database:
                database.execute("UPDATE inputs SET state = 'failed'")
        with Manifest(path) as manifest:
            run = journal(manifest, takes_up)
            assert run.waiting_count() == SOME
            tasks = run.waiting(most=50)
            assert len({task.key for task in tasks}) == 50
            assert manifest.file.db.total_changes < 200
            assert run.waiting_count() == SOME - 50
