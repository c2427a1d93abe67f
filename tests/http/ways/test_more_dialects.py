"""URLs of ipx, next/image and imagor are answered over HTTP, with their statuses, Vary and cache."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from imgsvc_urls import Signer
from imgsvc_urls.dialects import imagor
from tests.http.service_process import Service, running
from tests.http.ways.conftest import CONFIG, Site, signer_for
from tests.http.ways.test_imgproxy_settings import uploaded_watermark
from tests.http.ways.test_negotiation import CHROME
from tests.http.ways.web_origin import Page, WebOrigin
from tests.support import encoded

pytestmark = pytest.mark.asyncio

SECRET = "lock-key"


@pytest.fixture(scope="session")
def delivering(photos: Path, web: WebOrigin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with these dialects, and with settings of thumbor."""
    folder = tmp_path_factory.mktemp("dialects")
    (folder / "imgsvc.toml").write_text(CONFIG)
    dialects: dict[str, dict[str, Any]] = {
        "ipx": {"base_url": "photos/", "sources": [f"{web.url}/pictures/"], "formats": ["avif", "webp"]},
        "imagor": {
            "keys": [SECRET],
            "unsafe": True,
            "signer_type": "sha256",
            "signer_truncate": 40,
            "base_url": "photos/",
            "auto_webp": True,
        },
        "thumbor": {
            "unsafe": True,
            "allowed_sources": [rf"{re.escape(web.url)}/(a|b)/.+\.png"],
            "stored": "photos/",
            "max_age": 90,
            "respect_orientation": True,
        },
    }
    settings = {
        "delivery.origins": json.dumps({"photos": f"file://{photos}"}),
        "rate.pictures": 10**6,
        "fetch.private_allowed": "127.0.0.1",
    }
    with running(folder / "state", settings) as service:
        dialects["imagor"] |= {"watermarks": {"logo.png": uploaded_watermark(service)}}
        account = json.loads(service.imgsvc("accounts", "list", "--json"))[0]["id"]
    settings |= {"delivery.unsigned": account, "delivery.dialects": json.dumps(dialects)}
    with running(folder / "state", settings, config=folder / "imgsvc.toml") as service:
        yield service


@pytest.fixture(scope="session")
def signer(delivering: Service) -> Signer:
    return signer_for(delivering)


def of_imagor(text: str) -> str:
    """The path of a signed URL of imagor."""
    return f"/imagor/{imagor.sign(SECRET, text, 'sha256', 40)}/{text}"


async def test_the_probe_of_imagor(site: Site) -> None:
    probed = [await site.get("/imagor/healthcheck", method=method) for method in ("GET", "HEAD")]
    assert [reply.status for reply in probed] == [200, 200]


async def test_urls_of_ipx(site: Site) -> None:
    reply = await site.get("/ipx/w_20,f_webp/photo.jpg")
    assert (reply.status, reply.picture.format, reply.picture.size[0]) == (200, "WEBP", 20), reply.body
    assert "Vary" not in reply.headers
    site.web.pages["/pictures/a.png?v=2"] = Page(encoded.jpeg().data, {"Cache-Control": "max-age=60"})
    path = f"/ipx/s_20x10&fit_contain&b_red,f_png/{site.web.url}/pictures/a.png?v=2"
    reply = await site.get(path)
    assert (reply.status, reply.picture.size) == (200, (20, 10)), reply.body
    assert (await site.get(path)).headers["X-Svc-Cache"] == "hit"
    moving = await site.get("/ipx/f_webp,a/moving.gif")
    assert (moving.picture.n_frames > 1, moving.picture.format) == (True, "WEBP")
    still = await site.get("/ipx/f_webp/moving.gif")
    assert still.picture.n_frames == 1


async def test_formats_of_ipx_by_accept(site: Site) -> None:
    for accept, format in ((CHROME, "AVIF"), ("image/webp", "WEBP"), ("*/*", "JPEG")):
        reply = await site.get("/ipx/w_24,f_auto/photo.jpg", Accept=accept)
        assert (reply.picture.format, reply.headers["Vary"]) == (format, "Accept")


