"""GET /1.0/info/...: what the picture of a URL shows, with the signature and the grammar of the picture."""

from __future__ import annotations

import jsonschema
import pytest

import imgsvc_core as imgsvc
from imgsvc_http.answering.answers import Info
from imgsvc_http.answering.json_schema import body_schema
from imgsvc_urls import INFO_ROOT, ROOT, sign
from tests.http.ways.conftest import Site

pytestmark = pytest.mark.asyncio


def told(url: str) -> str:
    return url.replace(ROOT, INFO_ROOT, 1)


async def test_the_url_of_a_picture_tells_of_it(site: Site) -> None:
    picture = site.signer.url("photos/photo.jpg", resize="40x", facts=list(imgsvc.FACTS))
    assert told(picture) == site.signer.info("photos/photo.jpg", resize="40x", facts=list(imgsvc.FACTS))
    reply = await site.get(told(picture))
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json")
    jsonschema.validate(reply.json, body_schema(Info))
    source = (site.photos / "photo.jpg").read_bytes()
    asked = {"resize": {"width": 40}, "output": {"facts": list(imgsvc.FACTS)}}
    result = imgsvc.process(source, asked)
    assert reply.json["output"] == {
        "width": result.output.width,
        "height": result.output.height,
        "frames": 1,
        "facts": result.output.facts,
    }
    assert reply.json["input"]["sha256"] == imgsvc.inspect(source, digest=True).sha256
    assert reply.json["input"]["name"] == "photo.jpg"
    assert "/facts:blurhash%2Cthumbhash%2C" in picture
    got = await site.get(picture)
    assert got.headers["Content-Type"] == "image/jpeg"
    assert got.body == (await site.picture("photos/photo.jpg", resize="40x")).body
    assert got.headers["ETag"] != reply.headers["ETag"]


async def test_a_source_is_told_of_without_any_operation(site: Site) -> None:
    reply = await site.get(told(site.signer.url("photos/moving.gif", facts=["dominant"])))
    source = (site.photos / "moving.gif").read_bytes()
    info = imgsvc.inspect(source, facts=["dominant"])
    assert reply.json["output"] == {
        "width": info.width,
        "height": info.height,
        "frames": info.frames,
        "facts": info.facts,
    }
    plain = await site.get(told(site.signer.url("photos/moving.gif")))
    assert plain.json["output"] == {**reply.json["output"], "facts": {}}


async def test_it_is_cached_and_counted_as_a_picture(site: Site) -> None:
    used = await site.used()
    url = told(site.signer.url("photos/photo.jpg", resize="41x", facts=["gray"]))
    first = await site.get(url)
    assert (first.headers["X-Svc-Cache"], await site.used()) == ("miss", used + 1)
    again = await site.get(url)
    assert (again.headers["X-Svc-Cache"], again.body, await site.used()) == ("hit", first.body, used + 1)
    known = await site.get(url, If_None_Match=first.headers["ETag"])
    assert (known.status, known.body) == (304, b"")
    head = await site.get(url, method="HEAD")
    assert (head.status, head.headers["Content-Length"]) == (200, str(len(first.body)))


async def test_signatures_are_those_of_pictures(site: Site) -> None:
    url = told(site.signer.url("photos/photo.jpg", resize="42x"))
    assert (await site.get(url.replace("42x", "43x"))).status == 403
    assert (await site.get(f"{INFO_ROOT}/unsigned/facts:gray/photos/photo.jpg")).status == 403


@pytest.mark.parametrize(
    ("source", "options", "status"),
    [
        ("photos/none.jpg", {}, 404),
        ("photos/text.jpg", {}, 424),
        ("photos/broken.jpg", {"facts": ["gray"]}, 424),
        ("photos/photo.jpg", {"crop": "9000x9000", "crop-x": 9000, "facts": ["gray"]}, 422),
    ],
)
async def test_errors_are_json(site: Site, source: str, options: dict[str, object], status: int) -> None:
    reply = await site.get(told(site.signer.url(source, **options)))  # type: ignore[arg-type]
    assert reply.status == status, reply.body
    assert reply.json["success"] is False
    assert reply.headers["Access-Control-Allow-Origin"] == "*"


async def test_wrong_facts_are_named(site: Site) -> None:
    text = "/facts:grey/photos/photo.jpg"
    assert site.signer.secret is not None
    url = f"{INFO_ROOT}/{site.signer.key_id}.{sign(site.signer.secret, text)}{text}"
    reply = await site.get(url)
    assert reply.status == 422
    assert reply.json["errors"][0]["path"] == "output.facts"


async def test_scripts_of_other_sites_may_ask(site: Site) -> None:
    reply = await site.get(f"{INFO_ROOT}/unsigned/preset:none/photos/photo.jpg", Origin="https://example.org")
    assert reply.headers["Content-Type"].startswith("application/json")
    preflight = await site.get(f"{INFO_ROOT}/unsigned/photos/photo.jpg", method="OPTIONS")
    assert (preflight.status, preflight.headers["Access-Control-Allow-Origin"]) == (204, "*")
