"""Fetching brings a whole picture or one clear error, and never leaves anything behind."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import ssl
import struct
import subprocess
import sys
import threading
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from imgsvc_core.errors import EmptySource, ImgsvcError, SourceTooLarge, SourceUnreachable, SpecError
from imgsvc_http.fetching.fetcher import Fetched, Fetcher, check_headers
from imgsvc_http.server.certificate import certificate_files, tls_context
from imgsvc_http.settings import FetchSettings, ServerSettings, SocialSettings
from imgsvc_http.storage.source_files import SourceFile
from tests.http.sources import Handler, serving

pytestmark = pytest.mark.asyncio

PICTURE = bytes(range(256)) * 400


async def get(
    fetcher: Fetcher, url: str, into: Path, *, headers: dict[str, str] | None = None, limit: int = 10**6
) -> Fetched:
    return await fetcher.fetch(url, headers or {}, lambda _: SourceFile(into / "source"), limit)


def answering(body: bytes = PICTURE, status: int = 200, **headers: str) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=body, status=status, headers=named)

    return answer


async def test_a_picture_lies_in_the_file(fetcher: Fetcher, tmp_path: Path) -> None:
    async with serving({"/a/{name}": answering(Content_Type="image/jpeg")}) as url:
        fetched = await get(fetcher, f"{url}/a/photo%20one.jpg?size=1#part", tmp_path)
    assert fetched.path.read_bytes() == PICTURE
    assert fetched.name == "photo one.jpg"


async def test_the_answer_may_name_the_file(fetcher: Fetcher, tmp_path: Path) -> None:
    handler = answering(Content_Disposition='attachment; filename="..\\\\x/evil name.png"')
    async with serving({"/p": handler}) as url:
        fetched = await get(fetcher, f"{url}/p", tmp_path)
    assert "/" not in fetched.name
    assert fetched.name.endswith("name.png")


@pytest.mark.parametrize("name", ["..", ".", "...", " "])
async def test_names_that_are_no_names_are_left_out(name: str, fetcher: Fetcher, tmp_path: Path) -> None:
    handler = answering(Content_Disposition=f'attachment; filename="{name}"')
    async with serving({"/p": handler}) as url:
        assert (await get(fetcher, f"{url}/p", tmp_path)).name == ""


async def test_connections_that_are_reset_have_ended(fetcher: Fetcher, tmp_path: Path) -> None:
    async def reset(reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        await reading.readuntil(b"\r\n\r\n")
        at_once = struct.pack("ii", 1, 0)
        writing.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        writing.close()

    async with await asyncio.start_server(reset, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(SourceUnreachable, match="the connection ended before the answer was complete"):
            await get(fetcher, f"http://127.0.0.1:{port}/p", tmp_path)


async def test_names_keep_their_spaces_and_new_letters(fetcher: Fetcher, tmp_path: Path) -> None:
    """macOS puts a narrow space into names of screenshots, and Japanese names have a wide one."""
    name = "Screenshot at 1.36\u202fPM\u3000写真\U0001fa77.png"
    async with serving({f"/{name}": answering()}) as url:
        assert (await get(fetcher, f"{url}/{name}", tmp_path)).name == name


async def test_names_do_not_turn_their_direction(fetcher: Fetcher, tmp_path: Path) -> None:
    """A name that seems to end with txt.jpg may end with gpj.txt."""
    async with serving({"/photo\u202egpj\u2066.txt": answering()}) as url:
        assert (await get(fetcher, f"{url}/photo\u202egpj\u2066.txt", tmp_path)).name == "photogpj.txt"


async def test_the_service_says_who_it_is(fetcher: Fetcher, tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(dict(request.headers))
        return web.Response(body=b"x")

    async with serving({"/p": answer}) as url:
        await get(fetcher, f"{url}/p", tmp_path, headers={"X-Token": "7", "Referer": "https://example.org"})
        for name, given in (("User-Agent", "Mozilla/5.0"), ("user-agent", "")):
            await get(fetcher, f"{url}/p", tmp_path, headers={name: given})
    assert [headers["User-Agent"] for headers in seen] == [
        "imgsvc/1.0",
        "Mozilla/5.0 imgsvc/1.0",
        "imgsvc/1.0",
    ]
    assert (seen[0]["X-Token"], seen[0]["Referer"]) == ("7", "https://example.org")


async def test_credentials_in_the_url_become_basic_authentication(fetcher: Fetcher, tmp_path: Path) -> None:
    seen: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return web.Response(body=b"x")

    async with serving({"/p": answer}) as url:
        await get(fetcher, url.replace("://", "://us%40er:pa%3Ass@") + "/p", tmp_path)
    assert seen == ["Basic dXNAZXI6cGE6c3M="]


async def test_secrets_of_a_url_are_told_nobody(
    fetcher: Fetcher, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving({"/p": answering(status=404)}) as url:
        secret = url.replace("://", "://canary:canary@") + "/p?signature=canary"
        for address in (secret, secret.replace("127.0.0.1", "10.0.0.1"), "ftp://canary:canary@x/?canary"):
            with pytest.raises(ImgsvcError) as caught:
                await get(fetcher, address, tmp_path)
            assert "canary" not in str(caught.value)
    assert "canary" not in caplog.text


@pytest.mark.parametrize(
    "broken", [b"no HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000 + b"\r\n\r\n"]
)
async def test_errors_carry_no_request_with_its_secrets(
    broken: bytes, fetcher: Fetcher, tmp_path: Path
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(broken)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://canary:canary@127.0.0.1:{server.sockets[0].getsockname()[1]}/p?signature=canary"
        with pytest.raises(SourceUnreachable) as caught:
            await get(fetcher, url, tmp_path, headers={"X-Token": "canary"})
    error: BaseException | None = caught.value
    while error is not None:
        told = f"{error!r} {error}"
        assert "canary" not in told
        assert "Y2FuYXJ5OmNhbmFyeQ" not in told
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


async def test_redirects_are_followed_five_times(fetcher: Fetcher, tmp_path: Path) -> None:
    async def hop(request: web.Request) -> web.Response:
        left = int(request.match_info["left"])
        if left:
            raise web.HTTPFound(f"../hop/{left - 1}")
        return web.Response(body=PICTURE)

    async with serving({"/hop/{left}": hop}) as url:
        assert (await get(fetcher, f"{url}/hop/5", tmp_path)).path.read_bytes() == PICTURE
        with pytest.raises(SourceUnreachable, match="redirects more than 5 times"):
            await get(fetcher, f"{url}/hop/6", tmp_path)


@pytest.mark.parametrize("target", ["http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/"])
async def test_redirects_do_not_lead_inside(target: str, fetcher: Fetcher, tmp_path: Path) -> None:
    async with serving({"/p": answering(status=302, Location=target)}) as url:
        with pytest.raises(SourceUnreachable, match="not a public address"):
            await get(fetcher, f"{url}/p", tmp_path)


BROKEN_PUNYCODE = ["xn--", "xn--a", "a.xn--zckzah-", "xn--a-ecp.ru", "\u2603.xn--", "xn--ls8h="]
NO_NAMES = [
    "a%00b", "a%20b", "ex%61mple.invalid", "a%", "a!b", "a b", "a<b", "a..b", ".a", "a..", "a" * 64,
    ".".join(["a" * 63] * 4),
]  # fmt: skip
NO_ADDRESSES = ["[fe80::1%25e]", "[fe80::1%e]", "[:::]", "[::1", "[]", "[::1]a", "[::1]@"]


@pytest.mark.parametrize("host", BROKEN_PUNYCODE + NO_NAMES + NO_ADDRESSES)
async def test_hosts_that_can_have_no_address_are_wrong(host: str, fetcher: Fetcher, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="must be a URL"):
        await get(fetcher, f"http://{host}/a.jpg", tmp_path)
    async with serving({"/p": answering(status=302, Location=f"http://{host}/")}) as url:
        with pytest.raises(SourceUnreachable, match="no http or https URL"):
            await get(fetcher, f"{url}/p", tmp_path)


@pytest.mark.parametrize("host", ["[v1.a]", "0x", "a_b.invalid", "-a.invalid.", ".".join(["a" * 60] * 4)])
async def test_odd_hosts_are_unreachable(host: str, fetcher: Fetcher, tmp_path: Path) -> None:
    with pytest.raises(SourceUnreachable):
        await get(fetcher, f"http://{host}/a.jpg", tmp_path)


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://example.org/x", ""])
async def test_redirects_stay_on_the_web(target: str, fetcher: Fetcher, tmp_path: Path) -> None:
    async with serving({"/p": answering(status=302, Location=target)}) as url:
        with pytest.raises(SourceUnreachable, match="no http or https URL"):
            await get(fetcher, f"{url}/p", tmp_path)


async def test_secrets_do_not_follow_to_another_origin(fetcher: Fetcher, tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(dict(request.headers))
        return web.Response(body=b"x")

    async with serving({"/p": answer}) as other:  # noqa: SIM117
        async with serving({"/r": answering(status=307, Location=f"{other}/p")}) as url:
            address = url.replace("://", "://user:secret@") + "/r"
            await get(fetcher, address, tmp_path, headers={"X-Token": "secret", "Cookie": "secret"})
    assert "secret" not in str(seen)
    assert "Authorization" not in seen[0]


@pytest.mark.parametrize("absolute", [True, False])
async def test_secrets_follow_within_an_origin(absolute: bool, fetcher: Fetcher, tmp_path: Path) -> None:
    seen: list[tuple[str | None, str | None]] = []

    async def move(request: web.Request) -> web.Response:
        raise web.HTTPFound(f"http://{request.host}/p" if absolute else "/p")

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.headers.get("Authorization"), request.headers.get("X-Token")))
        return web.Response(body=b"x")

    async with serving({"/r": move, "/p": answer}) as url:
        await get(fetcher, url.replace("://", "://u:p@") + "/r", tmp_path, headers={"X-Token": "7"})
    assert seen == [("Basic dTpw", "7")]


async def test_without_an_allow_list_loopback_is_refused(tmp_path: Path) -> None:
    fetcher = Fetcher(FetchSettings(), SocialSettings())
    async with serving({"/p": answering()}) as url:
        for host in ("127.0.0.1", "localhost", "0x7f.1", "2130706433"):
            with pytest.raises(SourceUnreachable, match=r"not a public address|URL is not valid"):
                await get(fetcher, f"{url.replace('127.0.0.1', host)}/p", tmp_path)
    await fetcher.close()


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://example.org/a", "nothing", "http://", "//example.org", "http://[::1", ""],
)
async def test_other_urls_are_wrong_parameters(url: str, fetcher: Fetcher, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="Fetch 'url' parameter must be") as caught:
        await get(fetcher, url, tmp_path)
    assert caught.value.problems[0].path == "url"


@pytest.mark.parametrize(
    ("name", "value"),
    [("Host", "x"), ("content-length", "1"), ("Transfer-Encoding", "chunked"), ("X-A", "a\r\nB: c"),
     ("bad name", "x"), ("", "x"), ("X-A", "ü😀")],
)  # fmt: skip
async def test_headers_that_cannot_be_sent_are_wrong(
    name: str, value: str, fetcher: Fetcher, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match="Fetch 'headers' parameter must"):
        await get(fetcher, "http://127.0.0.1:9/", tmp_path, headers={name: value})


async def test_a_source_that_announces_too_much_is_refused_at_once(fetcher: Fetcher, tmp_path: Path) -> None:
    released = asyncio.Event()

    async def announce(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": "100001"})
        await answer.prepare(request)
        await released.wait()
        return answer

    async with serving({"/p": announce}) as url:
        with pytest.raises(SourceTooLarge, match="more than 100,000 bytes"):
            await get(fetcher, f"{url}/p", tmp_path, limit=100_000)
        released.set()


async def test_too_many_bytes_are_refused_while_they_come(fetcher: Fetcher, tmp_path: Path) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65536)
            sent += 65536

    handlers = {"/endless": endless, "/long": answering(b"x" * 200_000)}
    async with serving(handlers) as url:
        for path in handlers:
            with pytest.raises(SourceTooLarge, match="100,000 bytes"):
                await get(fetcher, url + path, tmp_path, limit=100_000)
    assert sent < 30_000_000


@pytest.mark.parametrize("announced", [True, False])
async def test_the_limit_is_the_most_bytes_that_a_source_may_have(
    announced: bool, fetcher: Fetcher, tmp_path: Path
) -> None:
    async def picture(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if announced:
            response.content_length = len(PICTURE)
        await response.prepare(request)
        await response.write(PICTURE)
        return response

    async with serving({"/picture": picture}) as url:
        fetched = await get(fetcher, f"{url}/picture", tmp_path, limit=len(PICTURE))
        assert fetched.path.read_bytes() == PICTURE
        with pytest.raises(SourceTooLarge):
            await get(fetcher, f"{url}/picture", tmp_path, limit=len(PICTURE) - 1)


async def test_what_is_wrong_on_our_side_is_not_the_source(fetcher: Fetcher, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with serving({"/p": answering()}) as url:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))  # as on a full disk
        try:
            with pytest.raises(OSError, match="File too large"):
                await get(fetcher, f"{url}/p", tmp_path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_slow_and_silent_servers_have_an_end(tmp_path: Path) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.1)

    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(600)
        raise AssertionError

    hasty = Fetcher(FetchSettings(private_allowed=("127.0.0.1",), total_seconds=2), SocialSettings())
    async with serving({"/drip": drip, "/silent": silent}) as url:
        for path in ("/drip", "/silent"):
            with pytest.raises(SourceUnreachable, match="within 2 seconds"):
                await get(hasty, url + path, tmp_path)
    await hasty.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nx",
        b"no HTTP at all\r\n\r\n",
        b"",
    ],
)
async def test_servers_that_lie_are_unreachable(answer: bytes, fetcher: Fetcher, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def once() -> None:
            connection, _ = server.accept()
            connection.recv(65536)
            server.close()  # a second try finds nobody
            connection.sendall(answer)
            connection.close()

        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        thread = threading.Thread(target=once, daemon=True)
        thread.start()
        with pytest.raises(SourceUnreachable):
            await get(fetcher, url, tmp_path)
        thread.join(timeout=10)


@pytest.mark.parametrize("status", [204, 301, 304, 401, 403, 404, 500])
async def test_other_statuses_are_unreachable(status: int, fetcher: Fetcher, tmp_path: Path) -> None:
    async with serving({"/p": answering(b"", status=status)}) as url:
        with pytest.raises(SourceUnreachable):
            await get(fetcher, f"{url}/p", tmp_path)


async def test_nothing_is_an_empty_source(fetcher: Fetcher, tmp_path: Path) -> None:
    async with serving({"/p": answering(b"")}) as url:
        with pytest.raises(EmptySource):
            await get(fetcher, f"{url}/p", tmp_path)


async def test_hosts_that_are_not_there_are_unreachable(fetcher: Fetcher, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for url in (f"http://127.0.0.1:{port}/", "http://no-such-host.invalid/"):
        with pytest.raises(SourceUnreachable, match=r"Connection refused|host name is unknown"):
            await get(fetcher, url, tmp_path)


async def test_certificates_are_checked(fetcher: Fetcher, tmp_path: Path) -> None:
    async with serving(
        {"/p": answering()}, tls=tls_context(ServerSettings(state_folder=tmp_path / "state"))
    ) as url:
        with pytest.raises(SourceUnreachable, match="certificate is not valid"):
            await get(fetcher, f"{url}/p", tmp_path)


FETCH = """
import asyncio, sys
from pathlib import Path
from imgsvc_http.fetching.fetcher import Fetcher
from imgsvc_http.settings import FetchSettings, SocialSettings
from imgsvc_http.storage.source_files import SourceFile

