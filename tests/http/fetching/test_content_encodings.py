"""Sources are decoded as their origins encode them, and bombs are stopped at each layer."""

from __future__ import annotations

import asyncio
import gzip
import sys
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType

import pytest
from aiohttp import web

from imgsvc_core.errors import SourceTooLarge, SourceUnreachable
from imgsvc_http.fetching.fetcher import Fetcher
from imgsvc_http.fetching.saving import save
from imgsvc_http.storage.source_files import SourceFile
from tests.http.sources import Handler, serving
from tests.support import requires

pytestmark = pytest.mark.asyncio

PICTURE = bytes(range(256)) * 400
LIMIT = 1_000_000
SKIPPED_FRAME = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"


def bare_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


def stored_bare_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(0, wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


def brotli(data: bytes) -> bytes:
    return bytes(requires.module("brotli").compress(data))


def zstd_module() -> ModuleType:
    """That of Python 3.14, or the package that brings it to older versions."""
    return requires.module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def zstd(data: bytes) -> bytes:
    return bytes(zstd_module().compress(data))


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli,
    "zstd": zstd,
}
CODINGS = pytest.mark.parametrize("coding", ENCODERS)


def encoded(body: bytes, *codings: str) -> Handler:
    """What answers with a body, under a line of ``Content-Encoding`` for each text."""

    async def answer(request: web.Request) -> web.Response:
        response = web.Response(body=body)
        for coding in codings:
            response.headers.add("Content-Encoding", coding)
        return response

    return answer


async def got(fetcher: Fetcher, into: Path, handler: Handler, limit: int = LIMIT) -> bytes:
    async with serving({"/p": handler}) as url:
        fetched = await fetcher.fetch(f"{url}/p", {}, lambda _: SourceFile(into / "source"), limit)
    return fetched.path.read_bytes()


@pytest.mark.parametrize(
    "label",
    [
        "",
        "identity",
        "none",
        "utf-8",
        "UTF8",
        "base64",
        "aws-chunked",
        "aws-chunked,base64",
        "binary",
        "image/png",
    ],
)
async def test_labels_mean_plain_bytes(label: str, fetcher: Fetcher, tmp_path: Path) -> None:
    assert await got(fetcher, tmp_path, encoded(PICTURE, label)) == PICTURE


@CODINGS
@pytest.mark.parametrize("header", ["{0}", "{1}", "aws-chunked, {0}", "{0},aws-chunked", "utf-8, {0} ,none"])
async def test_codings_are_undone_beside_labels(
    coding: str, header: str, fetcher: Fetcher, tmp_path: Path
) -> None:
    body = ENCODERS[coding](PICTURE)
    assert await got(fetcher, tmp_path, encoded(body, header.format(coding, coding.upper()))) == PICTURE


