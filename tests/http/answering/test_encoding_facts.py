"""Results have a quality and a subsampling if their format has them, whatever the picture is."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from imgsvc_core import FORMATS
from imgsvc_core.limits import Limits
from imgsvc_core.spec import parse
from imgsvc_http.answering.answers import Result
from imgsvc_http.answering.json_schema import body_schema
from imgsvc_http.workers.tasks import Process
from tests.http.calls import assert_failure, upload
from tests.support import encoded

LOSSY = ("jpg", "jp2", "webp", "heic", "avif")
OTHERS = ("png", "apng", "gif", "tiff")
PICTURES = ("png", "png_gray", "png_alpha")


def facts(picture: str, **output: Any) -> dict[str, Any]:
    """What is told of a result."""
    task = Process(name="x.png", spec=parse({"output": output}), limits=Limits())
    before, _ = task.run(getattr(encoded, picture)().data, 1).facts["told"]
    return dict(json.loads(f"{{{before}}}}}")["output"])


@pytest.mark.parametrize("format", LOSSY)
@pytest.mark.parametrize("picture", PICTURES)
def test_lossy_formats_always_have_both(format: str, picture: str) -> None:
    found = facts(picture, format=format)
    assert (type(found["quality"]), type(found["subsample"])) == (int, str)
    assert 1 <= found["quality"] < 100


@pytest.mark.parametrize("format", ["jp2", "webp", "avif"])
@pytest.mark.parametrize("picture", ["png", "png_alpha"])
def test_without_loss_quality_is_100_and_all_color_is_kept(format: str, picture: str) -> None:
    found = facts(picture, format=format, lossless=True)
    assert (found["quality"], found["subsample"]) == (100, "4:4:4")


def test_gray_jpegs_have_no_color() -> None:
    assert facts("png_gray", format="jpg")["subsample"] == "4:0:0"


@pytest.mark.asyncio
async def test_the_schema_holds_results_to_it(client: aiohttp.ClientSession) -> None:
    validator = Draft202012Validator(body_schema(Result))
    for format in (*LOSSY, *OTHERS):
        body = (await upload(client, encoded.png_gray().data, {"output": {"format": format}})).json
        validator.validate(body)
        output, has = body["output"], format in LOSSY
        assert ("quality" in output, "subsample" in output) == (has, has)
        assert has == (FORMATS[format].quality is not None)
        for name, wrong in (("quality", None), ("quality", 0), ("subsample", None), ("subsample", 420)):
            with pytest.raises(ValidationError):
                validator.validate({**body, "output": {**output, name: wrong}})
        if has:
            for name in ("quality", "subsample"):
                less = {key: value for key, value in output.items() if key != name}
                with pytest.raises(ValidationError):
                    validator.validate({**body, "output": less})


@pytest.mark.asyncio
async def test_a_header_and_a_mode_that_contradict_each_other_are_refused(
    client: aiohttp.ClientSession,
) -> None:
    headers = {"X-Svc-Binary": "1"}
    for mode, status in (("json", 422), (None, 200), ("binary", 200)):
        document = {"response": {"mode": mode}}
        reply = await upload(client, encoded.png().data, document, headers=headers)
        assert reply.status == status
        if status == 422:
            (problem,) = reply.metadata["errors"]
            assert problem["path"] == "response.mode"
            assert "json together with the header X-Svc-Binary" in problem["message"]


@pytest.mark.asyncio
@pytest.mark.parametrize("given", [{"webhook": {"url": "https://example.org/"}}])
async def test_what_was_sent_is_blamed(client: aiohttp.ClientSession, given: dict[str, Any]) -> None:
    reply = await upload(client, encoded.png().data, given, headers={"X-Svc-Binary": "1"})
    assert [problem["path"] for problem in reply.metadata["errors"]] == ["X-Svc-Binary"]
    reply = await upload(client, encoded.png().data, {**given, "response": {"mode": "binary"}})
    assert [problem["path"] for problem in reply.metadata["errors"]] == ["response.mode"]


@pytest.mark.asyncio
async def test_unknown_ids_are_refused_at_once_also_with_a_webhook(client: aiohttp.ClientSession) -> None:
    webhook = {"webhook": {"url": "https://example.org/"}}
    reply = await upload(client, encoded.png().data, {**webhook, "watermark": {"id": "none"}})
    assert assert_failure(reply, 422, "invalid_parameter")["errors"][0]["path"] == "watermark.id"
    store = {"provider": "google", "keyfile": "none", "bucket": "cats"}
    reply = await upload(client, encoded.png().data, {**webhook, "store": store})
    assert assert_failure(reply, 422, "invalid_parameter")["errors"][0]["path"] == "store.keyfile"
    assert "none" in json.dumps(reply.json)
