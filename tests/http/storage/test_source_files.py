"""Files of sources: where they are while they are processed, and that none of them stays."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from imgsvc_http.storage.source_files import NoRoom, SourceFile, SourceFiles
from tests.http.calls import call, upload
from tests.http.service_process import running
from tests.http.sources import serving
from tests.support import encoded

needs_memory_files = pytest.mark.skipif(sys.platform != "linux", reason="files in memory are known to Linux")
ROOM = 1000
A, B = "account a", "account b"


def opened(folder: Path) -> SourceFiles:
    return SourceFiles(folder, ROOM, folder_bytes=10 * ROOM)


@pytest.fixture
def files(tmp_path: Path) -> SourceFiles:
    return opened(tmp_path)


@needs_memory_files
def test_small_sources_lie_in_memory(files: SourceFiles, tmp_path: Path) -> None:
    with files.file(ROOM, A) as file:
        file.path.write_bytes(b"source")
        assert list(tmp_path.iterdir()) == []
        assert file.path.read_bytes() == b"source"
    assert not file.path.exists()


@needs_memory_files
@pytest.mark.parametrize("size", [ROOM + 1, None])
def test_sources_that_may_be_too_large_lie_in_the_folder(
    size: int | None, files: SourceFiles, tmp_path: Path
) -> None:
    with files.file(size, A) as file:
        file.path.write_bytes(b"source")
        assert list(tmp_path.iterdir()) == [file.path]
    assert list(tmp_path.iterdir()) == []


@needs_memory_files
def test_memory_is_shared_and_given_back(files: SourceFiles, tmp_path: Path) -> None:
    for _ in range(3):
        with files.file(ROOM - 1, A) as first, files.file(2, B) as second:
            assert (first.path.parent == tmp_path, second.path.parent == tmp_path) == (False, True)
        with pytest.raises(OSError, match="full"), files.file(ROOM, A):
            raise OSError("full")


@needs_memory_files
def test_no_account_takes_more_memory_than_is_left_for_others(files: SourceFiles, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        mine = [stack.enter_context(files.file(ROOM // 4, A)) for _ in range(4)]
        assert [file.path.parent == tmp_path for file in mine] == [False, False, True, True]
        assert stack.enter_context(files.file(ROOM // 2, B)).path.parent != tmp_path


def write(file: SourceFile, *sizes: int) -> None:
    """Write chunks of so many bytes."""
    with file.writing() as target:
        for size in sizes:
            target.write(bytes(size))


def test_what_is_announced_takes_no_room(files: SourceFiles) -> None:
    with files.allocator(A) as allocate, files.file_in_folder(B) as file:
        for _ in range(100):
            allocate(100 * ROOM)
        write(file, *5 * [ROOM])


def test_no_account_takes_more_room_than_is_left_for_others(files: SourceFiles) -> None:
    for _ in range(2):
        with (
            files.file_in_folder(A) as first,
            files.file_in_folder(A) as second,
            files.file_in_folder(B) as other,
        ):
            write(first, *3 * [ROOM])
            with pytest.raises(NoRoom):
                write(second, *3 * [ROOM])
            write(other, *3 * [ROOM])
            with pytest.raises(NoRoom):
                write(other, ROOM)


def test_many_accounts_can_fill_the_folder(files: SourceFiles) -> None:
    with contextlib.ExitStack() as stack:
        for account in "abcd":
            assert not files.full
            with contextlib.suppress(NoRoom):
                write(stack.enter_context(files.file_in_folder(account)), *ROOM * [10])
        assert files.full
    assert not files.full


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "left").write_bytes(b"source")
    opened(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.asyncio
async def test_bodies_of_one_account_leave_room_for_those_of_others(tmp_path: Path) -> None:
    """What is announced and not sent keeps nobody out, and what is sent in excess is refused."""
    room = 2**20
    settings = {"server.upload_memory_bytes": 0, "server.upload_disk_bytes": room}
    head = form(b"").partition(b"\r\n--x--")[0]
    photo = encoded.jpeg().data
    with running(tmp_path / "state", settings) as service:
        key = service.new_key()

        async def begin(sent: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            """Announce a body of 50 MB, and send so many bytes of the file in it."""
            connection = await asyncio.open_connection("127.0.0.1", service.port, ssl=service.tls)
            connection[1].write(
                f"POST /1.0/upload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.key}\r\n"
                "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 50000000\r\n\r\n".encode()
                + head
                + bytes(sent)
            )
            await connection[1].drain()
            return connection

        async with service.client(key=key) as other:
            announced = [await begin(0) for _ in range(4)]
            stuck = await begin(room)
            answer = (await stuck[0].readuntil(b"}")).decode()
            assert answer.startswith("HTTP/1.1 507")
            assert "no_room" in answer
            assert (await upload(other, photo)).status == 200
            assert (await call(other, "GET", "/readyz")).status == 200
            for _, writer in (stuck, *announced):
                writer.transport.abort()
            async with asyncio.timeout(60):
                while service.leftovers():
                    await asyncio.sleep(0.01)


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
            async with asyncio.timeout(60):
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
                async with asyncio.timeout(60):
                    while not service.leftovers():
                        await asyncio.sleep(0.01)
                assert bool(service.in_memory()) is in_memory
                rest.set()
                assert (await fetching).status == 200
            assert service.leftovers() == []


def form(photo: bytes) -> bytes:
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n'
    return head + photo + b"\r\n--x--\r\n"
