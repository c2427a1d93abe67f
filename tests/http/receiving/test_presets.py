"""Presets in the bodies of requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from jsonschema import Draft202012Validator

from imgsvc_core import Limits, Spec, SpecError
from imgsvc_core.spec import parse
from imgsvc_core.spec.presets import parse_presets
from imgsvc_http.receiving.processing_request import parse_request, request_body_schema, without_presets
from tests.http.calls import assert_failure, call, upload
from tests.http.receivers import receiving
from tests.http.service_process import Service, running
from tests.support.encoded import png

PRESETS = parse_presets(
    {
        "card": {"resize": {"width": 30, "height": 20, "mode": "fit"}, "output": {"format": "webp"}},
        "small": {"resize": {"width": 10}},
        "old": {"filter": {"sepia": {"value": 60}}},
    }
)
SCHEMA = Draft202012Validator(request_body_schema(fetching=False))


def spec_of(document: dict[str, Any]) -> Spec:
    SCHEMA.validate(document)
    return parse_request(document, Limits(), fetching=False, presets=PRESETS).spec


@pytest.mark.parametrize(
    ("document", "request_"),
    [
        ({"preset": "small"}, {"resize": {"width": 10}}),
        ({"preset": []}, {}),
        ({"preset": None}, {}),
        (
            {"preset": ["card", "small"]},
            {**PRESETS["card"], "resize": {**PRESETS["card"]["resize"], "width": 10}},
        ),
        ({"preset": "small", "resize": {"width": 12}, "crop": None}, {"resize": {"width": 12}}),
        ({"preset": "old", "stylize": {"sepia": {"value": 9}}}, {"filter": {"sepia": {"value": 9}}}),
        ({"preset": ["small", "old"], "filter": []}, {"resize": {"width": 10}}),
    ],
)
def test_presets_come_first_in_order(document: dict[str, Any], request_: dict[str, Any]) -> None:
    assert spec_of(document) == parse(request_)


@pytest.mark.parametrize(
    ("document", "problems"),
    [
        ({"preset": "cart"}, {"preset": "There is no preset 'cart'; known are card, old, small"}),
        ({"preset": 5}, {"preset": "'preset' must be the name of a preset or an array of names, got 5"}),
        ({"preset": ["card", 5]}, {"preset": "'preset' must be the name of a preset or an array of names"}),
        ({"preset": ["card", "card"]}, {"preset": "'preset' must name each preset once"}),
        (
            {"preset": "cart", "resize": {"width": 0}, "response": 5},
            {
                "preset": "There is no preset 'cart'",
                "resize.width": "Resize 'width' parameter must be integer within",
                "response": "Response must be an object of parameters",
            },
        ),
        (
            {"preset": "card", "resize": {"mode": "auto", "gravity": "top"}},
            {"resize.gravity": "Resize 'gravity' parameter must be left out when 'mode' is auto, after"},
        ),
        (
            {"preset": "card", "webhok": {}},
            {"webhok": "The request has no 'webhok' parameter; did you mean 'webhook'"},
        ),
        ({"presets": "card"}, {"presets": "The request has no 'presets' parameter; did you mean 'preset'"}),
    ],
)
def test_mistakes_are_told(document: dict[str, Any], problems: dict[str, str]) -> None:
    with pytest.raises(SpecError) as caught:
        parse_request(document, Limits(), fetching=False, presets=PRESETS)
    found = {problem.path: problem.message for problem in caught.value.problems}
    assert found.keys() == problems.keys()
    for path, message in problems.items():
        assert found[path].startswith(message)


def test_what_is_kept_for_later_names_no_presets() -> None:
    webhook, crop = {"url": "https://example.org/"}, {"width": 9, "height": 9}
    document = {"preset": "small", "webhook": webhook, "crop": crop}
    kept = without_presets(document, spec_of(document))
    assert kept == {"webhook": webhook, "crop": crop, "resize": {"width": 10}}
    assert without_presets({"resize": {"width": 5}}, Spec()) == {"resize": {"width": 5}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    (folder / "imgsvc.toml").write_text("[presets.small.resize]\nwidth = 10\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IMGSVC_CONFIG", str(folder / "imgsvc.toml"))
        with running(folder / "state", {"fetch.private_allowed": "127.0.0.1,localhost"}) as service:
            yield service


@pytest.mark.asyncio
async def test_the_service_has_the_presets_of_its_settings(client: aiohttp.ClientSession) -> None:
    listed = (await call(client, "GET", "/playground/presets.json")).json["presets"]
    assert listed == {"small": {"resize": {"width": 10}}}
    reply = await upload(client, png().data, {"preset": "small"})
    assert (reply.status, reply.json["output"]["width"]) == (200, 10)
    reply = await upload(client, png().data, {"preset": "other"})
    assert_failure(reply, 422, "invalid_parameter", "There is no preset 'other'; known are small")


@pytest.mark.asyncio
async def test_a_webhook_tells_of_a_request_with_presets(client: aiohttp.ClientSession) -> None:
    async with receiving() as receiver:
        reply = await upload(client, png().data, {"preset": "small", "webhook": {"url": receiver.url}})
        assert reply.status == 202, reply.body
        (post,) = await receiver.arrived(1)
    assert post.json["output"]["width"] == 10
