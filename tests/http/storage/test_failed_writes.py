"""A write that fails half way leaves no file, whoever writes."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from imgsvc_batch.results import stage
from imgsvc_core.errors import TargetError
from imgsvc_core.targets import open_target
from imgsvc_http.cache import files
from imgsvc_http.storage.preview_sources import PreviewSources
from imgsvc_http.storage.temporary import TemporaryStorage

_DATA = bytes(200_000)
_ROOM = 70_000


@contextmanager
def little_room() -> Iterator[None]:
    """Let no file grow beyond some bytes, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _temporary(folder: Path) -> None:
    storage = TemporaryStorage(folder.as_uri(), 60)
    asyncio.run(storage.put(_DATA, "image/png", datetime.now(UTC)))


def _cache(folder: Path) -> None:
    name = files.name_of(bytes(16), "0" * 64)
    file = files.StoredFile(name, files.counted(len(_DATA)), 10**18)
    files.write(fsspec.filesystem("file"), str(folder), file, _DATA)


def _kept(folder: Path) -> None:
    sources = PreviewSources(folder.as_uri(), 600, 10**9)
    asyncio.run(sources.keep(str(uuid4()), folder.parent / "source", ".png", datetime.now(UTC)))


def _batch(folder: Path) -> None:
    stage(str(folder), _DATA)


def _target(folder: Path) -> None:
    with open_target(folder / "a.png") as file:
        file.write(_DATA)


@pytest.mark.parametrize("write", [_temporary, _cache, _kept, _batch, _target])
def test_nothing_is_left_of_a_file_that_is_too_large(write: Callable[[Path], None], tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    (tmp_path / "source").write_bytes(_DATA)
    with little_room(), pytest.raises((OSError, TargetError)):
        write(folder)
    assert [path for path in folder.rglob("*") if path.is_file()] == []
