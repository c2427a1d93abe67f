"""Temporary storage over a real server: names, headers, ranges, and an end after an hour."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import aiohttp
import fsspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from imgsvc_core.formats.table import FORMATS
from imgsvc_http.answering.bodies import BodiesUnderWay
from imgsvc_http.answering.errors import Refusal
from imgsvc_http.answering.responses import Response
from imgsvc_http.storage.pending_uploads import PendingUploads
from imgsvc_http.storage.temporary import TemporaryStorage, stored_of
from imgsvc_http.ways.stored import serve
from tests.http.calls import upload
from tests.http.service_process import running
from tests.stores.s3_server import BUCKET, S3Server
from tests.support import photos

pytestmark = pytest.mark.asyncio

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DATA = bytes(range(256)) * 4000


@pytest.fixture
def bucket(s3_environment: S3Server) -> str:
    """URL of a bucket at a server that speaks S3."""
    return f"s3://{BUCKET}"


@pytest.fixture(params=["file", "memory", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> TemporaryStorage:
    if request.param == "s3":
        url = f"{request.getfixturevalue('bucket')}/{uuid4().hex}"
    else:
        url = tmp_path.as_uri() + "/results" if request.param == "file" else f"memory://{uuid4().hex}/results"
    return TemporaryStorage(url, HOUR.total_seconds())


@contextlib.asynccontextmanager
async def served(storage: TemporaryStorage, now: datetime = NOW) -> AsyncIterator[aiohttp.ClientSession]:
    async def handler(request: web.Request) -> web.StreamResponse:
        try:
            name = request.match_info["name"]
            answer = await serve(request, storage, name, now, bodies, lambda response: None)
            if not isinstance(answer, Response):
                return answer
            return web.Response(status=answer.status, headers=answer.headers, body=answer.payload(bodies))
        except Refusal as refusal:
            return web.Response(status=refusal.status, text=refusal.slug, headers=refusal.headers)

    bodies = BodiesUnderWay(10**9)
    app = web.Application()
    app.router.add_get("/{name:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as client:
            yield client
    finally:
        await runner.cleanup()


async def test_a_picture_comes_back_with_its_headers(storage: TemporaryStorage) -> None:
    stored = await storage.put(DATA, "image/webp", NOW)
    assert NOW + HOUR <= stored.expires_at <= NOW + HOUR + timedelta(seconds=1)
    async with (
        served(storage, NOW + timedelta(minutes=10)) as client,
        client.get(f"/{stored.name}") as answer,
    ):
        assert answer.status == 200
        assert await answer.read() == DATA
        headers = answer.headers
    assert headers["Content-Type"] == "image/webp"
    assert headers["Content-Length"] == str(len(DATA))
    assert 2999 <= int(headers["Cache-Control"].removeprefix("private, max-age=")) <= 3001
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Accept-Ranges"] == "bytes"
    assert headers["ETag"].startswith('"')


async def test_every_format_keeps_its_type(storage: TemporaryStorage) -> None:
    async with served(storage) as client:
        for row in FORMATS.values():
            stored = await storage.put(b"x", row.media_type, NOW)
            async with client.get(f"/{stored.name}") as answer:
                assert answer.headers["Content-Type"] == row.media_type


async def test_names_cannot_be_guessed(storage: TemporaryStorage) -> None:
    names = {(await storage.put(b"x", "image/png", NOW)).name for _ in range(50)}
    assert len(names) == 50
    assert all(len(name.partition("-")[2]) >= 32 for name in names)


@pytest.mark.parametrize(
    ("asked", "status", "expected"),
    [
        ("bytes=0-99", 206, DATA[:100]),
        ("bytes=1000-", 206, DATA[1000:]),
        ("Bytes=0-99", 206, DATA[:100]),
        ("bytes=-50", 206, DATA[-50:]),
        (f"bytes=10-{len(DATA) + 99}", 206, DATA[10:]),
        (f"bytes=-{len(DATA) * 2}", 200, DATA),
        ("bytes=500000-700000", 206, DATA[500_000:700_001]),
        ("bytes=0-1,5-6", 200, DATA),
        ("rows=1-2", 200, DATA),
        ("bytes=5-1", 416, None),
        (f"bytes={len(DATA)}-", 416, None),
        ("bytes=-0", 416, None),
        (f"bytes={'9' * 30}-", 416, None),
        (f"bytes={'9' * 5000}-", 200, DATA),
        ("bytes=\u0661-", 200, DATA),
    ],
)
async def test_ranges(asked: str, status: int, expected: bytes | None, storage: TemporaryStorage) -> None:
    stored = await storage.put(DATA, "image/png", NOW)
    async with served(storage) as client, client.get(f"/{stored.name}", headers={"Range": asked}) as answer:
        assert answer.status == status
        if expected is None:
            assert answer.headers["Content-Range"] == f"bytes */{len(DATA)}"
            return
        assert await answer.read() == expected
        if status == 206:
            first, end = answer.headers["Content-Range"].split()[1].partition("/")[0].split("-")
            assert DATA[int(first) : int(end) + 1] == expected


@pytest.mark.parametrize("asked", ["bytes=0-99", f"bytes={len(DATA)}-"])
async def test_ranges_are_for_get_only(asked: str, storage: TemporaryStorage) -> None:
    stored = await storage.put(DATA, "image/png", NOW)
    async with served(storage) as client, client.head(f"/{stored.name}", headers={"Range": asked}) as answer:
        assert (answer.status, answer.headers["Content-Length"]) == (200, str(len(DATA)))
        assert "Content-Range" not in answer.headers


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_another_etag_than_the_expected_one_fails(method: str, storage: TemporaryStorage) -> None:
    stored = await storage.put(DATA, "image/png", NOW)
    async with served(storage) as client:
        async with client.head(f"/{stored.name}") as answer:
            etag = answer.headers["ETag"]
        for expected, status in (
            (etag, 200),
            (f'"other", {etag}', 200),
            ("*", 200),
            ('"other"', 412),
            (f"W/{etag}", 412),  # it may be another one
            ("", 412),
        ):
            headers = {"If-Match": expected, "If-None-Match": '"other"'}
            async with client.request(method, f"/{stored.name}", headers=headers) as answer:
                assert (answer.status, answer.headers["ETag"]) == (status, etag), expected


async def test_an_etag_saves_the_body_and_guards_ranges(storage: TemporaryStorage) -> None:
    stored = await storage.put(DATA, "image/png", NOW)
    async with served(storage) as client:
        async with client.get(f"/{stored.name}") as answer:
            etag = answer.headers["ETag"]
        for known in (etag, f'"other", W/{etag}', "*"):
            async with client.get(f"/{stored.name}", headers={"If-None-Match": known}) as answer:
                assert (answer.status, await answer.read()) == (304, b"")
        for known, status in ((etag, 206), ('"other"', 200)):
            headers = {"Range": "bytes=0-9", "If-Range": known}
            async with client.get(f"/{stored.name}", headers=headers) as answer:
                assert answer.status == status
        async with client.head(f"/{stored.name}") as answer:
            assert (answer.status, answer.headers["Content-Length"]) == (200, str(len(DATA)))
            assert await answer.read() == b""


async def test_an_hour_later_it_is_gone(storage: TemporaryStorage) -> None:
    stored = await storage.put(DATA, "image/png", NOW)
    for after, status in ((HOUR - timedelta(seconds=1), 200), (HOUR + timedelta(seconds=2), 410)):
        async with served(storage, NOW + after) as client, client.get(f"/{stored.name}") as answer:
            assert answer.status == status


@pytest.mark.parametrize(
    "name",
    ["", "x", "../secret.png", "..%2Fsecret.png", "%00",
     *(f"{expiry}-{'A' * 32}.png" for expiry in ("zzzzzz", "zzzzzzz", "zzzzzzzzz")),
     f"zzzzzz-{'A' * 32}.exe", f"zzzzzz-{'A' * 32}", f"zzzzzz-{'A' * 31}/.png"],
)  # fmt: skip
async def test_other_names_are_unknown(name: str, storage: TemporaryStorage, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_text("secret")
    await storage.put(b"x", "image/png", NOW)
    async with served(storage) as client, client.get(f"/{name}") as answer:
        assert answer.status == 404


async def test_sweeping_takes_what_has_expired_also_after_a_restart(tmp_path: Path) -> None:
    url = tmp_path.as_uri() + "/results"
    before = TemporaryStorage(url, 3600)
    old = await before.put(DATA, "image/png", NOW)
    young = await before.put(DATA, "image/gif", NOW + timedelta(minutes=30))
    (tmp_path / "results" / "unrelated.txt").write_text("stays")
    after = TemporaryStorage(url, 3600)
    assert await after.sweep(NOW + timedelta(minutes=59)) == 0
    assert await after.sweep(NOW + timedelta(minutes=61)) == 1
    left = {path.name for path in (tmp_path / "results").iterdir()}
    assert left == {young.name, "unrelated.txt"}
    assert old.name not in left
    assert await after.sweep(NOW + timedelta(minutes=91)) == 1


async def test_what_another_node_stored_after_a_sweep_is_found(bucket: str) -> None:
    folder = uuid4().hex
    storage = TemporaryStorage(f"{bucket}/{folder}", 3600)
    stored = await storage.put(DATA, "image/png", NOW)
    assert await storage.sweep(NOW) == 0
    other = f"{stored.name.partition('-')[0]}-{'A' * 32}.png"
    fsspec.filesystem("s3", skip_instance_cache=True).pipe_file(f"{BUCKET}/{folder}/{other}", DATA)
    async with served(storage) as client, client.get(f"/{other}") as answer:
        assert (answer.status, await answer.read()) == (200, DATA)


async def test_what_cannot_be_deleted_keeps_nothing_else(tmp_path: Path) -> None:
    storage = TemporaryStorage(tmp_path.as_uri(), 3600)
    names = sorted([(await storage.put(DATA, "image/png", NOW)).name for _ in range(5)])
    for name in (names[0], names[3]):
        (tmp_path / name).unlink()
        (tmp_path / name / "within").mkdir(parents=True)
    with pytest.raises(ExceptionGroup, match="cannot be deleted"):
        await storage.sweep(NOW + 2 * HOUR)
    assert {path.name for path in tmp_path.iterdir()} == {names[0], names[3]}


async def test_a_deleted_picture_is_unknown(storage: TemporaryStorage) -> None:
    stored = await storage.put(DATA, "image/png", NOW)
    await storage.sweep(NOW + 2 * HOUR)
    async with served(storage) as client, client.get(f"/{stored.name}") as answer:
        assert answer.status == 404


@pytest.mark.parametrize(("leaves", "local"), [(True, True), (False, True), (False, False)])
async def test_a_download_that_cannot_be_finished_ends_without_another_word(
    leaves: bool, local: bool, tmp_path: Path
) -> None:
    """Neither is an error put into the picture, nor the service blamed for a client that leaves.

    A file on this machine that is deleted meanwhile is delivered whole.
    """
    folder = tmp_path / "results"
    url = folder.as_uri() if local else f"dir::{folder.as_uri()}"
    with running(tmp_path / "state", {"temporary.url": url}) as service:
        async with service.client() as client:
            large = photos.as_vips(photos.mosaic(4800, 3600)).jpegsave_buffer(Q=90)
            output = (await upload(client, large, {"output": {"format": "png"}})).json["output"]
        reader, writer = await asyncio.open_connection("localhost", service.port, ssl=service.tls)
        writer.write(f"GET {URL(output['url']).path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.5)
        if leaves:
            writer.transport.abort()
            await asyncio.sleep(0.5)
        else:
            for file in folder.rglob("*.png"):
                file.unlink()
            if local:
                assert len(await reader.readexactly(output["bytes"])) == output["bytes"]
                return
            picture = await asyncio.wait_for(reader.read(), 60)
            assert 0 < len(picture) < output["bytes"]
            assert b"HTTP/1.1" not in picture
        writer.close()
    log = (tmp_path / "state.log").read_text()
    assert ("FileNotFoundError" in log, "database" in log) == (not leaves, False)


@given(st.text())
async def test_no_text_breaks_the_reading_of_names(name: str) -> None:
    found = stored_of(name)
    assert found is None or found.expires_at.tzinfo is not None


async def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    """Buckets have no empty ones."""
    folder = tmp_path / "folder"
    storage, sources = TemporaryStorage(folder.as_uri(), 3600), PendingUploads(folder.as_uri())
    assert (await storage.sweep(NOW), await sources.kept_before(NOW)) == (0, {})
    folder.rmdir()
    assert (await storage.sweep(NOW), await sources.kept_before(NOW)) == (0, {})


async def test_whoever_has_a_picture_may_write_it_to_a_local_folder(tmp_path: Path) -> None:
    storage = TemporaryStorage(tmp_path.as_uri() + "/results", HOUR.total_seconds())
    target = await storage.local_target(NOW)
    assert target is not None
    Path(f"{target.path}.png").write_bytes(DATA)
    stored = target.stored("image/png")
    assert NOW + HOUR <= stored.expires_at <= NOW + HOUR + timedelta(seconds=1)
    assert await storage.size(stored.name) == len(DATA)
    assert await storage.sweep(stored.expires_at) == 1
    assert await TemporaryStorage(f"memory://{tmp_path.name}", 3600).local_target(NOW) is None
