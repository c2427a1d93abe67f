"""Bodies however they come: empty, in pieces of any size, in other multiparts than forms, wrong half way."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence

import aiohttp
import pytest

from tests.http.calls import assert_failure, call, upload
from tests.http.service_process import Service
from tests.support import encoded

PHOTO = encoded.jpeg().data
FORM = {"Content-Type": "multipart/form-data; boundary=frontier"}
BINARY = b'Content-Disposition: form-data; name="data"\r\n\r\n{"response": {"mode": "binary"}}'
FILE = b'Content-Disposition: form-data; name="file"; filename="photo.jpg"\r\n\r\n' + PHOTO
OTHER = b'Content-Disposition: form-data; name="other"\r\n\r\nx'


def form(*parts: bytes, end: bytes = b"--frontier--\r\n") -> bytes:
    return b"".join(b"--frontier\r\n" + part + b"\r\n" for part in parts) + end


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "kind", "slug"),
    [
        ("/1.0/fetch", "application/json", "invalid_json"),
        ("/1.0/keyfiles", "application/json", "invalid_json"),
        ("/1.0/upload", FORM["Content-Type"], "invalid_multipart"),
    ],
)
async def test_empty_bodies_are_refused_however_often_they_come(
    path: str, kind: str, slug: str, client: aiohttp.ClientSession
) -> None:
    for _ in range(3):
        async with asyncio.timeout(60):
            reply = await call(client, "POST", path, data=b"", headers={"Content-Type": kind})
        assert_failure(reply, 400, slug)


@pytest.mark.asyncio
@pytest.mark.parametrize("more", [0, 1])
async def test_the_limit_is_the_most_bytes_of_json(more: int, client: aiohttp.ClientSession) -> None:
    """Of 1 MB, in a part of a form and as the body."""
    document = b"{}".ljust(1_000_000 + more)
    part = b'Content-Disposition: form-data; name="data"\r\n\r\n' + document
    reply = await call(client, "POST", "/1.0/upload", data=form(part, FILE), headers=FORM)
    told = await call(
        client, "POST", "/1.0/fetch", data=document, headers={"Content-Type": "application/json"}
    )
    if more:
        assert_failure(reply, 413, "body_too_large")
        assert_failure(told, 413, "body_too_large")
        assert {answer.headers["Connection"] for answer in (reply, told)} == {"close"}
    else:
        assert reply.status == 200, reply.json
        assert_failure(told, 422, "invalid_parameter")


@pytest.mark.asyncio
@pytest.mark.parametrize("other", [OTHER, b"Content-Type: text/plain\r\n\r\nx", b"\r\nx"])
async def test_parts_with_other_names_or_none_are_ignored(
    other: bytes, client: aiohttp.ClientSession
) -> None:
    """Frameworks add parts of their own, such as `_charset_` or a token against forged requests."""
    reply = await call(client, "POST", "/1.0/upload", data=form(other, FILE, other), headers=FORM)
    assert reply.status == 200, reply.json


@pytest.mark.asyncio
async def test_json_of_unknown_length_has_the_same_limit(client: aiohttp.ClientSession) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(1001):
            yield b" " * 1000

    kind = {"Content-Type": "application/json"}
    reply = await call(client, "POST", "/1.0/fetch", data=chunks(), headers=kind)
    assert_failure(reply, 413, "body_too_large", "1,000,000 bytes")


@pytest.mark.asyncio
async def test_a_text_that_was_cut_within_a_character_is_told(client: aiohttp.ClientSession) -> None:
    """JavaScript cuts texts between the halves of an emoji, and writes the half as an escape."""
    headers, document = {"Content-Type": "application/json"}, rb'{"url": "https://a.example/\ud83d.jpg"}'
    reply = await call(client, "POST", "/1.0/fetch", data=document, headers=headers)
    assert_failure(reply, 400, "invalid_json", "\\ud83d is half of a character")


@pytest.mark.asyncio
@pytest.mark.parametrize("binary", [False, True])
async def test_the_answer_names_parts_that_were_ignored(binary: bool, client: aiohttp.ClientSession) -> None:
    width = b'Content-Disposition: form-data; name="resize[width]"\r\n\r\n100'
    headers = {**FORM, **({"X-Svc-Binary": "1"} if binary else {})}
    reply = await call(client, "POST", "/1.0/upload", data=form(width, FILE), headers=headers)
    told = reply.metadata if binary else reply.json
    assert told["notes"] == [
        "Form field 'resize[width]' is unknown: parameters belong into the JSON of the field 'data'."
    ]


@pytest.mark.asyncio
async def test_a_document_that_is_null_is_as_if_it_was_left_out(client: aiohttp.ClientSession) -> None:
    null = b'Content-Disposition: form-data; name="data"\r\n\r\nnull'
    reply = await call(client, "POST", "/1.0/upload", data=form(null, FILE), headers=FORM)
    assert reply.status == 200, reply.json


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("label", "name"),
    [
        (b'filename="caf\xe9.png"', "caf\N{REPLACEMENT CHARACTER}.png"),
        (b'filename="\xff\xfe"', "\N{REPLACEMENT CHARACTER}" * 2),
        (b"filename*=utf-8''%ff%fe.png", "\N{REPLACEMENT CHARACTER}" * 2 + ".png"),
        (b'filename="' + 5000 * b"a" + b'"', 255 * "a"),
        (b"filename*=nonsense''%ff.png", ""),
        (b'filename=".."', ""),
        (b"filename*=iso-8859-1''caf%e9.png", "caf\N{LATIN SMALL LETTER E WITH ACUTE}.png"),
    ],
)
async def test_names_of_files_are_labels_whatever_their_bytes(
    label: bytes, name: str, client: aiohttp.ClientSession
) -> None:
    file = b'Content-Disposition: form-data; name="file"; ' + label + b"\r\n\r\n" + PHOTO
    strange = b'Content-Disposition: form-data; name="\xff"\r\n\r\n\xff'
    reply = await call(client, "POST", "/1.0/upload", data=form(strange, file), headers=FORM)
    assert reply.status == 200, reply.json
    assert reply.json["input"]["name"] == name


async def chunked(service: Service, pieces: Sequence[bytes]) -> int:
    """The status of an upload in chunks, whose ends come a little after their bytes."""
    reading, writing = await asyncio.open_connection("localhost", service.port, ssl=service.tls)
    head = (
        f"POST /1.0/upload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.key}\r\n"
        f"Content-Type: {FORM['Content-Type']}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    writing.write(head.encode())
    for piece in pieces:
        writing.write(b"%x\r\n" % len(piece) + piece)
        await writing.drain()
        await asyncio.sleep(0.05)
        writing.write(b"\r\n")
    writing.write(b"0\r\n\r\n")
    async with asyncio.timeout(60):
        status = int((await reading.readline()).split()[1])
    writing.close()
    return status


@pytest.mark.asyncio
@pytest.mark.parametrize("cuts", [(1,), (20, 21, 60), (len(PHOTO) // 2,)])
async def test_chunks_may_end_anywhere(cuts: tuple[int, ...], service: Service) -> None:
    body = form(FILE)
    pieces = [body[start:end] for start, end in zip((0, *cuts), (*cuts, len(body)), strict=True)]
    assert await chunked(service, pieces) == 200


@pytest.mark.asyncio
@pytest.mark.parametrize("disposition", [b"attachment", b"inline", b"form-data"])
async def test_parts_of_any_disposition_are_told_by_their_names(
    disposition: bytes, client: aiohttp.ClientSession
) -> None:
    body = form(FILE.replace(b"form-data", disposition), BINARY.replace(b"form-data", disposition))
    for kind in ("mixed", "form-data"):
        headers = {"Content-Type": f"multipart/{kind}; boundary=frontier"}
        reply = await call(client, "POST", "/1.0/upload", data=body, headers=headers)
        assert (reply.status, reply.headers["Content-Type"]) == (200, "image/jpeg")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"Content-Transfer-Encoding: 7Bit", None),
        (b"Content-Transfer-Encoding:", None),
        (b"Content-Transfer-Encoding: base64", "encoded as 'base64'; send it as it is"),
        (b"Content-Encoding: GZIP", "encoded as 'gzip'; send it as it is"),
        (b"Content-Type: multipart/mixed; boundary=a", "it has a form within the form"),
    ],
)
async def test_parts_come_as_they_are(
    header: bytes, reason: str | None, client: aiohttp.ClientSession
) -> None:
    body = form(FILE.replace(b"\r\n\r\n", b"\r\n" + header + b"\r\n\r\n", 1))
    reply = await call(client, "POST", "/1.0/upload", data=body, headers=FORM)
    if reason is None:
        assert reply.status == 200
    else:
        assert_failure(reply, 400, "invalid_multipart", reason)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "status", "slug"),
    [
        (form(BINARY), 422, "invalid_parameter"),
        (form(BINARY, FILE, FILE), 400, "invalid_multipart"),
        (form(BINARY, OTHER), 422, "invalid_parameter"),
        (form(BINARY, FILE, end=b""), 400, "invalid_multipart"),
    ],
)
async def test_forms_that_go_wrong_behind_the_wish_for_a_picture_are_answered_as_it_says(
    body: bytes, status: int, slug: str, client: aiohttp.ClientSession
) -> None:
    reply = await call(client, "POST", "/1.0/upload", data=body, headers=FORM)
    assert (reply.status, reply.body) == (status, b"")
    assert reply.metadata["error"] == slug


@pytest.mark.asyncio
async def test_wrong_parameters_are_listed_in_a_header_as_far_as_there_is_room(
    client: aiohttp.ClientSession,
) -> None:
    for number in (3, 60, 400):
        unknown = {f"unknown_{i}_\N{SNOWMAN}": i for i in range(number)}
        reply = await upload(client, PHOTO, {**unknown, "response": {"mode": "binary"}})
        assert reply.status == 422
        told = reply.metadata["errors"]
        assert len(reply.headers["X-Svc-Metadata"]) <= 7_000
        assert told[0]["path"].startswith("unknown_")
        assert len(told) == number if number == 3 else 10 < len(told) < number


def ended(connection: socket.socket, request: bytes) -> bytes:
    """All that comes until the service ends the connection."""
    connection.settimeout(60)
    connection.sendall(request)
    answer = b""
    while piece := connection.recv(65536):
        answer += piece
    return answer


def test_connections_end_where_that_is_announced(service: Service) -> None:
    with socket.create_connection(("localhost", service.port)) as plain:
        answer = ended(plain, b"GET /1.0/account HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"\r\nConnection: close\r\n" in answer
    request = (
        f"POST /1.0/fetch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.key}\r\n"
        "Content-Type: application/json\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}"
    )
    with (
        socket.create_connection(("localhost", service.port)) as plain,
        service.tls.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        answer = ended(connection, request.encode())
    assert answer.startswith(b"HTTP/1.1 415")
    assert b"\r\nConnection: close\r\n" in answer


@pytest.mark.asyncio
async def test_keyfiles_of_another_type_are_told_both_that_there_are(client: aiohttp.ClientSession) -> None:
    reply = await call(client, "POST", "/1.0/keyfiles", data=b"{}", headers={"Content-Type": "text/plain"})
    assert_failure(reply, 415, "unsupported_media_type", "application/json or multipart/form-data")
