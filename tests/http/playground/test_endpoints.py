"""What the service gives the page: its files, the declarations of parameters, presets and URLs."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import aiohttp
import attrs
import pytest
from aiohttp import web

import imgsvc_core as imgsvc
from imgsvc_core.spec import FILTERS as FILTER_CLASSES
from imgsvc_core.spec.declaring import params
from imgsvc_core.spec.options import PARAMETER_OPTIONS
from imgsvc_http.app import create_app
from imgsvc_http.call import Call
from imgsvc_http.endpoints.playground import about
from imgsvc_http.routing import methods_at
from imgsvc_http.settings import Settings
from imgsvc_http.settings.sections import PlaygroundSettings
from imgsvc_urls import parse, verify
from tests.http.calls import call, upload
from tests.http.service_process import Service
from tests.support import encoded

FILTERS = {filter.key for filter in FILTER_CLASSES}


@pytest.mark.asyncio
@pytest.mark.parametrize(("name", "script"), [("playground", "app"), ("dashboard", "dashboard")])
async def test_the_pages_load_nothing_from_other_hosts(name: str, script: str, service: Service) -> None:
    async with service.client(key="") as visitor:
        page = await call(visitor, "GET", f"/{name}")
        policy = page.headers["Content-Security-Policy"]
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert page.headers["Referrer-Policy"] == "no-referrer"
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        for name, media_type in (
            (f"{script}.js", "text/javascript"),
            (f"{script}.css", "text/css"),
            ("icon.svg", "image/svg+xml"),
        ):
            assert name in page.body.decode()
            file = await call(visitor, "GET", f"/playground/{name}")
            assert file.status == 200
            assert file.headers["Content-Type"].startswith(media_type)
            assert b"//fonts." not in file.body
            again = await call(
                visitor, "GET", f"/playground/{name}", headers={"If-None-Match": file.headers["ETag"]}
            )
            assert (again.status, again.body) == (304, b"")
            assert file.headers["Vary"] == "Accept-Encoding"
            assert file.headers["ETag"].startswith("W/")  # as the compressed file has the same


@pytest.mark.asyncio
async def test_the_address_of_the_service_leads_to_the_playground(service: Service) -> None:
    async with service.client(key="") as visitor:
        found = await call(visitor, "GET", "/")
        assert found.status == 200
        assert found.headers["Content-Type"] == "text/html; charset=utf-8"
        assert found.body == (await call(visitor, "GET", "/playground")).body


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["index.html", "..%2F__init__.py", "app.py", "examples", "%252e%252e"])
async def test_nothing_else_is_served(name: str, service: Service) -> None:
    async with service.client(key="") as visitor:
        assert (await call(visitor, "GET", f"/playground/{name}")).status in (401, 404)
        assert (await call(visitor, "GET", f"/playground/examples/{name}")).status in (401, 404)


@pytest.mark.asyncio
async def test_every_parameter_is_declared_once_in_the_order_of_application(
    client: aiohttp.ClientSession,
) -> None:
    document = (await call(client, "GET", "/playground/declarations.json")).json
    arrays = [group for group in document["groups"] if group["params"][0]["kind"] == "PartsKind"]
    groups = [group for group in document["groups"] if group not in arrays]
    declared = [param["option"] for group in groups for param in group["params"]]
    assert declared == [name for name in PARAMETER_OPTIONS if name != "facts"]  # which change no picture
    keys = [group["key"] for group in document["groups"] if group["key"] not in FILTERS]
    assert [name for name in params(imgsvc.Spec) if name in keys] == keys
    assert document["metadata_header"] == "X-Svc-Metadata"
    for group in groups:
        for param in group["params"]:
            own = params(PARAMETER_OPTIONS[param["option"]].operation)[param["name"]]
            assert (param["doc"], param["unit"], param["required"]) == (own.doc, own.unit, own.required)
            assert param["kind"] == type(own.kind).__name__.removesuffix("Or")  # words are no control
            for told, value in ((param["default"], own.default), (param["neutral"], own.neutral)):
                has_none = value in (attrs.NOTHING, None, ())
                assert told is None if has_none else own.kind.parse(told) == value


@pytest.mark.asyncio
async def test_objects_in_arrays_are_declared_whole(client: aiohttp.ClientSession) -> None:
    document = (await call(client, "GET", "/playground/declarations.json")).json
    parts = {part["key"]: part for part in document["parts"]}
    assert len(parts) == len(document["parts"])

    def check(schema: dict[str, Any], key: str) -> None:
        part = parts[key]
        assert [param["name"] for param in part["params"]] == list(schema["properties"])
        for param in part["params"]:
            own = schema["properties"][param["name"]]
            required = param["name"] in schema.get("required", ())
            assert (param["required"], param["doc"] in own["description"]) == (required, True)
            if param["kind"] == "PartKind":
                check(own, param["part"])
            if param["kind"] == "PartsKind":
                check(own["items"], param["part"])
                assert own["maxItems"] == param["most"]

    layers = next(group for group in document["groups"] if group["key"] == "layers")["params"][0]
    schema = imgsvc.request_schema()["properties"]["layers"]
    check(schema["items"], layers["part"])
    assert layers["most"] == schema["maxItems"]
    size = next(param for param in parts["text"]["params"] if param["name"] == "size")
    assert (size["minimum"], size["maximum"], size["least"], size["most"]) == (1, 4096, 0, 1000)


@pytest.mark.asyncio
async def test_what_is_declared_is_what_requests_accept(client: aiohttp.ClientSession) -> None:
    groups: list[dict[str, Any]] = (await call(client, "GET", "/playground/declarations.json")).json["groups"]
    adjust = next(group for group in groups if group["key"] == "adjust")
    for param in adjust["params"]:
        if param["kind"] in ("Integer", "Number"):
            for end in ("minimum", "maximum"):
                imgsvc.parse({"adjust": {param["name"]: param[end]}})
            with pytest.raises(imgsvc.SpecError):
                imgsvc.parse({"adjust": {param["name"]: param["maximum"] + 1}})
            assert imgsvc.parse({"adjust": {param["name"]: param["neutral"]}}).simplified() == imgsvc.Spec()


@pytest.mark.asyncio
async def test_example_pictures_can_be_processed(client: aiohttp.ClientSession) -> None:
    names = (await call(client, "GET", "/playground/declarations.json")).json["examples"]
    assert {"portrait.jpg", "day.gif", "coffee.heic"} <= set(names)
    for name in names:
        picture = await call(client, "GET", f"/playground/examples/{name}")
        assert imgsvc.inspect(picture.body).width > 0
        assert picture.headers["Content-Type"].startswith("image/")


@pytest.mark.asyncio
async def test_urls_say_the_request(client: aiohttp.ClientSession) -> None:
    request = {"resize": {"width": 480}, "filter": {"sepia": {"value": 70}}}
    body = {"source": "https://example.org/a b.jpg", "request": request}
    made = (await call(client, "POST", "/playground/urls", json=body)).json
    _, path = made["url"].split("/1.0/image/unsigned")
    assert parse(path).spec() == imgsvc.parse(request)
    assert made["picture"].startswith("<picture>")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("output", "frames", "formats"),
    [
        ({}, None, ["avif", "webp", "jpg"]),
        ({}, 1, ["avif", "webp", "jpg"]),
        ({}, 2, ["webp", "gif"]),
        ({"format": "auto"}, 2, ["auto"]),
        ({"format": "auto"}, 1, ["auto"]),
        ({"format": "webp"}, 2, ["webp"]),
        ({"format": "png"}, 1, ["png"]),
    ],
)
async def test_html_offers_the_format_that_is_asked_for_or_those_that_hold_the_source(
    output: dict[str, str], frames: int | None, formats: list[str], client: aiohttp.ClientSession
) -> None:
    request = {"resize": {"width": 480}, **({"output": output} if output else {})}
    body = {"source": "https://example.org/a.gif", "request": request}
    if frames is not None:
        body["facts"] = {"width": 4000, "height": 3000, "orientation": 1, "frames": frames}
    picture = (await call(client, "POST", "/playground/urls", json=body)).json["picture"]
    *others, image = picture.splitlines()[1:-1]
    assert [re.findall("/format:([a-z]+)/", line)[0] for line in (*others, image)] == formats
    assert [line.split('"')[1] for line in others] == [f"image/{name}" for name in formats[:-1]]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "facts", [5, [], {}, {"width": 0, "height": 1, "orientation": 1, "frames": 1}, {"width": 1.5}]
)
async def test_wrong_facts_are_refused(facts: object, client: aiohttp.ClientSession) -> None:
    body = {"source": "https://example.org/a.jpg", "facts": facts}
    reply = await call(client, "POST", "/playground/urls", json=body)
    assert reply.status == 422
    assert "'facts'" in reply.json["message"]


@pytest.mark.asyncio
async def test_a_border_wider_than_narrow_pictures_has_a_url(client: aiohttp.ClientSession) -> None:
    body = {"source": "https://example.org/a.jpg", "request": {"border": {"size": 200}}}
    made = (await call(client, "POST", "/playground/urls", json=body)).json
    assert "/border:200/" in made["url"]
    assert made["no_picture"] == "Padding and border of 400 pixels leave no room in a width of 320"
    assert "picture" not in made


@pytest.mark.asyncio
async def test_urls_are_signed_for_administrators_of_an_account_with_a_signing_key(service: Service) -> None:
    account = json.loads(service.imgsvc("accounts", "create", "Signing", "--json"))["id"]
    signing = json.loads(service.imgsvc("signing-keys", "create", account, "--json"))
    made = {}
    for scope in ("process", "admin"):
        key = json.loads(service.imgsvc("keys", "create", account, "--scope", scope, "--json"))["secret"]
        async with service.client(key=key) as client:
            body = {"source": "https://example.org/a.jpg", "request": {"resize": {"width": 480}}}
            made[scope] = (await call(client, "POST", "/playground/urls", json=body)).json
    assert "/1.0/image/unsigned/" in made["process"]["url"]
    assert not made["process"]["signed"]
    assert made["admin"]["signed"]
    path = made["admin"]["url"].partition("/1.0/image")[2]
    assert verify(path, {signing["id"]: signing["secret"]}).startswith("/resize:480x/plain/")


@pytest.mark.parametrize("body", [[], {}, {"source": 1}, {"source": "https://a.example/x", "request": 3}])
@pytest.mark.asyncio
async def test_wrong_bodies_are_refused(body: Any, client: aiohttp.ClientSession) -> None:
    assert (await call(client, "POST", "/playground/urls", json=body)).status == 422


@pytest.mark.asyncio
async def test_what_belongs_to_the_service_needs_a_key(service: Service) -> None:
    async with service.client(key="") as visitor:
        assert (await call(visitor, "GET", "/playground/presets.json")).status == 401
        assert (await call(visitor, "POST", "/playground/urls", json={})).status == 401


@pytest.mark.asyncio
async def test_the_page_lists_presets_of_the_account(client: aiohttp.ClientSession) -> None:
    preset = {"resize": {"width": 50}}
    assert (await call(client, "PUT", "/1.0/presets/small", json=preset)).status == 200
    shown = (await call(client, "GET", "/playground/presets.json")).json["presets"]
    assert shown["small"] == preset
    assert (await call(client, "DELETE", "/1.0/presets/small")).status == 200


@pytest.mark.asyncio
async def test_the_plan_is_told_if_it_is_asked_for(client: aiohttp.ClientSession) -> None:
    data = encoded.png().data
    steps = (await upload(client, data, {"resize": {"width": 50}, "response": {"plan": True}})).json["plan"]
    assert steps[0]["phase"] == "load"
    assert any(step["phase"] == "resize" and step["width"] == 50 for step in steps)
    assert "plan" not in (await upload(client, data, {"resize": {"width": 50}})).json


@pytest.mark.asyncio
async def test_a_plan_that_is_too_long_for_the_header_is_left_out(client: aiohttp.ClientSession) -> None:
    blurs = [{"blur": {"mode": "motion", "value": 1, "angle": angle}} for angle in range(48)]
    document = {"filter": blurs, "response": {"mode": "binary", "plan": True}}
    reply = await upload(client, encoded.png().data, document)
    assert reply.status == 200
    assert len(reply.headers["X-Svc-Metadata"]) <= 7_000
    assert "plan" not in reply.metadata


def test_the_pages_can_be_switched_off() -> None:
    app = create_app(Settings(playground=PlaygroundSettings(enabled=False)))
    assert methods_at(app, "/") == {"GET", "HEAD"}
    assert methods_at(app, "/dashboard") == frozenset()
    assert methods_at(app, "/playground") == frozenset()
    assert methods_at(app, "/playground/presets.json") == frozenset()
    assert methods_at(create_app(Settings()), "/playground") == {"GET", "HEAD"}


@pytest.mark.asyncio
async def test_a_service_without_pages_says_what_it_is() -> None:
    reply = await about(cast("Call", None))
    assert isinstance(reply, web.Response)
    assert "text/html" in reply.headers["Content-Type"]
    assert '<a href="1.0/openapi.json">' in (reply.text or "")