async def test_urls_of_next_image(site: Site) -> None:
    path = f"/ipx/_next/image?url={quote('/deep/ü %.png', safe='')}&w=16&q=75"
    for accept, format in ((CHROME, "AVIF"), ("image/webp,*/*", "WEBP"), ("*/*", "PNG")):
        reply = await site.get(path, Accept=accept)
        assert (reply.status, reply.picture.format, reply.picture.size[0]) == (200, format, 16), reply.body
        assert reply.headers["Vary"] == "Accept"
        known = await site.get(path, Accept=accept, If_None_Match=reply.headers["ETag"])
        assert known.status == 304
    moving = await site.get("/ipx/_next/image?url=%2Fmoving.gif&w=16&q=75")
    assert moving.body == (site.photos / "moving.gif").read_bytes()


async def test_regular_expressions_of_sources(site: Site) -> None:
    for path in ("/a/x.png", "/b/x.png", "/c/x.png"):
        site.web.pages[path] = Page(encoded.png().data)
    for path, status in (("a/x.png", 200), ("b/x.png", 200), ("c/x.png", 400)):
        reply = await site.get(f"/thumbor/unsafe/10x10/{site.web.url}/{path}")
        assert reply.status == status, (path, reply.body)


async def test_ids_of_uploaded_images(site: Site) -> None:
    stored = "05d2e1b5a4f34c1b9c7d2f4e6a8b0c1d"
    (site.photos / stored).write_bytes((site.photos / "photo.jpg").read_bytes())
    for image in (stored, f"{stored}/photo.jpg"):
        reply = await site.get(f"/thumbor/unsafe/20x10/{image}")
        assert (reply.status, reply.picture.size) == (200, (20, 10)), reply.body
        assert reply.headers["Cache-Control"] == "public, max-age=90"


async def test_words_of_imagor(site: Site) -> None:
    pytest.importorskip("fontpkg_inter")
    words = ("text(%3Cb%3E+Hi,-9,center,sans-bold-30,white)", "label(Hi,right,bottom,20,red,30)", "invert()")
    asked = [of_imagor(f"90x60/filters:{item}:format(png)/photo.jpg") for item in words]
    replies = [await site.get(path) for path in asked]
    assert [(reply.status, reply.picture.size) for reply in replies] == [(200, (90, 60))] * 3
    assert len({reply.body for reply in replies}) == 3
    assert (await site.get(asked[0])).headers["X-Svc-Cache"] == "hit"
    for wrong, status in (("text(a,0,0,Arial-20)", 400), ("label(a%00b,0,0)", 406)):
        reply = await site.get(of_imagor(f"90x60/filters:{wrong}/photo.jpg"))
        assert (reply.status, reply.json["error"]) == (status, "dialect_error"), reply.body


