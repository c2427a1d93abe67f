"""URLs of imgproxy and thumbor are answered like our own: with signatures, origins, cache and quota."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image

from imgsvc_urls import Signer
from imgsvc_urls.dialects import imgproxy, thumbor
from tests.http.service_process import Service, running
from tests.http.ways.conftest import CONFIG, Site, new_account, signer_for
from tests.http.ways.test_negotiation import CHROME
from tests.http.ways.web_origin import Page, WebOrigin
from tests.support import encoded

pytestmark = pytest.mark.asyncio

KEY, SALT, SECRET = "6c6f636b2d6b6579", "73616c742d31", "lock-key"


@pytest.fixture(scope="session")
def delivering(photos: Path, web: WebOrigin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that answers URLs of imgproxy with signatures only, and unsigned ones of thumbor too."""
    folder = tmp_path_factory.mktemp("dialects")
    (folder / "imgsvc.toml").write_text(CONFIG)
    dialects = {
        "imgproxy": {
            "account": new_account(folder / "state"),
            "keys": [KEY],
            "salts": [SALT],
            "presets": ["card=rs:fill:30:30"],
        },
        "thumbor": {
            "keys": [SECRET],
            "unsafe": True,
            "auto_webp": True,
            "base_url": "photos/",
            "sources": [f"{web.url}/pict*es/"],
        },
    }
    settings = {
        "delivery.origins": json.dumps({"photos": f"file://{photos}"}),
        "rate.pictures": 10**6,
        "delivery.unsigned": dialects["imgproxy"]["account"],
        "delivery.dialects": json.dumps(dialects),
        "fetch.private_allowed": "127.0.0.1",
    }
    with running(folder / "state", settings, config=folder / "imgsvc.toml") as service:
        yield service


@pytest.fixture(scope="session")
def signer(delivering: Service) -> Signer:
    return signer_for(delivering)


def of_imgproxy(text: str) -> str:
    """The path of a signed URL of imgproxy."""
    return f"/imgproxy/{imgproxy.sign(bytes.fromhex(KEY), bytes.fromhex(SALT), text)}{text}"


def of_thumbor(text: str) -> str:
    """The path of a signed URL of thumbor."""
    return f"/thumbor/{thumbor.sign(SECRET, text)}/{text}"


@pytest.mark.parametrize(
    ("path", "status"),
    [("/imgproxy/health", 200), ("/thumbor/healthcheck", 200), ("/imgproxy/healthcheck", 403)],
)
async def test_probes_of_those_services(site: Site, path: str, status: int) -> None:
    assert (await site.get(path)).status == status


async def test_urls_of_imgproxy(site: Site) -> None:
    site.web.pages["/pictures/a.png"] = Page(encoded.jpeg().data, {"Cache-Control": "max-age=60"})
    path = of_imgproxy(f"/rs:fill:20:10/fn:shoe/plain/{site.web.url}/pictures/a.png@webp")
    reply = await site.get(path)
    assert (reply.status, reply.headers["Content-Type"]) == (200, "image/webp")
    assert reply.picture.size == (20, 10)
    assert reply.headers["Content-Disposition"] == 'inline; filename="shoe.webp"'
    assert reply.headers["Access-Control-Allow-Origin"] == "*"
    assert reply.headers["X-Svc-Cache"] == "miss"
    assert (await site.get(path)).headers["X-Svc-Cache"] == "hit"
    known = await site.get(path, If_None_Match=reply.headers["ETag"])
    assert (known.status, known.body) == (304, b"")
    version = await site.get(of_imgproxy(f"/cb:2/w:20/plain/{site.web.url}/pictures/a.png"))
    assert version.headers["Cache-Control"] == "public, max-age=86400"
    assert (await site.get(of_imgproxy(f"/pr:card/plain/{site.web.url}/pictures/a.png"))).picture.size == (
        30,
        30,
    )


