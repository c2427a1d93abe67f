"""Redirects lead where their `Location` says, to the byte, with the cookies of the servers on the way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from imgsvc_core.errors import SourceUnreachable
from imgsvc_http.fetching.fetcher import Fetcher
from imgsvc_http.storage.source_files import SourceFile
from tests.http.sources import serving

pytestmark = pytest.mark.asyncio


async def fetched(fetcher: Fetcher, url: str, into: Path, **headers: str) -> bytes:
    found = await fetcher.fetch(url, headers, lambda _: SourceFile(into / "source"), 10**6)
    return found.path.read_bytes()


@contextlib.asynccontextmanager
async def moved(location: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that sends everybody on once, and the targets that were asked for."""
    targets: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        targets.append((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1])
        if len(targets) == 1:
            here = location.replace(b"HERE", b"127.0.0.1:%d" % port)
            writer.write(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s\r\n" % here)
            writer.write(b"Connection: close\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/a/b/c.jpg?d=e", targets


SIGNED = (
    b"X-Amz-Credential=KEY%2F20261125%2Feu&X-Amz-Signature=a%2bb%3D&response=%22a%20b%22+c&x=~!$'()*,;:@/?"
)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (b"/p?" + SIGNED, b"/p?" + SIGNED),
        (b"http://HERE/p%2Fq/%7Er?" + SIGNED, b"/p%2Fq/%7Er?" + SIGNED),
        (b"//HERE/p?q=%2f", b"/p?q=%2f"),
        (b"?q=%2F&r=a+b", b"/a/b/c.jpg?q=%2F&r=a+b"),
        (b"d//e.jpg", b"/a/b/d//e.jpg"),
        (b"/d//e.jpg/", b"/d//e.jpg/"),
        (b"http://HERE//d/e.jpg", b"//d/e.jpg"),
        (b"../../../f.jpg", b"/f.jpg"),
        (b"http://HERE", b"/"),
        (b"http://HERE?q=%2F", b"/?q=%2F"),
        (b"/caf\xe9.jpg?q=\xff%2F", b"/caf%E9.jpg?q=%FF%2F"),
        ("/ü/%C3%BC.jpg?q=ü%2F".encode(), b"/%C3%BC/%C3%BC.jpg?q=%C3%BC%2F"),
        (b"/a b.jpg?q=a b%2F", b"/a%20b.jpg?q=a%20b%2F"),
        (b"/100%.jpg?q=%zz%2F", b"/100%25.jpg?q=%25zz%2F"),
        (b"/[a]|b.jpg?q={1}%2F", b"/[a]|b.jpg?q={1}%2F"),
        (b"/p?q=%2F#fragment%2F", b"/p?q=%2F"),
        (b"/target?next=http%3A//example.com/", b"/target?next=http%3A//example.com/"),  # aiohttp#1466
        (b"/Spider-Man_%26_Silk:_The_Spider(fly)", b"/Spider-Man_%26_Silk:_The_Spider(fly)"),  # aiohttp#6626
        (b"/f?d=attachment%3Bfilename%3D%22a%22&t=a/b", b"/f?d=attachment%3Bfilename%3D%22a%22&t=a/b"),
    ],
)
async def test_the_bytes_of_a_location_are_kept(
    location: bytes, target: bytes, fetcher: Fetcher, tmp_path: Path
) -> None:
    async with moved(location) as (url, targets):
        assert await fetched(fetcher, url, tmp_path) == b"x"
    assert targets == [b"/a/b/c.jpg?d=e", target]


