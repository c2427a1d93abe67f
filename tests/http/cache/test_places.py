"""Folders, buckets and other places of files."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from imgsvc_http.cache.entries import entry_key
from imgsvc_http.cache.places import LocalPlace, Place, open_place
from tests.stores.s3_server import BUCKET, s3_server

KEY = entry_key("account", "source")


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", server.url)
        patch.setenv("AWS_ACCESS_KEY_ID", server.key)
        patch.setenv("AWS_SECRET_ACCESS_KEY", server.secret)
        yield f"s3://{BUCKET}"
    fsspec.get_filesystem_class("s3").clear_instance_cache()


@pytest.fixture(params=["file", "memory", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        return f"{request.getfixturevalue('bucket')}/{uuid4().hex}"
    return f"file://{tmp_path}/cache" if request.param == "file" else f"memory://{uuid4().hex}/cache"


@pytest.fixture
def place(url: str) -> Place:
    place = open_place(url)
    place.number()
    return place


def test_a_file_is_written_replaced_and_removed(place: Place) -> None:
    assert place.read(KEY) is None
    for data in (b"one", b"another", b""):
        place.write(KEY, data)
        assert place.read(KEY) == data
    place.remove(KEY)
    place.remove(KEY)
    assert place.read(KEY) is None


def test_a_place_has_its_number_at_every_start(url: str) -> None:
    assert open_place(url).number() == open_place(url).number() != open_place(f"{url}2").number()


def test_nodes_that_start_together_agree_on_the_number(tmp_path: Path) -> None:
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(LocalPlace(tmp_path / "cache").number()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_readers_of_a_file_that_two_write_find_a_whole_one(tmp_path: Path) -> None:
    place, ended = LocalPlace(tmp_path / "cache"), threading.Event()
    place.number()
    versions = {bytes([version]) * 200_000 for version in range(2)}
    place.write(KEY, min(versions))

    def write(data: bytes) -> None:
        while not ended.is_set():
            place.write(KEY, data)

    writers = [threading.Thread(target=write, args=(data,)) for data in versions]
    for writer in writers:
        writer.start()
    try:
        found = {place.read(KEY) for _ in range(300)}
    finally:
        ended.set()
        for writer in writers:
            writer.join()
    assert found <= versions


def test_what_a_dead_process_left_is_swept_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path / "cache")
    place.number()
    old, new = (tmp_path / "cache/incoming" / name for name in ("old", "new"))
    for file in (old, new):
        file.write_bytes(b"half a pict")
    hour_ago = time.time() - 3600
    os.utime(old, (hour_ago, hour_ago))
    place.sweep()
    assert (old.exists(), new.exists()) == (False, True)
