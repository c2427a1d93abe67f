"""Secrets stay where they belong, whatever servers answer."""

from __future__ import annotations

import json
import logging
import traceback
from urllib.parse import quote, quote_plus

import pytest
from aiohttp import web

import imgsvc_stores as stores
from imgsvc_core import errors
from imgsvc_stores.masking import masked
from tests.stores.conftest import Put
from tests.stores.servers.applications import serving
from tests.stores.servers.failing import (
    CANARY,
    SPECS,
    Failing,
    copy,
    endpoints,
    write,
)


@pytest.mark.parametrize("provider", ["google", "rackspace", "ibm"], indirect=True)
def test_tokens_that_servers_repeat_are_not_shown(server: Failing, put: Put) -> None:
    server.token = "ya29.token-canary"
    error = {"message": f"no: {server.token}", "errors": [{"reason": server.token}]}
    xml = f"<Error><Code>{server.token}</Code><Message>{server.token}</Message></Error>"
    for answer in (
        web.json_response({"error": error}, status=403),
        web.Response(status=403, text=xml, content_type="application/xml"),
        web.Response(status=403, reason=f"no {server.token}"),
    ):
        server.answer = lambda _, answer=answer: copy(answer)  # type: ignore[misc]
        with pytest.raises(stores.StoreRefused) as caught:
            put(server.url)
        assert "token-canary" not in f"{caught.value} {caught.value.code} {caught.value.__cause__!r}"


@pytest.mark.parametrize("provider", ["google", "rackspace", "ibm"], indirect=True)
def test_tokens_that_servers_repeat_are_in_no_log(
    server: Failing, put: Put, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.token = "ya29.token-canary"
    xml = f"<Error><Code>{server.token}</Code><Message>{server.token}</Message></Error>"
    answer = web.Response(status=403, text=xml, content_type="application/xml")
    server.answer = lambda _: copy(answer, headers={"X-Reason": f"no {server.token}"})
    with pytest.raises(stores.StoreRefused):
        put(server.url)
    records = [f"{record.msg} {record.args} {record.exc_info}" for record in caplog.records]
    assert not [text for text in (caplog.text, *records) if "token-canary" in text]


def test_what_is_exchanged_for_a_token_is_not_shown_where_the_server_repeats_it(
    server: Failing, keyfile: dict[str, str]
) -> None:
    assertions = []

    async def repeat(request: web.Request) -> web.Response:
        said = await request.text()
        assertions.append((await request.post())["assertion"])
        return web.json_response({"error": "invalid_grant", "error_description": said}, status=400)

    with (
        serving(lambda app: app.router.add_post("/token", repeat)) as url,
        pytest.raises(stores.StoreRefused, match="invalid_grant") as caught,
    ):
        write("google", url, keyfile, seconds=30)
    shown = "".join(traceback.format_exception(caught.value)) + caught.value.code
    assert not [text for text in assertions if str(text) in shown]


@pytest.mark.parametrize("provider", [*SPECS, "aws"], indirect=True)
def test_no_error_holds_a_request(server: Failing, provider: str, keyfile: dict[str, str]) -> None:
    """Those of clients do, with the credentials in its headers."""
    headers = {f"X-Long-{number}": "x" * 9000 for number in range(3)}  # more than aiohttp's client takes
    server.answer = lambda _: web.Response(headers=headers)
    with pytest.raises(stores.StoreUnavailable) as caught:
        write(provider, server.url, keyfile)
    found: BaseException | None = caught.value
    seen = []
    while found is not None:
        seen.append(f"{found!r} {found} {vars(found)!r} {found.__context__!r}")
        found = found.__cause__
    assert not [text for text in seen if CANARY in text or "Authorization" in text]


def test_secrets_are_in_no_failure(
    server: Failing,
    provider: str,
    put: Put,
    keyfile: dict[str, str],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    shown = []
    echo = web.Response(status=403, text=f"<Error><Code>{CANARY}</Code><Message>{CANARY}</Message></Error>")
    for url, answer in (
        (server.url, echo),
        (server.url, web.Response(status=503)),
        ("http://127.0.0.1:9", 0),
    ):
        server.answer = lambda _, answer=answer: copy(answer)  # type: ignore[misc]
        if provider == "ibm":  # whose objects' server is not told the secret
            server.tokens = server.answer
        with pytest.raises(errors.TargetError) as caught:
            put(url, seconds=0.5)
        shown += traceback.format_exception(caught.value)
        shown += [repr(caught.value), repr(vars(caught.value))]
    shown += [caplog.text, *capfd.readouterr()]
    shown += [f"{record.msg} {record.args} {record.exc_info}" for record in caplog.records]
    secrets = [CANARY, *keyfile["private_key"].splitlines()[1:-1]]
    assert not [text for text in shown for secret in secrets if secret in text]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("provider", [*SPECS, "aws", "digitalocean", "google developer"])
def test_redirections_are_not_followed(
    server: Failing, keyfile: dict[str, str], provider: str, status: int
) -> None:
    """The picture goes to the provider's host or nowhere."""
    keys = {"key": CANARY, "secret": CANARY, "bucket": "pictures"}
    spec = SPECS.get(provider, keys if provider.startswith("google") else {**keys, "region": "us-east-1"})
    name = provider.partition(" ")[0]
    with serving(lambda app: app.router.add_route("*", "/{path:.*}", elsewhere)) as other:
        server.answer = lambda _: web.Response(status=status, headers={"Location": f"{other}/stolen"})
        with pytest.raises(stores.StoreRefused):
            stores.write(
                {"provider": name, **spec}, b"picture", "cat.webp", "image/webp", keyfiles={"ours": keyfile},
                endpoints=endpoints(name, server.url), seconds=5,
            )  # fmt: skip
    assert len(server.bodies) == 1


async def elsewhere(request: web.Request) -> web.Response:
    raise AssertionError("somebody followed a redirection")


SECRET = 'pass/word+of "ours" ü'


@pytest.mark.parametrize(
    "written",
    [SECRET, json.dumps(SECRET)[1:-1], quote(SECRET), quote(SECRET, safe=""), quote_plus(SECRET)],
    ids=["plain", "JSON", "path", "percent", "form"],
)
def test_secrets_are_masked_in_every_notation(written: str) -> None:
    assert masked(f"before {written} after", [SECRET, ""]) == "before *** after"


@pytest.mark.parametrize("inner", [SECRET[:6], SECRET[3:9], SECRET[-6:]])
def test_nothing_is_left_of_a_secret_that_holds_another_one(inner: str) -> None:
    assert masked(f"{SECRET} and {inner}", [inner, SECRET]) == "*** and ***"
