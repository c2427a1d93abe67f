"""What is no HTTP at all gets an answer like any other error."""

from __future__ import annotations

import json
import socket
import ssl

import pytest

from tests.http.calls import RATE_HEADERS
from tests.http.running import Service


def ask(service: Service, raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer to raw bytes over TLS."""
    with (
        socket.create_connection(("localhost", service.port), timeout=20) as plain,
        service.tls.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(raw)
        received = b""
        try:
            while chunk := connection.recv(65536):
                received += chunk
        except ssl.SSLError:
            pass
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return int(first.split()[1]), headers, body


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n",
        b"GET /1.0/account HTTP/9.9\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nBad Header\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        b"POST /1.0/fetch HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /1.0/fetch HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
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


def test_silence_and_noise_do_not_stop_the_service(service: Service) -> None:
    for noise in (b"", b"\x16\x03\x01", b"\x00" * 100, b"SSH-2.0-x\r\n"):
        with socket.create_connection(("localhost", service.port), timeout=5) as connection:
            connection.sendall(noise)
    status, _, _ = ask(service, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert status == 200


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
