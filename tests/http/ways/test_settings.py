"""Settings of the delivery: unsigned URLs, presets only, client hints, and a picture instead of errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from imgsvc_urls import Signer
from tests.http.service_process import Service, ended, running
from tests.http.ways.conftest import CONFIG, Site, new_account, signer_for
from tests.http.ways.web_origin import WebOrigin
from tests.support import encoded

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="session")
def delivering(photos: Path, web: WebOrigin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that is open to unsigned URLs, with presets only."""
    folder = tmp_path_factory.mktemp("open")
    (folder / "imgsvc.toml").write_text(CONFIG)
    (folder / "error.webp").write_bytes(encoded.webp().data)
    settings = {
        "delivery.origins": json.dumps({"photos": f"file://{photos}"}),
        "delivery.unsigned": new_account(folder / "state"),
        "delivery.presets_only": "true",
        "delivery.client_hints": "true",
        "delivery.max_age": 60,
        "delivery.fallback": folder / "error.webp",
    }
    with running(folder / "state", settings, config=folder / "imgsvc.toml") as service:
        yield service


@pytest.fixture(scope="session")
def signer(delivering: Service) -> Signer:
    return signer_for(delivering)


async def test_unsigned_urls_with_presets_are_answered_and_paid_for(site: Site) -> None:
    reply = await site.get("/1.0/image/unsigned/preset:card/dpr:2/photos/photo.jpg")
    assert (reply.status, reply.picture.size) == (200, (60, 40))
    assert reply.headers["Cache-Control"] == "public, max-age=60"
    accounts = json.loads(site.service.imgsvc("accounts", "list", "--json"))
    assert [account["used"] for account in accounts] == [1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/resize:20x/photos/photo.jpg", "must name presets only, got the option 'resize'"),
        ("/preset:card/quality:5/photos/photo.jpg", "must name presets only, got the option 'quality'"),
        (
            "/preset:card/plain/https%3A%2F%2Fexample.org%2Fa.jpg",
            "must take their source from a named origin",
        ),
    ],
)
async def test_unsigned_urls_that_ask_for_more_are_refused(site: Site, text: str, told: str) -> None:
    reply = await site.get(f"/1.0/image/unsigned{text}")
    assert reply.status == 403
    assert told in reply.metadata["message"]


async def test_signed_urls_have_presets_only_if_the_settings_say_so(site: Site) -> None:
    assert (await site.picture("photos/photo.jpg", preset="card")).status == 200
    reply = await site.picture("photos/photo.jpg", preset="card", sepia=5)
    assert reply.status == 422
    assert reply.metadata["errors"] == [
        {
            "path": "sepia",
            "message": "Option 'sepia' must be part of a preset, since this service allows presets only",
        }
    ]


async def test_errors_are_shown_as_a_picture_with_their_status(site: Site) -> None:
    for url, status, slug in (
        ("/1.0/image/unsigned/photos/nothing.jpg", 404, "source_unreachable"),
        ("/1.0/image/forged/photos/photo.jpg", 403, "invalid_signature"),
        ("/1.0/image/unsigned/preset:nothing/photos/photo.jpg", 422, "invalid_parameter"),
        (site.signer.url("photos/photo.jpg", expires=5), 410, "url_expired"),
    ):
        reply = await site.get(url)
        assert (reply.status, reply.headers["Content-Type"]) == (status, "image/webp")
        assert reply.body == encoded.webp().data
        assert reply.metadata["error"] == slug
        assert reply.headers["Cache-Control"] == ("public, max-age=60" if status == 404 else "no-store")


async def test_client_hints_choose_the_size(site: Site) -> None:
    url = site.signer.url("photos/photo.jpg", preset="card")
    reply = await site.get(url, Sec_CH_DPR="2")
    assert (reply.picture.size, reply.headers["Content-DPR"]) == ((60, 40), "2")
    assert reply.headers["Vary"] == "Save-Data, Sec-CH-DPR"
    assert reply.headers["Accept-CH"] == "Sec-CH-DPR, Sec-CH-Width"
    assert (await site.get(url)).picture.size == (30, 20)
    auto = site.signer.url("photos/photo.jpg", preset="auto")
    wide = await site.get(auto, Sec_CH_Width="33", Accept="image/webp")
    assert (wide.picture.size[0], wide.headers["Content-Type"]) == (64, "image/webp")
    assert wide.headers["Vary"] == "Accept, Save-Data, Sec-CH-DPR, Sec-CH-Width"
    small = await site.get(auto, Save_Data="on", Accept="image/webp")
    assert len(small.body) < len((await site.get(auto, Accept="image/webp")).body)


@pytest.mark.parametrize("text", ["no picture", None])
async def test_a_fallback_that_is_no_picture_is_told_at_the_start(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "fallback.png"
    if text is not None:
        file.write_text(text)
    refused = _refused_start(tmp_path, "delivery.fallback", str(file))
    assert "Setting 'delivery.fallback' must be the file of a picture" in refused


@pytest.mark.parametrize(
    ("setting", "value", "path"),
    [
        ("delivery.unsigned", "nobody", "delivery.unsigned"),
        ("delivery.dialects", '{"thumbor": {"account": "nobody"}}', "delivery.dialects.thumbor.account"),
    ],
)
async def test_an_unknown_account_is_told_at_the_start(
    tmp_path: Path, setting: str, value: str, path: str
) -> None:
    told = _refused_start(tmp_path, setting, value)
    assert (
        f"Setting '{path}' must be the id of an account, which 'imgsvc accounts list' shows, got 'nobody'"
        in told
    )


def _refused_start(folder: Path, setting: str, value: str) -> str:
    """What the service says that does not start with a setting."""
    settings = {setting: value, "server.state_folder": folder / "state"}
    flags = [part for name, given in settings.items() for part in ("--set", f"{name}={given}")]
    code, told = ended(folder / "log", *flags)
    assert code == 2
    return told
