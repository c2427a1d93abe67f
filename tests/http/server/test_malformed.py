"""What is no HTTP at all gets an answer like any other error."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from pathlib import Path

import pytest
from aiohttp import web

from imgsvc_http.runtime.private_names import ClientHandler
from tests.http.calls import RATE_HEADERS
from tests.http.service_process import Service, running


def ask(service: Service, raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer to raw bytes over TLS."""
    with (
        socket.create_connection(("localhost", service.port), timeout=60) as plain,
        service.tls.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(raw)
        with http.client.HTTPResponse(connection) as answer:
            answer.begin()
            return answer.status, dict(answer.headers), answer.read()


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n",
        b"GET /1.0/account HTTP/9.9\r\n\r\n",
        b"GET /1.0/account\r\nHost: x\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nBad Header\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        b"POST /1.0/fetch HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /1.0/fetch HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /1.0/fetch HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding:\r\n\r\n{}",
        b"POST /1.0/fetch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \r\n\r\n",
        b"POST /1.0/fetch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: br\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_the_answer_is_json_with_all_headers(raw: bytes, service: Service) -> None:
    status, headers, body = ask(service, raw)
    document = json.loads(body)
    assert (status, document["code"], document["success"]) == (400, 400, False)
    assert document["error"] == "invalid_http"
    assert headers["Connection"] == "close"
    assert headers["X-Request-Id"] == document["id"]
    for name in RATE_HEADERS:
        assert int(headers[name]) >= 0
    assert "Python" not in headers["Server"]


def test_a_body_that_breaks_while_it_is_read_is_answered_at_once(service: Service) -> None:
    head = (
        f"POST /1.0/fetch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.key}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    )
    with (
        socket.create_connection(("localhost", service.port), timeout=30) as plain,
        service.tls.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 100")  # the body is waited for
        connection.sendall(b"2\r\n{}\r\n")
        connection.sendall(b"no number\r\n")
        with http.client.HTTPResponse(connection) as answer:
            answer.begin()
            assert (answer.status, json.load(answer)["error"]) == (400, "broken_body")
            assert answer.getheader("Connection") == "close"
        assert connection.recv(1000) == b""  # no second answer


def test_noise_after_a_whole_body_does_not_break_it() -> None:
    async def run() -> bytes:
        arrived, noise = asyncio.Event(), asyncio.Event()

        class Noticing(ClientHandler):
            def data_received(self, data: bytes) -> None:
                super().data_received(data)
                if data.startswith(b"noise"):
                    noise.set()

        async def handle(request: web.BaseRequest) -> web.Response:
            arrived.set()
            await noise.wait()
            return web.Response(body=await request.read())

        loop, server = asyncio.get_running_loop(), web.Server(handle)
        listening = await loop.create_server(lambda: Noticing(server, loop=loop), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
        await arrived.wait()
        writer.write(b"noise\r\n\r\n")
        answer = await reader.readuntil(b"body")
        writer.close()
        listening.close()
        await server.shutdown()
        return answer

    assert asyncio.run(run()).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("first", [b"OPTIONS *", b"CONNECT example.org:443"])
def test_a_target_that_is_no_path_is_no_endpoint(first: bytes, service: Service) -> None:
    """It counts as any other request."""
    left = []
    for _ in range(2):
        status, headers, body = ask(service, first + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        document = json.loads(body)
        assert (status, document["code"], document["error"]) == (404, 404, "not_found")
        assert headers["Connection"] == "close"
        assert headers["X-Request-Id"] == document["id"]
        assert headers["Server"] == "imgsvc"
        left.append(int(headers["X-RateLimit-Remaining"]))
    assert left[1] < left[0]


def test_what_is_too_long_is_said_to_be(service: Service) -> None:
    for raw in (b"GET /" + b"a" * 14_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"a" * 14_000):
        _, _, body = ask(service, raw + b"\r\n\r\n")
        assert "must be shorter" in json.loads(body)["message"]


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense",
        b"FOO /1.0/fetch HTTP/1.1",
        b"GET / HTTP/1.1\r\nBad Header",
        b"GET /1.0/account\r\nHost: x",
        b"GET /healthz\r\nHost: x",
    ],
)
def test_the_answer_is_http_1_1(raw: bytes, service: Service) -> None:
    with (
        socket.create_connection(("localhost", service.port), timeout=60) as plain,
        service.tls.wrap_socket(plain, server_hostname="localhost") as connection,
        connection.makefile("rb") as answer,
    ):
        connection.sendall(raw + b"\r\n\r\n")
        assert answer.readline().startswith(b"HTTP/1.1 4")


def test_silence_and_noise_do_not_stop_the_service(service: Service) -> None:
    for noise in (b"", b"\x16\x03\x01", b"\x00" * 100, b"SSH-2.0-x\r\n"):
        with socket.create_connection(("localhost", service.port), timeout=60) as connection:
            connection.sendall(noise)
    status, _, _ = ask(service, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert status == 200


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize(
    ("first", "status", "allowed"),
    [
        (b"FOO /1.0/fetch", 405, "POST"),
        (b"FOO /1.0/fetch?a=b", 405, "POST"),
        (b"get /1.0/account", 405, "GET, HEAD"),
        (b"FOO /1.0/watermarks/5", 405, "DELETE, GET, HEAD"),
        (b"FOO /1.0/openapi.json", 405, "GET, HEAD"),
        (b"FOO /nothing", 404, None),
        (b"FOO /1.0/watermarks/5/6", 404, None),
    ],
)
def test_unknown_methods_are_not_allowed(
    first: bytes, status: int, allowed: str | None, version: bytes, service: Service
) -> None:
    told, headers, body = ask(service, first + b" HTTP/" + version + b"\r\nHost: x\r\n\r\n")
    document = json.loads(body)
    slug = "method_not_allowed" if allowed else "not_found"
    assert (told, document["error"], headers.get("Allow")) == (status, slug, allowed)
    for name in RATE_HEADERS:
        assert int(headers[name]) >= 0


@pytest.mark.parametrize(
    ("path", "kind"),
    [(b"/1.0/fetch", b"application/json"), (b"/1.0/upload", b"multipart/form-data; boundary=x")],
)
def test_mistakes_of_clients_are_no_errors_of_the_service(path: bytes, kind: bytes, tmp_path: Path) -> None:
    """A compressed body is refused, and leaves no word in the log."""
    with running(tmp_path / "state", {"monitoring.access_log": "off"}) as service:
        head = (
            b"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\n"
            b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
        )
        for body in (b"xxxx", b"xxxx" * 50_000, b"\x1f\x8b\0\0"):
            raw = head % (path, service.key.encode(), kind, len(body)) + body
            status, _, answer = ask(service, raw)
            assert (status, json.loads(answer)["error"]) == (415, "unsupported_encoding")
    assert (tmp_path / "state.log").read_text() == ""


@pytest.mark.parametrize("expect", [b"other", b"100-continue"])
@pytest.mark.parametrize(
    ("first", "status", "slug"),
    [
        (b"GET /nothing", 404, "not_found"),
        (b"POST /1.0/nothing", 404, "not_found"),
        (b"PUT /1.0/fetch", 405, "method_not_allowed"),
        (b"GET /healthz", 200, None),
    ],
)
def test_expectations_change_no_answer(
    first: bytes, status: int, slug: str | None, expect: bytes, service: Service
) -> None:
    key = b"Authorization: Bearer " + service.key.encode()
    rest = b"Connection: close\r\nContent-Length: 2\r\nExpect: " + expect
    told, headers, body = ask(
        service, first + b" HTTP/1.1\r\nHost: x\r\n" + key + b"\r\n" + rest + b"\r\n\r\n"
    )
    document = json.loads(body)
    assert (told, document["code"], document.get("error")) == (status, status, slug)
    assert headers.get("Allow") == ("POST" if status == 405 else None)
    for name in RATE_HEADERS:
        assert int(headers[name]) >= 0