async def main():
    fetcher = Fetcher(FetchSettings(private_allowed=("localhost",)), SocialSettings())
    await fetcher.fetch(sys.argv[1], {"X-Token": "secret"}, lambda _: SourceFile(Path(sys.argv[2])), 10**6)
    await fetcher.close()

asyncio.run(main())
"""


async def test_tls_works_and_secrets_do_not_leave_it(tmp_path: Path) -> None:
    seen: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("X-Token"))
        if request.secure:
            raise web.HTTPFound(f"{plain}/p")
        return web.Response(body=PICTURE)

    certificate, key = certificate_files(ServerSettings(state_folder=tmp_path / "state"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    async with serving({"/p": answer}) as there:
        plain = there.replace("127.0.0.1", "localhost")
        async with serving({"/p": answer}, tls=context) as url:
            # What is trusted is read when aiohttp is imported.
            command = [sys.executable, "-c", FETCH, url.replace("127.0.0.1", "localhost") + "/p"]
            await asyncio.to_thread(
                subprocess.run,
                [*command, str(tmp_path / "source")],
                check=True,
                env=os.environ | {"SSL_CERT_FILE": str(certificate)},
            )
    assert seen == ["secret", None]
    assert (tmp_path / "source").read_bytes() == PICTURE


async def test_headers_that_are_too_long_are_refused() -> None:
    check_headers({"X-A": "a" * 7_997})
    for headers in ({"X-A": "a" * 7_998}, {"X" * 8_000: "a"}):
        with pytest.raises(SpecError, match="must be names and values of HTTP headers"):
            check_headers(headers)


@pytest.mark.parametrize(
    "name",
    [
        "Accept-Encoding", "connection", "Content-Encoding", "Content-Length", "Expect", "Forwarded", "Host",
        "Keep-Alive", "Origin", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "TE",
        "Trailer", "Transfer-Encoding", "Upgrade", "Via",
    ],
)  # fmt: skip
async def test_headers_of_the_connection_are_refused(name: str) -> None:
    with pytest.raises(SpecError, match="must not hold headers of the connection itself"):
        check_headers({name: "a"})


async def test_a_server_that_cannot_be_connected_to_in_time(
    fetcher: Fetcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gateways tell it as 504."""

    async def time_out(*_: object, **options: object) -> None:
        raise aiohttp.ServerTimeoutError

    monkeypatch.setattr(aiohttp.ClientSession, "get", time_out)
    with pytest.raises(SourceUnreachable, match="cannot be connected to in time") as caught:
        await get(fetcher, "http://127.0.0.1/a", tmp_path)
    assert caught.value.failure == "timed_out"