@pytest.mark.parametrize("location", [b"http://caf\xe9.example/", b"http://[::1/", b"http://10.0.0.1/%2F"])
async def test_locations_that_lead_nowhere_are_refused(
    location: bytes, fetcher: Fetcher, tmp_path: Path
) -> None:
    async with moved(location) as (url, targets):
        with pytest.raises(SourceUnreachable):
            await fetched(fetcher, url, tmp_path)
    assert len(targets) == 1


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("/a%2Fb c.jpg?q=%2F", b"/a%2Fb%20c.jpg?q=%2F"),
        ("/ü%2F.jpg?q=ü%2F", b"/%C3%BC%2F.jpg?q=%C3%BC%2F"),
        ("/a//b.jpg/?q=%2F&r=a+b", b"/a//b.jpg/?q=%2F&r=a+b"),
        ("//a.jpg", b"//a.jpg"),
        ("/100%?q=%2F%", b"/100%25?q=%2F%25"),
    ],
)
async def test_the_bytes_of_a_url_are_kept(url: str, target: bytes, fetcher: Fetcher, tmp_path: Path) -> None:
    async with moved(b"/") as (start, targets):
        await fetched(fetcher, start.replace("/a/b/c.jpg?d=e", url), tmp_path)
    assert targets[0] == target


def with_cookies(*cookies: str, location: str) -> web.Response:
    response = web.Response(status=302, headers={"Location": location})
    for cookie in cookies:
        response.headers.add("Set-Cookie", cookie)
    return response


async def test_cookies_are_sent_back_within_one_fetch(fetcher: Fetcher, tmp_path: Path) -> None:
    seen: list[str | None] = []

    async def gate(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers.get("Cookie"))
        if "session=a%2Fb=/+c" in (seen[-1] or ""):
            return web.Response(body=b"x")
        return with_cookies("session=a%2Fb=/+c; Path=/; HttpOnly", "gone=1; Max-Age=0", location="/p/q")

    async with serving({"/p/q": gate}) as url:
        for _ in range(2):
            assert await fetched(fetcher, f"{url}/p/q", tmp_path, Cookie="own=1") == b"x"
        assert await fetched(fetcher, f"{url}/p/q", tmp_path) == b"x"
    both = "session=a%2Fb=/+c; own=1"
    assert seen == ["own=1", both, "own=1", both, None, "session=a%2Fb=/+c"]


async def test_cookies_go_back_to_their_own_server_only(fetcher: Fetcher, tmp_path: Path) -> None:
    seen: dict[str, str | None] = {}

    async def show(request: web.Request) -> web.StreamResponse:
        seen[request.path] = request.headers.get("Cookie")
        step = {"/start": f"{other}/away", "/away": f"{here}/scoped/on", "/scoped/on": "/end"}
        if request.path not in step:
            return web.Response(body=b"x")
        cookies = ("all=1; Domain=127.0.0.1; Path=/", "safe=1; Secure; Path=/", "scoped=1; Path=/scoped")
        return with_cookies(*(cookies if request.path == "/start" else ()), location=step[request.path])

    handlers = dict.fromkeys(("/start", "/away", "/scoped/on", "/end"), show)
    async with serving(handlers) as here, serving(handlers) as other:
        assert await fetched(fetcher, f"{here}/start", tmp_path) == b"x"
    assert seen == {"/start": None, "/away": None, "/scoped/on": "all=1; scoped=1", "/end": "all=1"}


@pytest.mark.parametrize(
    ("status", "content_range", "is_whole"),
    [
        (203, None, True),
        (206, "bytes 0-6/7", True),
        (206, "BYTES 0-6/7", True),
        (206, "bytes 0-6/8", False),
        (206, "bytes 1-6/7", False),
        (206, "bytes 0-6/*", False),
        (206, "bytes 0-6", False),
        (206, None, False),
        (201, None, False),
        (226, None, False),
    ],
)
async def test_other_answers_with_the_whole_source(
    status: int, content_range: str | None, is_whole: bool, fetcher: Fetcher, tmp_path: Path
) -> None:
    headers = {"Content-Range": content_range} if content_range else {}

    async def answer(request: web.Request) -> web.Response:
        response = web.Response(body=b"picture", status=status, headers=headers)
        if request.path == "/chunked":
            response.enable_chunked_encoding()
        return response

    async with serving({"/p": answer, "/chunked": answer}) as url:
        for path in ("/p", "/chunked"):
            if is_whole:
                assert await fetched(fetcher, url + path, tmp_path) == b"picture"
            else:
                with pytest.raises(SourceUnreachable, match=f"answered with status {status}"):
                    await fetched(fetcher, url + path, tmp_path)
