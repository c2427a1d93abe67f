"""Settings of imgproxy, over HTTP: sources, formats, hints, presets, a secret, and its watermark."""

from __future__ import annotations

import io
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image

from imgsvc_urls import Signer
from tests.dialects.test_imgproxy_settings import KEY, encrypted
from tests.http.calls import Reply
from tests.http.service_process import Service, running
from tests.http.ways.conftest import Site, signer_for
from tests.http.ways.web_origin import Page, WebOrigin
from tests.support import encoded

pytestmark = pytest.mark.asyncio

SECRET = "open sesame"
RED = (255, 0, 0)
MARK = Image.new("RGB", (10, 6), RED)


@pytest.fixture(scope="session")
def delivering(photos: Path, web: WebOrigin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that answers imgproxy's URLs with the settings of a site that moved."""
    folder = tmp_path_factory.mktemp("imgproxy")
    (folder / "presets").write_text("# sizes\ncard=rs:fill:30:20\n\nwide = w:90\n")
    Image.new("RGB", (120, 80), (255, 255, 255)).save(photos / "white.png")
    settings = {
        "delivery.origins": json.dumps({"photos": f"file://{photos}"}),
        "rate.pictures": 10**6,
        "fetch.private_allowed": "127.0.0.1",
    }
    with running(folder / "state", settings) as service:
        mark = uploaded_watermark(service)
        account = json.loads(service.imgsvc("accounts", "list", "--json"))[0]["id"]
    dialect: dict[str, Any] = {
        "account": account,
        "secret": SECRET,
        "presets_path": str(folder / "presets"),
        "origins": {"local:///": "photos", "s3://shop/": "photos/deep"},
        "url_replacements": {"old://*/": "${1}:///"},
        "base_url": ["local:///", "s3://", "http://"],
        "allowed_sources": ["http://127.0.0.*/pictures-*/", "local:", "s3://shop/"],
        "source_url_encryption_key": KEY,
        "auto_webp": True,
        "enforce_avif": True,
        "client_hints": True,
        "ttl": 77,
        "cache_control_passthrough": True,
        "watermark": mark,
    }
    dialects = {"delivery.dialects": json.dumps({"imgproxy": dialect})}
    with running(folder / "state", {**settings, **dialects}) as service:
        yield service


def uploaded_watermark(service: Service) -> str:
    """The id of a new watermark of the first account."""
    file = io.BytesIO()
    MARK.save(file, "png")
    start = b'--x\r\nContent-Disposition: form-data; name="file"; filename="mark.png"\r\n\r\n'
    request = urllib.request.Request(
        f"{service.url}/1.0/watermarks",
        start + file.getvalue() + b"\r\n--x--\r\n",
        {"Content-Type": "multipart/form-data; boundary=x", "Authorization": f"Bearer {service.key}"},
    )
    with urllib.request.urlopen(request, context=service.tls) as response:
        return str(json.load(response)["watermark"]["id"])


@pytest.fixture(scope="session")
def signer(delivering: Service) -> Signer:
    return signer_for(delivering)


async def get(site: Site, rest: str, **headers: str) -> Reply:
    return await site.get(f"/imgproxy/_/{rest}", Authorization=f"Bearer {SECRET}", **headers)


@pytest.mark.parametrize(
    "source",
    ["local:///photo.jpg", "photo.jpg", "old://local/photo.jpg", "local:///photo.jpg%3Fv=2"],
)
async def test_sources_of_those_who_move(site: Site, source: str) -> None:
    reply = await get(site, f"w:20/plain/{source}")
    assert (reply.status, reply.picture.format, reply.picture.width) == (200, "JPEG", 20), reply.body


async def test_a_folder_of_an_origin(site: Site) -> None:
    name = quote("ü %.png")
    reply = await get(site, f"w:20/plain/s3://shop/{name}")
    assert (reply.status, reply.picture.format) == (200, "PNG"), reply.body
    assert (await get(site, "w:20/plain/s3://shop/photo.jpg")).status == 404
    assert (await get(site, "w:20/plain/s3://other/photo.jpg")).status == 404


async def test_encrypted_sources(site: Site) -> None:
    reply = await get(site, f"w:20/enc/{encrypted('local:///photo.jpg')}.png")
    assert (reply.status, reply.picture.format) == (200, "PNG")
    assert (await get(site, f"w:20/enc/{encrypted('local:///photo.jpg')[:-8]}")).status == 404


async def test_wildcards_in_allowed_sources(site: Site) -> None:
    for path in ("/pictures-a/a.jpg", "/pictures-a/deep/a.jpg", "/private/a.jpg"):
        site.web.pages[path] = Page(encoded.jpeg().data)
    for path, status in (
        ("/pictures-a/a.jpg", 200),
        ("/pictures-a/deep/a.jpg", 200),
        ("/private/a.jpg", 404),
        ("/pictures-a/../private/a.jpg", 404),
        ("/private/pictures-a/a.jpg", 404),
    ):
        reply = await get(site, f"w:20/plain/{site.web.url}{path}")
        assert reply.status == status, (path, reply.body)
    assert not any("private" in line for line in site.web.log)


async def test_requests_need_the_secret(site: Site) -> None:
    path = "/imgproxy/_/w:21/plain/photo.jpg"
    first = await get(site, "w:21/plain/photo.jpg")
    assert (first.status, first.headers["X-Svc-Cache"]) == (200, "miss")
    assert (await get(site, "w:21/plain/photo.jpg")).headers["X-Svc-Cache"] == "hit"
    assert "Authorization" in first.headers["Vary"]
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"If_None_Match": first.headers["ETag"]}):
        reply = await site.get(path, **headers)
        assert (reply.status, reply.headers["Cache-Control"]) == (403, "no-store")
        assert SECRET not in reply.body.decode()


