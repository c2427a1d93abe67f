"""Servers that fail, hang or are not there, for the providers whose clients are not S3's."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

import imgsvc_stores as stores
from imgsvc_core import errors
from tests.stores.conftest import Put
from tests.stores.servers.applications import serving
from tests.stores.servers.failing import (
    LIES,
    SPECS,
    TOKENS,
    Failing,
    copy,
    write,
)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_fails_for_the_moment_is_tried_again(server: Failing, put: Put, status: int) -> None:
    server.answer = lambda number: web.Response(status=201 if number == 3 else status)
    assert put(server.url).endswith("/cat.webp")
    assert len(server.bodies) == 3
    assert all(b"picture" in body for body in server.bodies)


@pytest.mark.parametrize("status", [301, 400, 403, 404, 409, 501])
def test_what_is_refused_is_not_tried_again(server: Failing, put: Put, status: int) -> None:
    server.answer = lambda _: web.Response(status=status, headers={"Location": "http://169.254.169.254/"})
    with pytest.raises(stores.StoreRefused) as caught:
        put(server.url)
    assert caught.value.code
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "text", ["", "no JSON, no XML", "[]", '"text"', '{"error": []}', '{"error": "no"}', "<a/>", "<Error/>"]
)
def test_refusals_without_sense_are_refusals(server: Failing, put: Put, text: str) -> None:
    server.answer = lambda _: web.Response(status=403, text=text)
    with pytest.raises(stores.StoreRefused):
        put(server.url)


@pytest.mark.parametrize("provider", ["microsoft"], indirect=True)
def test_a_refusal_in_several_packets_is_read_to_its_end(server: Failing, put: Put) -> None:
    async def packets() -> AsyncIterator[bytes]:
        yield b"<Error><Code>OddPicture</Code>"
        await asyncio.sleep(0.02)
        yield b"<Message>It is odd.</Message></Error>"

    server.answer = lambda _: web.Response(status=403, body=packets(), content_type="application/xml")
    with pytest.raises(stores.StoreRefused, match=r"It is odd\.") as caught:
        put(server.url)
    assert caught.value.code == "OddPicture"


@pytest.mark.parametrize("provider", ["microsoft", "alibaba", "aws"], indirect=True)
def test_few_bytes_that_stand_for_many_are_told_in_a_line(
    server: Failing, provider: str, keyfile: dict[str, str]
) -> None:
    kinds = "".join(f'<!ENTITY {name} "{10 * f"&{inner};"}">' for inner, name in itertools.pairwise("abcde"))
    kinds = f'<!DOCTYPE x [<!ENTITY a "word\n">{kinds}]>'
    text = f"<?xml version='1.0'?>{kinds}<Error><Code>&e;</Code><Message>&e;</Message></Error>"
    server.answer = lambda _: web.Response(status=403, text=text, content_type="application/xml")
    with pytest.raises(stores.StoreRefused) as caught:
        write(provider, server.url, keyfile, b"picture", 20)
    for told in (caught.value.message, caught.value.code):
        assert len(told) <= 1000
        assert "\n" not in told


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("provider", [*SPECS, "aws"], indirect=True)
def test_lies_are_failures_of_the_store(
    server: Failing, provider: str, keyfile: dict[str, str], lie: str
) -> None:
    server.answer = lambda _: copy(LIES[lie])
    with pytest.raises((stores.StoreRefused, stores.StoreUnavailable)):
        write(provider, server.url, keyfile)


@pytest.mark.parametrize("status", [200, 403])
@pytest.mark.parametrize("where", ["/token", ""], ids=["token", "object"])
@pytest.mark.parametrize("provider", [*SPECS, "aws"], indirect=True)
def test_of_endless_answers_little_is_read(
    server: Failing, provider: str, keyfile: dict[str, str], where: str, status: int
) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        await request.read()
        if (request.path.endswith(TOKENS) and not where) or request.method == "HEAD":
            return await server.handle(request)
        answer = web.StreamResponse(status=status, headers={"Content-Type": "application/xml"})
        await answer.prepare(request)
        while sent < 300_000_000:
            await answer.write(b"<" + bytes(99_999))
            sent += 100_000
        return answer

    with (
        serving(lambda app: app.router.add_route("*", "/{path:.*}", endless)) as server.url,
        contextlib.suppress(errors.TargetError),
    ):
        write(provider, server.url, keyfile, seconds=2)
    assert 0 < sent < 60_000_000


def test_a_server_that_stays_down_ends_with_the_time_and_the_last_reason(server: Failing, put: Put) -> None:
    server.answer = lambda _: web.Response(status=503)
    with pytest.raises(stores.StoreUnavailable, match="within 2 seconds; the last attempt"):
        put(server.url, seconds=2)


def test_a_server_that_says_nothing_ends_with_the_time(server: Failing, put: Put) -> None:
    server.answer = lambda _: 600.0
    with pytest.raises(stores.StoreUnavailable, match=r"within 1 second[;.]"):
        put(server.url, seconds=1)


def test_a_server_that_is_not_there_ends_with_the_time(put: Put) -> None:
    with pytest.raises(stores.StoreUnavailable, match=r"within 1 second[;.]"):
        put("http://127.0.0.1:9", seconds=1)


def test_a_host_that_does_not_exist_is_refused_at_once(put: Put) -> None:
    with pytest.raises(stores.StoreRefused) as caught:
        put("http://store.invalid")
    assert caught.value.code == "UnknownHost"


def test_keys_that_take_long_to_check_are_refused_at_once() -> None:
    large = {"ours": {"client_email": "x@y", "private_key": "-" * 5000}}
    started = time.process_time()
    with pytest.raises(errors.SpecError, match="'keyfile'"):
        stores.write(
            {"provider": "google", "keyfile": "ours", "bucket": "pictures"}, b"", "a", "b", keyfiles=large
        )
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "changes",
    [
        {"headers": {"Expires": "1 Jan 2030 00:00:00 +99999999999999"}},
        {"headers": {"Expires": "Fri, 31 Dec 9999 23:59:59 -1200"}},
        {"headers": {"Expires": "1 Jan 2030 1.2 GMT"}},
        {"headers": {"Cache-Control": " no-store"}},
        {"metadata": {"A": "1", "a": "2"}},
        {"metadata": {"a": " x"}},
        {"bucket": "pictures--x-s3"},
        {"region": "us-east-1-internal"},
        {"region": "internal"},
        {"region": "abcdefghijkl-" * 3 + "ab"},
        {"region": "abcdefghijkl-" * 5 + "abcdefghijkl"},
    ],
)
def test_what_servers_would_change_or_misread_is_refused(changes: dict[str, Any]) -> None:
    whole = {"provider": "aws", "key": "k", "secret": "s", "bucket": "pictures", "region": "us-east-1"}
    with pytest.raises(errors.SpecError) as caught:
        stores.parse_store({**whole, **changes})
    assert caught.value.problems[0].path.startswith(f"store.{next(iter(changes))}")


@pytest.mark.parametrize("provider", ["alibaba"], indirect=True)
def test_an_error_in_an_answer_of_success_is_a_failure(server: Failing, put: Put) -> None:
    error = "<Error><Code>InternalError</Code><Message>come again</Message></Error>"
    server.answer = lambda _: web.Response(text=error, content_type="application/xml")
    with pytest.raises(stores.StoreUnavailable, match="InternalError: come again"):
        put(server.url, seconds=1.5)