async def test_what_only_dialects_ask_for_travels_to_the_worker(site: Site) -> None:
    site.web.pages["/pictures/turned.jpg"] = Page(encoded.jpeg_oriented().data)
    height, width, _ = encoded.jpeg_oriented().pixels.shape
    source = f"plain/{site.web.url}/pictures/turned.jpg"
    stored = await site.get(of_imgproxy(f"/ar:0/bl:2/{source}"))
    assert stored.picture.size == (width, height)
    assert (await site.get(of_imgproxy(f"/bl:2/{source}"))).picture.size == (height, width)
    sharper = await site.get(of_imgproxy(f"/ar:0/bl:1/{source}"))
    assert sharper.headers["ETag"] != stored.headers["ETag"]
    assert sharper.body != stored.body


async def test_trim_is_planned_for_what_is_left(site: Site) -> None:
    file = io.BytesIO()
    framed = Image.new("RGB", (50, 40), "white")
    framed.paste("navy", (6, 8, 36, 28))
    framed.save(file, "PNG")
    site.web.pages["/pictures/framed.png"] = Page(file.getvalue())
    reply = await site.get(of_imgproxy(f"/t:10/w:15/pd:2/plain/{site.web.url}/pictures/framed.png"))
    assert (reply.status, reply.picture.size) == (200, (19, 14))


async def test_urls_of_thumbor(site: Site) -> None:
    reply = await site.get(of_thumbor("20x10/filters:max_age(60):format(png)/photo.jpg"))
    assert (reply.status, reply.picture.format, reply.picture.size) == (200, "PNG", (20, 10))
    assert reply.headers["Cache-Control"] == "public, max-age=60"
    reply = await site.get("/thumbor/unsafe/fit-in/50x10/deep/%C3%BC%20%25.png")
    assert (reply.status, reply.picture.format) == (200, "PNG")
    assert reply.picture.size[1] == 10


async def test_the_format_that_a_browser_accepts(site: Site) -> None:
    path = of_thumbor("22x10/photo.jpg")
    for accept, format in ((CHROME, "WEBP"), ("image/webp;q=0,*/*", "JPEG"), ("*/*", "JPEG")):
        reply = await site.get(path, Accept=accept)
        assert (reply.picture.format, reply.headers["Vary"]) == (format, "Accept")
        known = await site.get(path, Accept=accept, If_None_Match=reply.headers["ETag"])
        assert (known.status, known.headers["Vary"]) == (304, "Accept")
    named = await site.get(of_thumbor("22x10/filters:format(png)/photo.jpg"), Accept=CHROME)
    assert named.picture.format == "PNG"
    assert "Vary" not in named.headers


async def test_facts_of_thumbor(site: Site) -> None:
    reply = await site.get(of_thumbor("meta/fit-in/20x10/photo.jpg"))
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json")
    assert reply.json["thumbor"]["source"]["url"] == "photo.jpg"
    assert reply.json["thumbor"]["operations"][0]["type"] == "resize"
    known = await site.get(of_thumbor("meta/fit-in/20x10/photo.jpg"), If_None_Match=reply.headers["ETag"])
    assert known.status == 304


