"""Files of sources: where they are while they are processed, and that none of them stays."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from imgsvc_http.storage.source_files import SourceFiles
from tests.http.calls import call
from tests.http.service_process import running
from tests.http.sources import serving
from tests.support import encoded

needs_memory_files = pytest.mark.skipif(sys.platform != "linux", reason="files in memory are known to Linux")
ROOM = 1000
A, B, C = "account a", "account b", "account c"


def opened(folder: Path) -> SourceFiles:
    return SourceFiles(folder, ROOM, folder_bytes=10 * ROOM, largest_bytes=4 * ROOM)


@pytest.fixture
def files(tmp_path: Path) -> SourceFiles:
    return opened(tmp_path)


@needs_memory_files
def test_small_sources_lie_in_memory(files: SourceFiles, tmp_path: Path) -> None:
    with files.file(ROOM, A) as path:
        path.write_bytes(b"source")
        assert list(tmp_path.iterdir()) == []
        assert path.read_bytes() == b"source"
    assert not path.exists()


@needs_memory_files
@pytest.mark.parametrize("size", [ROOM + 1, None])
def test_sources_that_may_be_too_large_lie_in_the_folder(
    size: int | None, files: SourceFiles, tmp_path: Path
) -> None:
    with files.file(size, A) as path:
        path.write_bytes(b"source")
        assert list(tmp_path.iterdir()) == [path]
    assert list(tmp_path.iterdir()) == []


@needs_memory_files
def test_room_is_shared_and_given_back(files: SourceFiles, tmp_path: Path) -> None:
    for _ in range(3):
        with files.file(ROOM - 1, A) as first, files.file(2, B) as second:
            assert (first.parent == tmp_path, second.parent == tmp_path) == (False, True)
        with pytest.raises(OSError, match="full"), files.file(ROOM, A):
            raise OSError("full")


@pytest.mark.parametrize(("sizes", "fit"), [((8, 2), True), ((4, 4, 2), True), ((4, 4, 3), False)])
def test_the_folder_has_a_limit_for_all_together(
    sizes: tuple[int, ...], fit: bool, files: SourceFiles
) -> None:
    expected = contextlib.nullcontext() if fit else pytest.raises(OSError, match="no room")
    for _ in range(2):
        with expected, contextlib.ExitStack() as stack:
            for account, size in enumerate(sizes):
                stack.enter_context(files.file_in_folder(size * ROOM, str(account)))


def test_sources_of_unknown_size_count_as_the_largest(files: SourceFiles) -> None:
    with files.file_in_folder(None, A), files.file_in_folder(None, B):
        with pytest.raises(OSError, match="no room"), files.file_in_folder(None, C):
            pass
        with files.file_in_folder(2 * ROOM, C):
            pass


def test_no_account_takes_more_room_than_is_left_for_others(files: SourceFiles, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(files.file_in_folder(ROOM, A))
        with pytest.raises(OSError, match="no room"), files.file_in_folder(ROOM, A):
            pass
        stack.enter_context(files.file_in_folder(2 * ROOM, B))


@needs_memory_files
def test_no_account_takes_more_memory_than_is_left_for_others(files: SourceFiles, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        mine = [stack.enter_context(files.file(ROOM // 4, A)) for _ in range(4)]
        assert [path.parent == tmp_path for path in mine] == [False, False, True, True]
        assert stack.enter_context(files.file(ROOM // 2, B)).parent != tmp_path


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "left").write_bytes(b"source")
    opened(tmp_path)
    assert list(tmp_path.iterdir()) == []


@needs_memory_files
@pytest.mark.asyncio
@pytest.mark.parametrize(("room", "in_memory"), [(0, False), (2**27, True)])
async def test_uploads_are_processed_wherever_they_lie(room: int, in_memory: bool, tmp_path: Path) -> None:
    body = form(encoded.jpeg().data)
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Content-Length": str(len(body))}
    rest = asyncio.Event()

    async def in_halves() -> AsyncIterator[bytes]:
        yield body[: len(body) // 2]
        await rest.wait()
        yield body[len(body) // 2 :]

    with running(tmp_path / "state", {"server.upload_memory_bytes": room}) as service:
        async with service.client() as client:
            uploading = asyncio.create_task(
                call(client, "POST", "/1.0/upload", data=in_halves(), headers=headers)
            )
            async with asyncio.timeout(10):
                while not service.leftovers():
                    await asyncio.sleep(0.01)
            assert bool(service.in_memory()) is in_memory
            rest.set()
            assert (await uploading).status == 200
        assert service.leftovers() == []


@needs_memory_files
@pytest.mark.asyncio
@pytest.mark.parametrize(("announced", "in_memory"), [(False, False), (True, True)])
async def test_fetched_sources_lie_in_memory_where_their_size_is_known(
    announced: bool, in_memory: bool, tmp_path: Path
) -> None:
    photo, rest = encoded.jpeg().data, asyncio.Event()

    async def in_halves(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if announced:
            response.content_length = len(photo)
        await response.prepare(request)
        await response.write(photo[: len(photo) // 2])
        await rest.wait()
        await response.write(photo[len(photo) // 2 :])
        return response

    settings = {"fetch.private_allowed": "127.0.0.1"}
    async with serving({"/photo.jpg": in_halves}) as origin:
        with running(tmp_path / "state", settings) as service:
            async with service.client() as client:
                fetching = asyncio.create_task(
                    call(client, "POST", "/1.0/fetch", json={"url": f"{origin}/photo.jpg"})
                )
                async with asyncio.timeout(10):
                    while not service.leftovers():
                        await asyncio.sleep(0.01)
                assert bool(service.in_memory()) is in_memory
                rest.set()
                assert (await fetching).status == 200
            assert service.leftovers() == []


def form(photo: bytes) -> bytes:
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n'
    return head + photo + b"\r\n--x--\r\n"