@pytest.mark.parametrize(
    ("accept", "source", "format"),
    [
        ("image/webp,*/*", "photo.jpg", "WEBP"),
        ("image/webp,*/*", "photo.jpg@png", "PNG"),
        ("image/avif,image/webp", "photo.jpg", "AVIF"),
        ("image/avif,image/webp", "photo.jpg@png", "AVIF"),
        ("image/avif,image/webp", "moving.gif", "WEBP"),
        ("*/*", "photo.jpg", "JPEG"),
    ],
)
async def test_formats_that_are_preferred_and_enforced(
    site: Site, accept: str, source: str, format: str
) -> None:
    replies = [await get(site, f"w:32/plain/{source}", Accept=accept) for _ in range(2)]
    for reply in replies:
        assert (reply.status, reply.picture.format) == (200, format)
        assert reply.headers["Vary"].split(", ")[-1] == "Accept"
    assert replies[1].headers["X-Svc-Cache"] == "hit"


async def test_client_hints_are_defaults(site: Site) -> None:
    for headers, options, width in (
        ({"DPR": "2", "Width": "40"}, "", 40),
        ({"DPR": "2"}, "w:20/", 40),
        ({"Sec_CH_DPR": "1", "DPR": "2"}, "w:20/", 20),
        ({"Sec_CH_Width": "50"}, "", 50),
        ({"Sec_CH_Width": "50"}, "w:30/", 30),
        ({}, "w:20/", 20),
    ):
        reply = await get(site, f"{options}plain/photo.jpg", **headers)
        assert reply.picture.width == width, (headers, options)
        assert {"Sec-CH-DPR", "DPR", "Sec-CH-Width", "Width"} <= set(reply.headers["Vary"].split(", "))
        again = await get(site, f"{options}plain/photo.jpg", **headers)
        assert (again.headers["X-Svc-Cache"], again.body) == ("hit", reply.body)


async def test_presets_of_a_file_and_ages(site: Site) -> None:
    reply = await get(site, "pr:card/plain/photo.jpg")
    assert (reply.picture.size, reply.headers["Cache-Control"]) == ((30, 20), "public, max-age=77")
    assert (await get(site, "pr:wide/plain/photo.jpg")).picture.width == 90
    assert (await get(site, "pr:none/plain/photo.jpg")).status == 404


async def test_the_age_of_a_source_comes_before_the_usual_one(site: Site) -> None:
    for age, bounds in (("max-age=500", range(495, 501)), (None, range(77, 78)), ("no-store", None)):
        headers = {} if age is None else {"Cache-Control": age}
        site.web.pages["/pictures-a/b.jpg"] = Page(encoded.jpeg().data, headers)
        for _ in range(2):
            reply = await get(site, f"w:20/cb:{age}/plain/{site.web.url}/pictures-a/b.jpg")
            found = reply.headers["Cache-Control"]
            assert found == "no-store" if bounds is None else int(found.rpartition("=")[2]) in bounds


async def red(site: Site, options: str) -> np.ndarray[Any, Any]:
    """Where the white picture of 120 by 80 is red."""
    reply = await get(site, f"{options}/plain/white.png")
    assert reply.status == 200, reply.body
    return np.asarray(reply.picture.convert("RGB"))[..., 1] < 128


async def test_watermarks_at_a_distance_of_each_side(site: Site) -> None:
    found = await red(site, "wm:1:soea:7:11")
    assert (found.sum(), found[80 - 11 - 6 : 80 - 11, 120 - 7 - 10 : 120 - 7].all()) == (60, True)


async def test_repeated_watermarks(site: Site) -> None:
    found = await red(site, "wm:1:re:10:14")
    assert found.sum() == 60 * 24  # the tiles at the edges are cut in half
    assert np.array_equal(found[:-20], found[20:])
    assert np.array_equal(found[:, :-20], found[:, 20:])


async def test_enlarged_watermarks(site: Site) -> None:
    found = await red(site, "wm:1:nowe:0:0:0.5")
    assert found[:36, :60].all()
    assert found.sum() == 36 * 60
