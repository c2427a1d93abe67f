"""Profile pictures of five platforms, from stand-ins on loopback."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from imgsvc_core._runtime.jsontext import SOMETHING
from imgsvc_core.errors import SourceUnreachable, SpecError
from imgsvc_http.fetching.fetcher import Fetcher, shown_url
from imgsvc_http.fetching.social import PLATFORMS, profile_of
from imgsvc_http.settings import FetchSettings, SocialSettings
from imgsvc_http.storage.source_files import SourceFile
from tests.http.sources import serving

pytestmark = pytest.mark.asyncio

EMAIL = hashlib.sha256(b"ada@example.org").hexdigest()
ASKED: list[web.Request] = []


async def picture(request: web.Request) -> web.Response:
    ASKED.append(request)
    return web.Response(body=request.path.encode())


async def redirect(request: web.Request) -> web.Response:
    ASKED.append(request)
    raise web.HTTPFound(f"/picture/{request.match_info['user']}")


async def as_json(request: web.Request) -> web.Response:
    ASKED.append(request)
    user = request.match_info["user"]
    address = f"http://{request.host}/picture/{user}_normal.jpg"
    documents: dict[str, Any] = {
        "nobody": {"data": None},
        "broken": {"data": {"profile_image_url": 7, "user": {"profile_pic_url_hd": "javascript:x"}}},
    }
    found = {"data": {"profile_image_url": address, "user": {"profile_pic_url_hd": address}}}
    if user == "long":
        found["more"] = {"bio": "x" * 2_000_000}
    if user == "html":
        return web.Response(text="<html>")
    return web.json_response(documents.get(user, found))


HANDLERS = {
    "/picture/{name}": picture,
    "/facebook/{user:[0-9]+}": redirect,
    "/github/{user:(?!missing).+}": redirect,
    f"/gravatar/{EMAIL}": picture,
    "/twitter/{user}": as_json,
    "/instagram/{user}": as_json,
}


async def fetch(source: str, folder: Path, *, seconds: float = 5, **tokens: str) -> bytes:
    async with serving(HANDLERS) as url:
        settings = SocialSettings(
            facebook_url=f"{url}/facebook/{{user}}",
            twitter_url=f"{url}/twitter/{{user}}",
            instagram_url=f"{url}/instagram/{{user}}",
            github_url=f"{url}/github/{{user}}",
            gravatar_url=f"{url}/gravatar/{{hash}}",
            **{"twitter_token": "bird", **tokens},
        )
        fetcher = Fetcher(FetchSettings(private_allowed=("127.0.0.1",), total_seconds=seconds), settings)
        ASKED.clear()
        try:
            fetched = await fetcher.fetch(source, {}, lambda _: SourceFile(folder / "picture"), 1000)
            return fetched.path.read_bytes()
        finally:
            await fetcher.close()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("facebook:4", b"/picture/4"),
        ("twitter:ada_l", b"/picture/ada_l.jpg"),
        ("instagram:ada.l", b"/picture/ada.l_normal.jpg"),
        ("github:ada-l", b"/picture/ada-l"),
        ("github:ada-l_acme", b"/picture/ada-l_acme"),
        ("gravatar: Ada@Example.ORG", f"/gravatar/{EMAIL}".encode()),
    ],
)
async def test_each_platform_gives_its_picture(source: str, expected: bytes, tmp_path: Path) -> None:
    assert await fetch(source, tmp_path) == expected
    assert ASKED[0].headers["Cache-Control"] == "no-cache"


async def test_tokens_are_sent_as_the_platform_wants_them(tmp_path: Path) -> None:
    await fetch("facebook:4", tmp_path, facebook_token="to ken")
    assert ASKED[0].query["access_token"] == "to ken"
    await fetch("twitter:ada", tmp_path)
    assert ASKED[0].headers["Authorization"] == "Bearer bird"
    assert "Authorization" not in ASKED[1].headers


async def test_caches_are_passed_by_at_every_hop(tmp_path: Path) -> None:
    async with serving({"/picture/{name}": picture}) as elsewhere:

        async def redirect_away(request: web.Request) -> web.Response:
            raise web.HTTPFound(f"{elsewhere}/picture/x")

        async with serving({"/{user}": redirect_away}) as url:
            settings = SocialSettings(github_url=f"{url}/{{user}}", github_token="secret")
            fetcher = Fetcher(FetchSettings(private_allowed=("127.0.0.1",)), settings)
            ASKED.clear()
            await fetcher.fetch("github:ada", {}, lambda _: SourceFile(tmp_path / "picture"), 1000)
            await fetcher.close()
    assert ASKED[0].headers["Cache-Control"] == "no-cache"
    assert "Authorization" not in ASKED[0].headers


@pytest.mark.parametrize(
    "source",
    ["facebook:ada", "facebook:", "twitter:a b", "twitter:toolongausername", "instagram:a/b", "github:-a",
     "gravatar:nobody", "myspace:tom", "javascript:alert(1)", "data:image/png"],
)  # fmt: skip
async def test_wrong_users_and_platforms_are_wrong_parameters(source: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="Fetch 'url' parameter must be") as caught:
        await fetch(source, tmp_path)
    assert caught.value.problems[0].path == "url"
    assert ASKED == []


@pytest.mark.parametrize("source", ["github:missing", "twitter:nobody", "gravatar:x@y.z"])
async def test_unknown_users_are_told_so(source: str, tmp_path: Path) -> None:
    with pytest.raises(SourceUnreachable, match="check the user"):
        await fetch(source, tmp_path)


@pytest.mark.parametrize("user", ["broken", "html", "long"])
@pytest.mark.parametrize("platform", ["twitter", "instagram"])
async def test_answers_that_name_no_picture_are_told_so(platform: str, user: str, tmp_path: Path) -> None:
    with pytest.raises(SourceUnreachable, match="names no picture"):
        await fetch(f"{platform}:{user}", tmp_path)


@pytest.mark.parametrize("source", ["facebook:4", "twitter:ada"])
async def test_a_missing_token_is_told_so(source: str, tmp_path: Path) -> None:
    """Without one, Facebook gives the same gray silhouette for everybody, and Twitter nothing."""
    fetcher = Fetcher(FetchSettings(), SocialSettings())
    try:
        with pytest.raises(SourceUnreachable, match=rf"social\.{source.partition(':')[0]}_token"):
            await fetcher.fetch(source, {}, lambda _: SourceFile(tmp_path / "picture"), 1000)
    finally:
        await fetcher.close()


@pytest.mark.parametrize("source", ["github:ada", "gravatar:ada@example.org", "instagram:ada"])
async def test_other_platforms_need_no_token(source: str) -> None:
    assert profile_of(source, SocialSettings()).url.startswith("https://")


async def test_an_address_of_the_operator_may_do_without_a_token(tmp_path: Path) -> None:
    assert await fetch("twitter:ada", tmp_path, twitter_token="") == b"/picture/ada.jpg"
    assert "Authorization" not in ASKED[0].headers


async def test_there_are_settings_for_every_platform() -> None:
    for name in PLATFORMS:
        assert getattr(SocialSettings(), f"{name}_url").startswith("https://")
        assert getattr(SocialSettings(), f"{name}_token") == ""


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("GitHub:ada?token=secret", "GitHub:ada"),
        ("github:ada/secret", SOMETHING),
        ("secret:ada", SOMETHING),
        ("https://ada:secret@host.example/p?token=secret#secret", "https://host.example/p"),
        ("https://[secret", SOMETHING),
    ],
)
async def test_messages_name_a_source_without_its_secrets(url: str, shown: str) -> None:
    assert shown_url(url) == shown
