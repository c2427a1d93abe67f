"""Folders, buckets and other places of files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest

from imgsvc_http.cache import files
from imgsvc_http.cache.entries import entry_key, source_digest
from imgsvc_http.cache.files import Scan, StoredFile, name_of
from imgsvc_http.storage.folder import Folder
from tests.stores.s3_server import BUCKET, S3Server

pytestmark = pytest.mark.asyncio

KEY = entry_key("account", "source")
NAME = name_of(source_digest("account", "source"), KEY)


@pytest.fixture
def bucket(s3_environment: S3Server) -> str:
    return f"s3://{BUCKET}"


@pytest.fixture(params=["file", "memory", pytest.param("s3", marks=pytest.mark.processes)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        return f"{request.getfixturevalue('bucket')}/{uuid4().hex}"
    return f"file://{tmp_path}/cache" if request.param == "file" else f"memory://{uuid4().hex}/cache"


@pytest.fixture
def folder(url: str) -> Folder:
    return Folder(url, 60)


async def put(folder: Folder, data: bytes, name: str = NAME, used_at: int = 10**18) -> tuple[int, int]:
    return await folder.call(files.write, StoredFile(name, files.counted(len(data)), used_at), data)


async def counted(folder: Folder) -> Scan:
    scan = Scan()
    for part in await folder.call(files.folders):
        await folder.call(scan.add_folder, part)
    scan.end()
    return scan


async def test_a_file_is_written_replaced_and_removed(folder: Folder) -> None:
    assert await folder.call(files.read, NAME) is None
    for data in (b"one", b"another", b""):
        await put(folder, data)
        assert await folder.call(files.read, NAME) == data
    for _ in range(2):
        await folder.remove(NAME)
    assert await folder.call(files.read, NAME) is None


async def test_files_are_counted_and_those_of_a_source_are_deleted(folder: Folder) -> None:
    assert (await counted(folder)).entries == 0
    sources = [source_digest("account", str(number)) for number in range(4)]
    for source in sources:
        for size in (10, 5000):
            await put(folder, bytes(size), name_of(source, entry_key("account", str(size))))
    scan = await counted(folder)
    assert (scan.entries, scan.bytes) == (8, 4 * 3 * 4096)
    assert await folder.call(files.remove_all, name_of(sources[0], "")) == (2, 3 * 4096)
    assert await folder.call(files.remove_all, name_of(sources[0], "")) == (0, 0)
    assert await folder.call(files.remove_unused, (await counted(folder)).oldest) == (6, 3 * 3 * 4096)
    assert (await counted(folder)).entries == 0


async def test_the_files_used_longest_ago_are_the_last(tmp_path: Path) -> None:
    folder = Folder(f"file://{tmp_path}/cache", 60)
    names = [name_of(source_digest("account", str(number)), KEY) for number in range(3)]
    for moment, name in enumerate(names, 1):
        assert await put(folder, b"a", name, moment * 10**9) == (1, 4096)
    assert await put(folder, b"b", names[0], 10**9) == (0, 0)
    assert [file.name for file in (await counted(folder)).oldest] == names[::-1]
    await folder.call(files.touch, {names[0]: 9 * 10**9})
    scan = await counted(folder)
    assert [file.name for file in scan.oldest] == [names[0], names[2], names[1]]
    await folder.call(files.touch, {names[1]: 10 * 10**9})
    assert await folder.call(files.remove_unused, scan.oldest[-1:]) == (0, 0)  # it was used meanwhile


async def test_readers_of_a_file_that_two_write_find_a_whole_one(tmp_path: Path) -> None:
    folder, ended = Folder(f"file://{tmp_path}/cache", 60), asyncio.Event()
    versions = {bytes([version]) * 200_000 for version in range(2)}
    await put(folder, min(versions))

    async def write(data: bytes) -> None:
        while not ended.is_set():
            await put(folder, data)

    writers = [asyncio.create_task(write(data)) for data in versions]
    found = {await folder.call(files.read, NAME) for _ in range(300)}
    ended.set()
    await asyncio.gather(*writers)
    assert found <= versions