async def test_a_source_may_have_all_the_bytes_that_are_allowed(fetcher: Fetcher, tmp_path: Path) -> None:
    async def of_unknown_length(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(body)
        return response

    body = bytes(5000)
    for answer in (encoded(body), encoded(gzip.compress(body), "gzip"), of_unknown_length):
        assert await got(fetcher, tmp_path, answer, limit=5000) == body
        with pytest.raises(SourceTooLarge):
            await got(fetcher, tmp_path, answer, limit=4999)


async def test_codings_are_undone_from_the_last_to_the_first(fetcher: Fetcher, tmp_path: Path) -> None:
    body = bare_deflate(gzip.compress(PICTURE))
    assert await got(fetcher, tmp_path, encoded(body, "gzip, deflate")) == PICTURE
    assert await got(fetcher, tmp_path, encoded(body, "gzip", "deflate")) == PICTURE
    with pytest.raises(SourceUnreachable, match="broken Content-Encoding"):
        await got(fetcher, tmp_path, encoded(body, "deflate, gzip"))


@pytest.mark.parametrize("pack", [zlib.compress, bare_deflate, stored_bare_deflate, gzip.compress])
async def test_deflate_with_and_without_a_header(
    pack: Callable[[bytes], bytes], fetcher: Fetcher, tmp_path: Path
) -> None:
    assert await got(fetcher, tmp_path, encoded(pack(PICTURE), "deflate")) == PICTURE


@pytest.mark.parametrize("size", [25, 1000, 16384, 60_000])
async def test_gzip_of_several_members(size: int, fetcher: Fetcher, tmp_path: Path) -> None:
    members = [gzip.compress(PICTURE[at : at + size], 1) for at in range(0, len(PICTURE), size)]
    assert await got(fetcher, tmp_path, encoded(b"".join(members), "gzip")) == PICTURE
    padded = b"\0\0".join(members) + b"\0" * 600
    assert await got(fetcher, tmp_path, encoded(padded, "gzip")) == PICTURE


async def test_zstd_of_several_frames(fetcher: Fetcher, tmp_path: Path) -> None:
    frames = zstd(PICTURE[:1000]) + SKIPPED_FRAME + zstd(PICTURE[1000:])
    assert await got(fetcher, tmp_path, encoded(frames, "zstd")) == PICTURE


async def test_windows_of_zstd_are_limited(fetcher: Fetcher, tmp_path: Path) -> None:
    module = zstd_module()
    for window_log, fits in ((23, True), (24, False)):
        compressor = module.ZstdCompressor(options={module.CompressionParameter.window_log: window_log})
        body = compressor.compress(PICTURE) + compressor.flush()
        if fits:
            assert await got(fetcher, tmp_path, encoded(body, "zstd")) == PICTURE
        else:
            with pytest.raises(SourceUnreachable, match="broken Content-Encoding"):
                await got(fetcher, tmp_path, encoded(body, "zstd"))


@CODINGS
async def test_what_is_not_encoded_so_is_refused(coding: str, fetcher: Fetcher, tmp_path: Path) -> None:
    body = ENCODERS[coding](PICTURE)
    told = "broken Content-Encoding|goes on after the end|ended before"
    for wrong in (body[:-20], body[:3], b"nothing of the kind", body + b"junk", body[:40] + body[60:]):
        with pytest.raises(SourceUnreachable, match=told):
            await got(fetcher, tmp_path, encoded(wrong, coding))


async def test_only_gzip_and_zstd_have_members(fetcher: Fetcher, tmp_path: Path) -> None:
    body = ENCODERS["deflate"](PICTURE[:1000]) + ENCODERS["deflate"](PICTURE[1000:])
    with pytest.raises(SourceUnreachable, match="goes on after the end"):
        await got(fetcher, tmp_path, encoded(body, "deflate"))


@pytest.mark.parametrize(("coding", "module"), [("br", "brotli"), ("zstd", "backports.zstd")])
async def test_a_package_that_is_missing_is_told(
    coding: str, module: str, fetcher: Fetcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (module, "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    told = f"is encoded as {coding}, which needs a package.*'imgsvc.{coding}.'"
    with pytest.raises(SourceUnreachable, match=told):
        await got(fetcher, tmp_path, encoded(PICTURE, coding))


@pytest.mark.parametrize("coding", ["compress", "x-compress", "dcb", "gzip, dcz"])
async def test_codings_that_cannot_be_undone_are_told(coding: str, fetcher: Fetcher, tmp_path: Path) -> None:
    name = coding.rpartition(" ")[2]
    with pytest.raises(SourceUnreachable, match=f"is encoded as {name}, which cannot be decoded"):
        await got(fetcher, tmp_path, encoded(PICTURE, coding))


async def test_the_number_of_codings_is_limited(fetcher: Fetcher, tmp_path: Path) -> None:
    body = PICTURE
    for _ in range(5):
        body = gzip.compress(body)
    assert await got(fetcher, tmp_path, encoded(body, ",".join(["gzip"] * 5))) == PICTURE
    with pytest.raises(SourceUnreachable, match="encoded more than 5 times"):
        await got(fetcher, tmp_path, encoded(gzip.compress(body), ",".join(["gzip"] * 6)))


async def test_what_is_announced_as_too_large_is_not_read(tmp_path: Path) -> None:
    read: list[bytes] = []

    async def chunks() -> AsyncIterator[bytes]:
        read.append(b"x")
        yield b"x"

    file = SourceFile(tmp_path / "source")
    with pytest.raises(SourceTooLarge, match="10 bytes"):
        await save(chunks(), "", 11, lambda _: file, 10, lambda: "It")
    assert read == []
    assert await save(chunks(), "", 10, lambda _: file, 10, lambda: "It") == file.path


@CODINGS
async def test_bombs_are_too_large(coding: str, fetcher: Fetcher, tmp_path: Path) -> None:
    body = ENCODERS[coding](b"\0" * 10_000_000)
    assert len(body) < LIMIT
    with pytest.raises(SourceTooLarge, match="1,000,000 bytes"):
        await got(fetcher, tmp_path, encoded(body, coding))


async def test_bombs_within_a_bomb_are_too_large(fetcher: Fetcher, tmp_path: Path) -> None:
    """Millions of empty blocks decode to nothing, after much work."""
    inner = gzip.compress(b"")[:10] + b"\0\0\0\xff\xff" * 10_000_000
    with pytest.raises(SourceTooLarge):
        await got(fetcher, tmp_path, encoded(gzip.compress(inner, 1), "gzip, gzip"))


async def test_the_number_of_members_is_limited(fetcher: Fetcher, tmp_path: Path) -> None:
    """Each costs time and may decode to nothing."""
    frame = zstd(b"")
    for coding, member in (("gzip", gzip.compress(b"")), ("zstd", frame), ("zstd", SKIPPED_FRAME)):
        whole = ENCODERS[coding](PICTURE)
        assert await got(fetcher, tmp_path, encoded(member * 4095 + whole, coding)) == PICTURE
        with pytest.raises(SourceUnreachable, match="has more than 4,096 compressed members"):
            await got(fetcher, tmp_path, encoded(member * 4096 + whole, coding))


async def test_what_decodes_to_nothing_has_an_end(fetcher: Fetcher, tmp_path: Path) -> None:
    start, sent = gzip.compress(b"")[:10], 0  # a header, which empty blocks follow

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Encoding": "gzip"})
        await response.prepare(request)
        await response.write(start)
        while True:
            await response.write(b"\0\0\0\xff\xff" * 13_000)
            sent += 65_000

    with pytest.raises(SourceTooLarge):
        await got(fetcher, tmp_path, endless)
    assert sent < 30_000_000


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
async def test_decoding_lets_others_work(coding: str, fetcher: Fetcher, tmp_path: Path) -> None:
    body = ENCODERS[coding](b"\0" * 20_000_000)  # 20 kB or less, which come in a chunk or two
    into, sizes = tmp_path / "source", set()

    async def watch() -> None:
        while True:
            if into.exists():
                sizes.add(into.stat().st_size)
            await asyncio.sleep(0)

    watcher = asyncio.create_task(watch())
    await got(fetcher, tmp_path, encoded(body, coding), limit=10**8)
    watcher.cancel()
    assert len(sizes) > 100