async def test_urls_of_imagor(site: Site) -> None:
    reply = await site.get(of_imagor("20x10/filters:fill(white):format(png)/photo.jpg"))
    assert (reply.status, reply.picture.format, reply.picture.size) == (200, "PNG", (20, 10)), reply.body
    reply = await site.get(
        "/imagor/unsafe/fit-in/20x20/5x6/filters:fill(red):max_age(60)/photo.jpg", Accept=CHROME
    )
    assert (reply.picture.format, reply.picture.size) == ("WEBP", (30, 32))
    assert (reply.headers["Vary"], reply.headers["Cache-Control"]) == ("Accept", "public, max-age=60")
    over = "image(/8x6/logo.png,0,0):image(/4x4/color:0f0,left,bottom)"
    for path in (
        f"20x10/filters:{over}:format(png)/photo.jpg",
        f"20x10/filters:{over}:format(png)/color:red",
    ):
        laid = await site.get(f"/imagor/unsafe/{path}")
        assert (laid.status, laid.picture.size) == (200, (20, 10)), laid.body
        assert laid.picture.convert("RGB").getpixel((1, 8)) == (0, 255, 0)
        assert (await site.get(f"/imagor/unsafe/{path}")).headers["X-Svc-Cache"] == "hit"
    assert laid.picture.convert("RGB").getpixel((15, 5)) == (255, 0, 0)
    other = await site.get(f"/imagor/unsafe/{path.replace('red', 'blue')}")
    assert other.picture.convert("RGB").getpixel((15, 5)) == (0, 0, 255)
    trimmed = await site.get("/imagor/unsafe/trim:20/fit-in/20x20/photo.jpg")
    assert trimmed.status == 200, trimmed.body


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/ipx/w_abc/photo.jpg", 400, "Modifier 'w' must be"),
        ("/ipx/crop_0_0_9999_9/photo.jpg", 400, "Modifier 'extract' must lie inside"),
        ("/ipx/w_20/nowhere.jpg", 404, "nowhere.jpg"),
        ("/ipx/w_20/text.jpg", 400, ""),
        ("/ipx/w_20/https://other.example/a.jpg", 403, "none of those that this service allows"),
        ("/ipx/_next/image?url=%2Fphoto.jpg&w=20&q=75", 400, "'w' must be one of 16, 32"),
        ("/ipx/_next/image?url=%2Fnowhere.jpg&w=16&q=75", 404, "nowhere.jpg"),
        ("/ipx/_next/image", 400, "'url' is required"),
        (f"/imagor/{'A' * 28}/20x10/photo.jpg", 403, "The signature of the URL is wrong"),
        (of_imagor("20x10/filters:expire(1000)/photo.jpg"), 410, "has expired"),
        (of_imagor("20x10/nowhere.jpg"), 404, "nowhere.jpg"),
        (of_imagor("20x10/text.jpg"), 406, ""),
        ("/imagor/unsafe/20x10/https://a.example/a.jpg", 403, "Unsigned URLs must take their source"),
    ],
)
async def test_statuses_of_those_services(site: Site, path: str, status: int, told: str) -> None:
    reply = await site.get(path)
    assert reply.status == status, reply.body
    assert told in reply.json["message"]


@pytest.mark.parametrize(
    ("page", "path"),
    [
        # as in nuxt/image#435, #801, #815 and #1183, and BuilderIO/builder#559
        ("/pictures/q.png?crop=a&cs=b", "/ipx/_/{site}/pictures/q.png%3Fcrop=a%26cs=b"),
        ("/pictures/o/a%2Fb.png?alt=media", "/ipx/_/{site}/pictures/o/a%252Fb.png%3Falt=media"),
        ("/pictures/UPPER.PNG", "/ipx/w_20/{site}/pictures/UPPER.PNG"),
        ("/pictures/extensionless", "/ipx/w_20&f_webp/{site}/pictures/extensionless"),
        ("/pictures/a%2Fc.png", "/ipx/_next/image?url={quoted}%2Fpictures%2Fa%252Fc.png&w=16&q=75"),
        (
            "/pictures/d.png?a=1&b=2",
            "/ipx/_next/image?url={quoted}%2Fpictures%2Fd.png%3Fa%3D1%26b%3D2&w=16&q=75",
        ),
    ],
)
async def test_encoded_addresses_reach_their_origin_as_they_are(site: Site, page: str, path: str) -> None:
    site.web.pages[page] = Page(encoded.png().data)
    reply = await site.get(path.format(site=site.web.url, quoted=quote(site.web.url, safe="")))
    assert reply.status == 200, reply.body


async def test_a_plus_in_the_name_of_a_file(site: Site) -> None:
    """As in nuxt/image#1378."""
    (site.photos / "f2-a+mber.jpg").write_bytes(encoded.jpeg().data)
    for path in (
        "/ipx/w_20/f2-a%2Bmber.jpg",
        "/ipx/w_20/f2-a+mber.jpg",
        "/imagor/unsafe/20x/f2-a%2Bmber.jpg",
    ):
        assert (await site.get(path)).status == 200, path
