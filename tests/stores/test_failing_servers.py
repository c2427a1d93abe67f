"""Servers that fail, hang or are not there, for the providers whose clients are not S3's."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from imgsvc_core import errors, stores
from tests.stores.servers.applications import serving
from tests.stores.watch import busiest_round

_CANARY = "Q2FuYXJ5Q2FuYXJ5"  # also a key in Base64
_SPECS: dict[str, dict[str, Any]] = {
    "google": {"keyfile": "ours", "bucket": "pictures"},
    "microsoft": {"account": "pictures", "key": _CANARY, "container": "pictures"},
    "alibaba": {"key": _CANARY, "secret": _CANARY, "bucket": "pictures", "region": "eu-central-1"},
    "rackspace": {"username": "owner", "key": _CANARY, "container": "pictures", "region": "iad"},
    "ibm": {"key": _CANARY, "bucket": "pictures", "region": "eu-de"},
}
_TOKENS = ("/token", "/v2.0/tokens")

Answer = Callable[[int], web.Response | float]


@attrs.define
class Failing:
    """A server that gives tokens, and answers its n-th other request as told, or so many seconds late."""

    url: str = ""
    answer: Answer = attrs.field(default=lambda _: web.Response(status=201))
    tokens: Answer | None = None
    seconds: object = 3600
    token: object = f"ya29.{_CANARY}"
    bodies: list[bytes] = attrs.field(factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.path.endswith(_TOKENS):
            return await _late(self.tokens(0)) if self.tokens else self._token(request.path)
        if request.method == "HEAD":
            names = ("X-Cdn-Enabled", "X-Cdn-Uri", "X-Cdn-Ssl-Uri")
            return web.Response(headers=dict(zip(names, ("True", self.url, self.url), strict=True)))
        self.bodies.append(body)
        return await _late(self.answer(len(self.bodies)))

    def _token(self, path: str) -> web.Response:
        if path != "/v2.0/tokens":
            return web.json_response({"access_token": self.token, "expires_in": self.seconds})
        services = [
            {"type": name, "endpoints": [{"region": "IAD", "publicURL": f"{self.url}/v1/x"}]}
            for name in ("object-store", "rax:object-cdn")
        ]
        token = {"id": self.token, "expires": "2999-01-01T00:00:00.000Z"}
        return web.json_response({"access": {"token": token, "serviceCatalog": services}})


async def _late(found: web.Response | float) -> web.Response:
    if isinstance(found, web.Response):
        return found
    await asyncio.sleep(found)
    return web.Response(status=201)


@pytest.fixture
def server() -> Iterator[Failing]:
    made = Failing()
    with serving(lambda app: app.router.add_route("*", "/{path:.*}", made.handle)) as made.url:
        yield made


@pytest.fixture(scope="module")
def keyfile() -> dict[str, str]:
    key = rsa.generate_private_key(65_537, 2048)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return {"type": "service_account", "private_key": text, "client_email": "a@example.org"}


@pytest.fixture(params=_SPECS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _endpoints(provider: str, url: str) -> dict[str, str]:
    return dict.fromkeys((provider, f"{provider}_token"), url)


Put = Callable[..., str]


@pytest.fixture
def put(provider: str, keyfile: dict[str, str]) -> Put:
    def put(url: str, seconds: float = 20, data: bytes = b"picture") -> str:
        return stores.write(
            {"provider": provider, **_SPECS[provider]},
            data,
            "cat.webp",
            "image/webp",
            keyfiles={"ours": keyfile},
            endpoints=_endpoints(provider, url),
            seconds=seconds,
        )

    return put


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_fails_for_the_moment_is_tried_again(server: Failing, put: Put, status: int) -> None:
    server.answer = lambda number: web.Response(status=201 if number == 3 else status)
    assert put(server.url).endswith("/cat.webp")
    assert len(server.bodies) == 3
    assert all(b"picture" in body for body in server.bodies)


@pytest.mark.parametrize("status", [301, 400, 403, 404, 409, 501])
def test_what_is_refused_is_not_tried_again(server: Failing, put: Put, status: int) -> None:
    server.answer = lambda _: web.Response(status=status, headers={"Location": "http://169.254.169.254/"})
    with pytest.raises(errors.StoreRefused) as caught:
        put(server.url)
    assert caught.value.code
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "text", ["", "no JSON, no XML", "[]", '"text"', '{"error": []}', '{"error": "no"}', "<a/>", "<Error/>"]
)
def test_refusals_without_sense_are_refusals(server: Failing, put: Put, text: str) -> None:
    server.answer = lambda _: web.Response(status=403, text=text)
    with pytest.raises(errors.StoreRefused):
        put(server.url)


_LIES: dict[str, web.Response] = {
    "deep": web.Response(status=403, body=b"[" * 60_000, content_type="application/json"),
    "no charset": web.Response(
        status=403, body=b"{}", headers={"Content-Type": "application/json; charset=base64"}
    ),
    "no gzip": web.Response(status=403, body=b"<Error/>", headers={"Content-Encoding": "gzip"}),
    "no text": web.Response(status=403, body=b"\xff\xfe<Error>\xff", content_type="application/xml"),
    "numbers": web.json_response({"error": {"message": 5, "errors": [{"reason": 7}]}}, status=403),
    "objects": web.json_response({"error": {"message": {"a": 1}, "errors": [{"reason": []}]}}, status=403),
    "nothing": web.json_response({"error": {"message": "m", "errors": None}}, status=403),
    "nested": web.Response(
        status=403, body=b"<Error><Code><a>b</a></Code><Message><b/></Message></Error>",
        content_type="application/xml",
    ),
}  # fmt: skip


@pytest.mark.parametrize("lie", _LIES)
@pytest.mark.parametrize("provider", [*_SPECS, "aws"], indirect=True)
def test_lies_are_failures_of_the_store(
    server: Failing, provider: str, keyfile: dict[str, str], lie: str
) -> None:
    server.answer = lambda _: _copy(_LIES[lie])
    with pytest.raises((errors.StoreRefused, errors.StoreUnavailable)):
        _write(provider, server.url, keyfile)


@pytest.mark.parametrize("lie", ["deep", "no charset", "no gzip", "no text", "objects"])
@pytest.mark.parametrize("provider", ["google", "rackspace", "ibm"], indirect=True)
@pytest.mark.parametrize("status", [200, 401])
def test_lies_of_token_servers_are_failures_of_the_store(
    server: Failing, put: Put, lie: str, status: int
) -> None:
    server.tokens = lambda _: _copy(_LIES[lie], status)
    with pytest.raises((errors.StoreRefused, errors.StoreUnavailable)):
        put(server.url, seconds=0.5)
    assert server.bodies == []


@pytest.mark.parametrize("token", [None, 5, [], {}, "", "a\r\nX: b", "a b", "\u0442"])
@pytest.mark.parametrize("provider", ["google", "rackspace", "ibm"], indirect=True)
def test_tokens_that_are_none_are_not_used(server: Failing, put: Put, token: object) -> None:
    server.token = token
    with pytest.raises((errors.StoreRefused, errors.StoreUnavailable), match="token"):
        put(server.url, seconds=0.5)
    assert server.bodies == []


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
        server.answer = lambda _, answer=answer: _copy(answer)  # type: ignore[misc]
        with pytest.raises(errors.StoreRefused) as caught:
            put(server.url)
        assert "token-canary" not in f"{caught.value} {caught.value.code} {caught.value.__cause__!r}"


@pytest.mark.parametrize("provider", [*_SPECS, "aws"], indirect=True)
def test_no_error_holds_a_request(server: Failing, provider: str, keyfile: dict[str, str]) -> None:
    """Those of clients do, with the credentials in its headers."""
    headers = {f"X-Long-{number}": "x" * 9000 for number in range(3)}  # more than aiohttp's client takes
    server.answer = lambda _: web.Response(headers=headers)
    with pytest.raises(errors.StoreUnavailable) as caught:
        _write(provider, server.url, keyfile)
    found: BaseException | None = caught.value
    seen = []
    while found is not None:
        seen.append(f"{found!r} {found} {vars(found)!r} {found.__context__!r}")
        found = found.__cause__
    assert not [text for text in seen if _CANARY in text or "Authorization" in text]


@pytest.mark.parametrize("provider", ["aws", "alibaba", "ibm"], indirect=True)
def test_an_upload_that_ends_with_an_error_is_none(
    server: Failing, provider: str, keyfile: dict[str, str]
) -> None:
    """S3 and its like answer 200 at once, and may find an error afterwards."""

    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith(_TOKENS):
            return await server.handle(request)
        await request.read()
        upload = "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
        error = "<Error><Code>InternalError</Code><Message>So it is.</Message></Error>"
        match request.method, "uploads" in request.query:
            case "POST", True:
                return web.Response(text=upload, content_type="application/xml")
            case "POST", _:
                return web.Response(text=error, content_type="application/xml")
        return web.Response(headers={"ETag": '"1"'})

    with (
        serving(lambda app: app.router.add_route("*", "/{path:.*}", answer)) as url,
        pytest.raises(errors.StoreUnavailable, match="InternalError"),
    ):
        _write(provider, url, keyfile, data=bytes(12_000_000), seconds=2)


@pytest.mark.parametrize("where", ["/token", ""], ids=["token", "object"])
@pytest.mark.parametrize("provider", [*_SPECS, "aws"], indirect=True)
def test_of_endless_refusals_little_is_read(
    server: Failing, provider: str, keyfile: dict[str, str], where: str
) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        await request.read()
        if (request.path.endswith(_TOKENS) and not where) or request.method == "HEAD":
            return await server.handle(request)
        answer = web.StreamResponse(status=403, headers={"Content-Type": "application/xml"})
        await answer.prepare(request)
        while sent < 300_000_000:
            await answer.write(b"<" + bytes(99_999))
            sent += 100_000
        return answer

    keys = {"key": _CANARY, "secret": _CANARY, "bucket": "pictures", "region": "us-east-1"}
    spec = _SPECS.get(provider, keys)
    with serving(lambda app: app.router.add_route("*", "/{path:.*}", endless)) as url:
        server.url = url
        with pytest.raises(errors.TargetError):
            stores.write(
                {"provider": provider, **spec}, b"picture", "cat.webp", "image/webp", seconds=5,
                keyfiles={"ours": keyfile}, endpoints=_endpoints(provider, url),
            )  # fmt: skip
    assert 0 < sent < 20_000_000


def test_nothing_is_sent_any_more_once_a_write_has_failed(
    server: Failing, provider: str, keyfile: dict[str, str]
) -> None:
    """A large object of which something is refused while the rest is under way."""
    upload = "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"

    def answer(number: int) -> web.Response | float:
        match number - (provider in ("alibaba", "ibm")):
            case 0:
                return web.Response(text=upload)
            case 1:
                return web.Response(status=403)
            case _:
                return 2.0

    async def run() -> None:
        server.answer = answer
        names = _endpoints(provider, server.url)
        spec = {"provider": provider, **_SPECS[provider]}
        async with stores.open_store(spec, keyfiles={"ours": keyfile}, endpoints=names) as store:
            others = asyncio.all_tasks()
            with pytest.raises(errors.StoreRefused):
                await store.put(stores.StoredObject(bytes(30_000_000), "large.webp", "image/webp"))
            assert asyncio.all_tasks() == others, "something runs on"

    asyncio.run(run())


@pytest.mark.parametrize("provider", ["alibaba", "ibm"], indirect=True)
def test_a_server_that_names_no_upload_fails_for_the_moment(server: Failing, put: Put) -> None:
    with pytest.raises(errors.StoreUnavailable, match="no UploadId"):
        put(server.url, seconds=1, data=bytes(12_000_000))


@pytest.mark.parametrize("provider", ["aws", "alibaba"], indirect=True)
def test_an_upload_that_is_given_up_while_it_begins_is_taken_back(provider: str) -> None:
    asked = []

    async def slow(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.query_string.partition('&')[0]}")
        await asyncio.sleep(0.5)
        upload = "<InitiateMultipartUploadResult><UploadId>77</UploadId></InitiateMultipartUploadResult>"
        return web.Response(text=upload, content_type="application/xml")

    async def run(url: str) -> None:
        keys = {"key": _CANARY, "secret": _CANARY, "bucket": "pictures", "region": "eu-central-1"}
        async with stores.open_store({"provider": provider, **keys}, endpoints={provider: url}) as store:
            item = stores.StoredObject(bytes(30_000_000), "large.webp", "image/webp")
            task = asyncio.create_task(store.put(item))
            while not asked:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with serving(lambda app: app.router.add_route("*", "/{path:.*}", slow)) as url:
        asyncio.run(run(url))
    assert [asked[0].rstrip("="), *asked[1:]] == ["POST uploads", "DELETE uploadId=77"]


def test_a_server_that_stays_down_ends_with_the_time_and_the_last_reason(server: Failing, put: Put) -> None:
    server.answer = lambda _: web.Response(status=503)
    started = time.monotonic()
    with pytest.raises(errors.StoreUnavailable, match="within 1 seconds; the last attempt"):
        put(server.url, seconds=1)
    assert time.monotonic() - started < 4


def test_a_server_that_says_nothing_ends_with_the_time(server: Failing, put: Put) -> None:
    server.answer = lambda _: 30.0
    started = time.monotonic()
    with pytest.raises(errors.StoreUnavailable, match="within 1 seconds"):
        put(server.url, seconds=1)
    assert time.monotonic() - started < 4


def test_a_server_that_is_not_there_ends_with_the_time(put: Put) -> None:
    with pytest.raises(errors.StoreUnavailable, match="within 1 seconds"):
        put("http://127.0.0.1:9", seconds=1)


def test_a_host_that_does_not_exist_is_refused_at_once(put: Put) -> None:
    started = time.monotonic()
    with pytest.raises(errors.StoreRefused) as caught:
        put("http://store.invalid")
    assert caught.value.code == "UnknownHost"
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("seconds", [0, -7, 1e300, "3600", "soon", None, [], {}, True])
@pytest.mark.parametrize("provider", ["google", "ibm"], indirect=True)
def test_tokens_may_be_good_for_anything(server: Failing, put: Put, seconds: object) -> None:
    server.seconds = seconds
    assert put(server.url).endswith("/cat.webp")


@pytest.mark.parametrize("provider", ["google", "rackspace", "ibm"], indirect=True)
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (web.Response(status=503), errors.StoreUnavailable),
        (30.0, errors.StoreUnavailable),
        (web.Response(status=401, text="no"), errors.StoreRefused),
        (web.Response(status=403, text="{}"), errors.StoreRefused),
        (web.Response(text='{"access": {}}'), errors.ImgsvcError),
        (web.Response(text="[]"), errors.ImgsvcError),
    ],
)
def test_token_servers_fail_like_others(
    server: Failing, put: Put, answer: web.Response | float, expected: type[Exception]
) -> None:
    server.tokens = lambda _: answer if isinstance(answer, float) else _copy(answer)
    started = time.monotonic()
    with pytest.raises(expected):
        put(server.url, seconds=1.5)
    assert time.monotonic() - started < 5
    assert server.bodies == []


@pytest.mark.parametrize("provider", ["google", "rackspace", "ibm"], indirect=True)
def test_who_waits_for_one_token_shares_what_comes_of_it(
    server: Failing, provider: str, keyfile: dict[str, str]
) -> None:
    """A refusal, or a token, also where the one who asked first has gone away."""
    asked = 0

    async def slow(request: web.Request) -> web.Response:
        nonlocal asked
        if not request.path.endswith(_TOKENS):
            return await server.handle(request)
        asked += 1
        await asyncio.sleep(0.3)
        return await server.handle(request)

    async def run(url: str) -> list[object]:
        spec = {"provider": provider, **_SPECS[provider]}
        item = stores.StoredObject(b"picture", "cat.webp", "image/webp")
        async with stores.open_store(
            spec, keyfiles={"ours": keyfile}, endpoints=_endpoints(provider, url)
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
        assert {type(refusal) for refusal in refusals} == {errors.StoreRefused}


def _copy(answer: web.Response, status: int | None = None) -> web.Response:
    headers = {name: text for name, text in answer.headers.items() if name.startswith("Content-")}
    headers.pop("Content-Length", None)
    return web.Response(
        status=status or answer.status, reason=answer.reason, body=answer.body, headers=headers
    )


def _write(
    provider: str, url: str, keyfile: dict[str, str], data: bytes = b"picture", seconds: float = 0.5
) -> str:
    keys = {"key": _CANARY, "secret": _CANARY, "bucket": "pictures", "region": "us-east-1"}
    return stores.write(
        {"provider": provider, **_SPECS.get(provider, keys)},
        data,
        "cat.webp",
        "image/webp",
        keyfiles={"ours": keyfile},
        endpoints=_endpoints(provider, url),
        seconds=seconds,
    )


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
    echo = web.Response(status=403, text=f"<Error><Code>{_CANARY}</Code><Message>{_CANARY}</Message></Error>")
    for url, answer in (
        (server.url, echo),
        (server.url, web.Response(status=503)),
        ("http://127.0.0.1:9", 0),
    ):
        server.answer = lambda _, answer=answer: _copy(answer)  # type: ignore[misc]
        if provider == "ibm":  # whose objects' server is not told the secret
            server.tokens = server.answer
        with pytest.raises(errors.TargetError) as caught:
            put(url, seconds=0.5)
        shown += traceback.format_exception(caught.value)
        shown += [repr(caught.value), repr(vars(caught.value))]
    shown += [caplog.text, *capfd.readouterr()]
    shown += [f"{record.msg} {record.args} {record.exc_info}" for record in caplog.records]
    secrets = [_CANARY, *keyfile["private_key"].splitlines()[1:-1]]
    assert not [text for text in shown for secret in secrets if secret in text]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("provider", [*_SPECS, "aws", "digitalocean", "google developer"])
def test_redirections_are_not_followed(
    server: Failing, keyfile: dict[str, str], provider: str, status: int
) -> None:
    """The picture goes to the provider's host or nowhere."""
    keys = {"key": _CANARY, "secret": _CANARY, "bucket": "pictures"}
    spec = _SPECS.get(provider, keys if provider.startswith("google") else {**keys, "region": "us-east-1"})
    name = provider.partition(" ")[0]
    with serving(lambda app: app.router.add_route("*", "/{path:.*}", elsewhere)) as other:
        server.answer = lambda _: web.Response(status=status, headers={"Location": f"{other}/stolen"})
        with pytest.raises(errors.StoreRefused):
            stores.write(
                {"provider": name, **spec}, b"picture", "cat.webp", "image/webp", keyfiles={"ours": keyfile},
                endpoints=_endpoints(name, server.url), seconds=5,
            )  # fmt: skip
    assert len(server.bodies) == 1


