"""Servers that give tokens, and fail like others."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

import imgsvc_stores as stores
from imgsvc_core import errors
from imgsvc_stores.providers.tokens import Tokens
from tests.stores.conftest import Put
from tests.stores.servers.applications import serving
from tests.stores.servers.failing import (
    LIES,
    SPECS,
    TOKENS,
    Failing,
    copy,
    endpoints,
)


@pytest.mark.parametrize("lie", ["deep", "no charset", "no gzip", "no text", "objects"])
@pytest.mark.parametrize("provider", ["google", "rackspace", "ibm"], indirect=True)
@pytest.mark.parametrize("status", [200, 401])
def test_lies_of_token_servers_are_failures_of_the_store(
    server: Failing, put: Put, lie: str, status: int
) -> None:
    server.tokens = lambda _: copy(LIES[lie], status)
    with pytest.raises((stores.StoreRefused, stores.StoreUnavailable)):
        put(server.url, seconds=0.5)
    assert server.bodies == []


@pytest.mark.parametrize("token", [None, 5, [], {}, "", "a\r\nX: b", "a b", "\u0442"])
@pytest.mark.parametrize("provider", ["google", "rackspace", "ibm"], indirect=True)
def test_tokens_that_are_none_are_not_used(server: Failing, put: Put, token: object) -> None:
    server.token = token
    with pytest.raises((stores.StoreRefused, stores.StoreUnavailable), match="token"):
        put(server.url, seconds=0.5)
    assert server.bodies == []


@pytest.mark.parametrize("seconds", [0, -7, 1e300, "3600", "soon", None, [], {}, True])
@pytest.mark.parametrize("provider", ["google", "ibm"], indirect=True)
def test_tokens_may_be_good_for_anything(server: Failing, put: Put, seconds: object) -> None:
    server.seconds = seconds
    assert put(server.url).endswith("/cat.webp")


@pytest.mark.parametrize("provider", ["google", "rackspace", "ibm"], indirect=True)
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (web.Response(status=503), stores.StoreUnavailable),
        (600.0, stores.StoreUnavailable),
        (web.Response(status=401, text="no"), stores.StoreRefused),
        (web.Response(status=403, text="{}"), stores.StoreRefused),
        (web.Response(text='{"access": {}}'), errors.ImgsvcError),
        (web.Response(text="[]"), errors.ImgsvcError),
    ],
)
def test_token_servers_fail_like_others(
    server: Failing, put: Put, answer: web.Response | float, expected: type[Exception]
) -> None:
    server.tokens = lambda _: answer if isinstance(answer, float) else copy(answer)
    with pytest.raises(expected):
        put(server.url, seconds=60 if expected is stores.StoreRefused else 0.5)  # others are tried again
    assert server.bodies == []


@pytest.mark.parametrize("provider", ["google", "rackspace", "ibm"], indirect=True)
def test_a_token_that_is_withdrawn_is_replaced_once(server: Failing, put: Put) -> None:
    server.answer = lambda number: web.Response(status=401 if number == 1 else 201)
    assert put(server.url).endswith("/cat.webp")
    assert len([asked for asked in server.requests if asked.split()[1].endswith(TOKENS)]) == 2
    server.answer = lambda _: web.Response(status=401)
    with pytest.raises(stores.StoreRefused, match="401"):
        put(server.url)
    assert len(server.bodies) == 2 + 2


@pytest.mark.parametrize("provider", ["google", "rackspace", "ibm"], indirect=True)
def test_who_waits_for_one_token_shares_what_comes_of_it(
    server: Failing, provider: str, keyfile: dict[str, str]
) -> None:
    """A refusal, or a token, also where the one who asked first has gone away."""
    asked = 0

    async def slow(request: web.Request) -> web.Response:
        nonlocal asked
        if not request.path.endswith(TOKENS):
            return await server.handle(request)
        asked += 1
        await asyncio.sleep(0.3)
        return await server.handle(request)

    async def run(url: str) -> list[object]:
        spec = {"provider": provider, **SPECS[provider]}
        item = stores.StoredObject(b"picture", "cat.webp", "image/webp")
        async with stores.open_store(
            spec, keyfiles={"ours": keyfile}, endpoints=endpoints(provider, url)
        ) as store:
            many = [asyncio.create_task(store.put(item)) for _ in range(10)]
            while not asked:
                await asyncio.sleep(0.01)
            many[0].cancel()
            _, *others = await asyncio.gather(*many, return_exceptions=True)
            return list(others)

    with serving(lambda app: app.router.add_route("*", "/{path:.*}", slow)) as server.url:
        urls = asyncio.run(run(server.url))
        assert asked == 1
        assert all(str(url).endswith("/cat.webp") for url in urls), urls
        server.tokens = lambda _: web.Response(status=401, text="{}")
        refusals = asyncio.run(run(server.url))
        assert asked == 2
        assert {type(refusal) for refusal in refusals} == {stores.StoreRefused}


@pytest.mark.parametrize("provider", ["ibm"], indirect=True)
def test_an_answer_with_a_token_may_be_long(server: Failing, put: Put) -> None:
    """As one that lists the addresses of many services."""
    answer = {"access_token": "ya29.long", "expires_in": 3600, "more": "x" * 500_000}
    server.tokens = lambda _: web.json_response(answer)
    assert put(server.url).endswith("/cat.webp")


@pytest.mark.parametrize(("seconds", "asked"), [(250.0, 3), (3600.0, 1)])
def test_tokens_are_renewed_some_minutes_before_they_expire(seconds: float, asked: int) -> None:
    """An upload that begins with a token has to end with it."""
    given: list[str] = []

    async def ask() -> tuple[str, float]:
        given.append(f"token {len(given)}")
        return given[-1], seconds

    async def used() -> tuple[list[str], tuple[str, ...]]:
        tokens = Tokens(ask)
        return [await tokens.current() for _ in range(3)], tokens.secrets()

    used_tokens, secrets = asyncio.run(used())
    assert used_tokens == (given if asked == 3 else ["token 0"] * 3)
    assert len(given) == asked
    assert secrets == tuple(given[-2:])  # the last answer to the one before may still come