async def test_files_that_are_not_processed(site: Site) -> None:
    site.web.pages["/pictures/b.png"] = Page(encoded.png().data)
    reply = await site.get(of_imgproxy(f"/raw:1/w:3/plain/{site.web.url}/pictures/b.png"))
    assert (reply.status, reply.headers["Content-Type"]) == (200, "image/png")
    assert reply.body == encoded.png().data
    site.web.pages["/pictures/c.txt"] = Page(b"no picture")
    assert (await site.get(of_imgproxy(f"/raw:1/plain/{site.web.url}/pictures/c.txt"))).status == 422


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        (of_imgproxy("/w:-5/plain/https://a.example/a.jpg"), 404, "Option 'w' must be"),
        (of_imgproxy("/exp:1000000/plain/https://a.example/a.jpg"), 404, "has expired"),
        (of_imgproxy("/w:5/plain/a.jpg"), 404, "The source of the URL must be"),
        ("/imgproxy/unsafe/w:5/plain/https://a.example/a.jpg", 403, "The signature of the URL is wrong"),
        ("/imgproxy/", 403, "The signature of the URL is wrong"),
        ("/thumbor/AAAA/20x10/photo.jpg", 400, "The signature of the URL is wrong"),
        ("/thumbor/unsafe/debug/photo.jpg", 400, "'debug' is not supported"),
        ("/thumbor/unsafe/20x10/..%2Fsecret.jpg", 400, "must be a path below the origin 'photos'"),
        ("/thumbor/unsafe/20x10/nowhere.jpg", 404, "nowhere.jpg"),
        ("/thumbor/unsafe/20x10/https://a.example/a.jpg", 403, "none of those that this service allows"),
        (of_thumbor("20x10/https://a.example/a.jpg"), 403, "none of those that this service allows"),
        (of_thumbor("20x10/filters:fill(nocolor)/photo.jpg"), 400, "Filter 'fill' of thumbor"),
    ],
)
async def test_wrong_urls_are_answered_with_the_status_of_the_service(
    site: Site, path: str, status: int, told: str
) -> None:
    reply = await site.get(path)
    assert reply.status == status, reply.body
    assert told in reply.json["message"]
    assert reply.headers["Cache-Control"] in ("no-store", "public, max-age=60")


@pytest.mark.parametrize(
    "climbing",
    ["../a.jpg", "x/../../a.jpg", "%2e%2e/a.jpg", "..%2fa.jpg", "%252e%252e%252fa.jpg", "..\\a.jpg"],
)
async def test_an_allowed_source_cannot_be_left_upwards(site: Site, climbing: str) -> None:
    site.web.pages["/a.jpg"] = Page(encoded.jpeg().data)
    reply = await site.get(f"/thumbor/unsafe/20x10/{site.web.url}/pictures/{climbing}")
    assert reply.status in (400, 403), reply.body
    assert not any("a.jpg" in line for line in site.web.log)


async def test_dots_and_percent_signs_of_names_are_allowed(site: Site) -> None:
    for name in ("..a..jpg", "100%25.jpg"):
        site.web.pages[f"/pictures/{name}"] = Page(encoded.jpeg().data)
        reply = await site.get(f"/thumbor/unsafe/20x10/{site.web.url}/pictures/{quote(name)}")
        assert reply.status == 200, reply.body


async def test_what_is_not_possible_is_told_once_the_picture_is_known(site: Site) -> None:
    site.web.pages["/pictures/d.jpg"] = Page(encoded.jpeg().data)
    reply = await site.get(of_imgproxy(f"/w:20/plain/{site.web.url}/pictures/d.jpg@svg"))
    assert reply.status == 422
    assert reply.json["message"].startswith("Option 'format' of imgproxy")


async def test_pictures_are_paid_for_once(site: Site) -> None:
    before = json.loads(site.service.imgsvc("accounts", "list", "--json"))
    for _ in range(3):
        assert (await site.get(of_thumbor("21x11/photo.jpg"))).status == 200
    after = json.loads(site.service.imgsvc("accounts", "list", "--json"))
    assert sum(item["used"] for item in after) == sum(item["used"] for item in before) + 1


async def test_scripts_may_load_pictures(site: Site) -> None:
    reply = await site.get("/imgproxy/any/path", method="OPTIONS")
    assert (reply.status, reply.headers["Access-Control-Allow-Methods"]) == (204, "GET, HEAD")
    assert (await site.get(of_thumbor("20x10/photo.jpg"), method="HEAD")).status == 200


async def test_secrets_are_not_shown(site: Site) -> None:
    shown = site.service.imgsvc("serve", "--print-config")
    assert "imgproxy" in shown
    assert not any(secret in shown for secret in (KEY, SALT, SECRET))