async def elsewhere(request: web.Request) -> web.Response:
    raise AssertionError("somebody followed a redirection")


def test_keys_that_take_long_to_check_are_refused_at_once() -> None:
    large = {"ours": {"client_email": "x@y", "private_key": "-" * 5000}}
    started = time.monotonic()
    with pytest.raises(errors.SpecError, match="'keyfile'"):
        stores.write(
            {"provider": "google", "keyfile": "ours", "bucket": "pictures"}, b"", "a", "b", keyfiles=large
        )
    assert time.monotonic() - started < 5


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


@pytest.mark.parametrize(("count", "size"), [(50, 3_000_000), (10, 20_000_000)])
@pytest.mark.parametrize("provider", [*_SPECS, "aws"], indirect=True)
def test_many_large_objects_leave_the_event_loop_to_others(
    provider: str, keyfile: dict[str, str], count: int, size: int
) -> None:
    keys = {"key": _CANARY, "secret": _CANARY, "bucket": "pictures", "region": "us-east-1"}
    spec = {"provider": provider, **_SPECS.get(provider, keys)}
    server = Failing()

    async def take(request: web.Request) -> web.Response:
        while await request.content.read(2**20):
            pass
        if request.method == "POST" and "uploads" in request.query:
            upload = "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
            return web.Response(text=upload, content_type="application/xml")
        if request.path.endswith(_TOKENS) or request.method == "HEAD":
            return await server.handle(request)
        return web.Response(status=201 if request.method == "PUT" else 200, headers={"ETag": '"1"'})

    with serving(lambda app: app.router.add_route("*", "/{path:.*}", take)) as server.url:
        pool = stores.StorePool(endpoints=_endpoints(provider, server.url))
        many = [
            stores.open_store({**spec, "path": f"{number}.webp"}, keyfiles={"ours": keyfile}, pool=pool)
            for number in range(count)
        ]
        assert busiest_round(many, bytes(size), pool) < 2**20
