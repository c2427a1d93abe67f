"""Presets of accounts: kept, named in bodies and URLs, and only by their account."""

from __future__ import annotations

import json
from typing import Any

import pytest

from imgsvc_core.errors import SpecError
from imgsvc_http.state import presets
from imgsvc_http.state.accounts import Account
from imgsvc_http.state.database import Database
from imgsvc_urls import Signer
from tests.http.calls import Reply, assert_failure, call, upload
from tests.http.conftest import NOW
from tests.http.ways.conftest import Site
from tests.support import encoded

pytestmark = pytest.mark.asyncio

SMALL = {"resize": {"width": 12}, "output": {"format": "png"}}


async def _call(
    site: Site, method: str, path: str = "", document: Any = None, key: str | None = None
) -> Reply:
    async with site.service.client(key=key) as client:
        options = {} if method != "PUT" else {"json": document}
        return await call(client, method, f"/1.0/presets{path}", **options)


async def test_presets_are_kept_changed_and_deleted(site: Site) -> None:
    made = (await _call(site, "PUT", "/kept", SMALL)).json["preset"]
    assert (made["name"], made["request"], made["created_at"]) == ("kept", SMALL, made["updated_at"])
    changed = (await _call(site, "PUT", "/kept", {"crop": {"mode": "face"}, "mask": None})).json["preset"]
    assert (changed["request"], changed["created_at"]) == ({"crop": {"mode": "face"}}, made["created_at"])
    assert (await _call(site, "GET", "/kept")).json["preset"] == changed
    assert changed in (await _call(site, "GET")).json["presets"]
    assert (await _call(site, "DELETE", "/kept")).json["name"] == "kept"
    for method in ("GET", "DELETE"):
        assert_failure(await _call(site, method, "/kept"), 404, "not_found", "no such preset")


async def test_bodies_and_urls_name_them(site: Site) -> None:
    await _call(site, "PUT", "/small", SMALL)
    async with site.service.client() as client:
        reply = await upload(client, encoded.jpeg().data, {"preset": ["small", "card"]})
    output = reply.json["output"]
    assert (output["format"], output["width"], output["height"]) == ("png", 30, 20)
    picture = (await site.picture("photos/photo.jpg", preset="small")).picture
    assert (picture.format, picture.size[0]) == ("PNG", 12)
    await _call(site, "PUT", "/small", {"resize": {"width": 13}})
    assert (await site.picture("photos/photo.jpg", preset="small")).picture.size[0] == 13
    await _call(site, "DELETE", "/small")
    assert_failure(
        await site.picture("photos/photo.jpg", preset="small"), 422, "invalid_parameter", "no preset"
    )


async def test_their_number_has_a_bound(
    db: Database, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presets, "MOST", 2)
    for name in ("one", "two", "one"):
        await presets.put(db, account.id, name, SMALL, NOW)
    with pytest.raises(SpecError, match="at most 2 presets: delete one before you add 'three'"):
        await presets.put(db, account.id, "three", SMALL, NOW)


async def test_one_of_the_account_wins_over_one_of_the_settings(site: Site) -> None:
    await _call(site, "PUT", "/card", {"resize": {"width": 14}})
    try:
        assert (await site.picture("photos/photo.jpg", preset="card")).picture.size[0] == 14
    finally:
        await _call(site, "DELETE", "/card")
    assert (await site.picture("photos/photo.jpg", preset="card")).picture.size == (30, 20)


async def test_other_accounts_know_nothing_of_them(site: Site, signer: Signer) -> None:
    await _call(site, "PUT", "/mine", SMALL)
    other = site.service.new_key()
    assert (await _call(site, "GET", key=other)).json["presets"] == []
    for method in ("GET", "DELETE"):
        assert (await _call(site, method, "/mine", key=other)).status == 404
    async with site.service.client(key=other) as client:
        reply = await upload(client, encoded.jpeg().data, {"preset": "mine"})
    assert_failure(reply, 422, "invalid_parameter", "There is no preset 'mine'; known are auto, card")
    assert (await _call(site, "GET", "/mine")).status == 200


@pytest.mark.parametrize(
    ("name", "document", "path", "told"),
    [
        ("Card", SMALL, "", "must have a name of"),
        ("x" * 64, SMALL, "", "must have a name of"),
        (
            "wrong",
            {"resize": {"width": -1}},
            "resize.width",
            "Resize 'width' parameter must be",
        ),
        ("wrong", {"resice": {}}, "resice", "did you mean 'resize'?"),
        ("wrong", {"preset": "card"}, "preset", "cannot name other presets"),
        ("wrong", {"url": "https://example.org"}, "url", "The preset has no 'url'"),
        ("wrong", [], "", "must be an object"),
    ],
)
async def test_wrong_presets_are_refused(site: Site, name: str, document: Any, path: str, told: str) -> None:
    reply = await _call(site, "PUT", f"/{name}", document)
    assert_failure(reply, 422, "invalid_parameter", told)
    assert [problem["path"] for problem in reply.json["errors"]] == [path]
    assert (await _call(site, "GET", f"/{name}")).status == 404


async def test_a_key_needs_the_scope_of_the_account(site: Site) -> None:
    id_ = json.loads(site.service.imgsvc("accounts", "list", "--json"))[0]["id"]
    made = json.loads(site.service.imgsvc("keys", "create", id_, "--scope", "process", "--json"))
    assert_failure(await _call(site, "PUT", "/x", SMALL, key=made["secret"]), 403, "insufficient_scope")
