"""Watermarks of accounts."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest

import imgsvc_core as imgsvc
from imgsvc_http.state import accounts, watermarks
from imgsvc_http.state.accounts import Account
from imgsvc_http.state.database import Database
from tests.http.conftest import NOW
from tests.support import encoded

pytestmark = pytest.mark.asyncio


async def test_watermarks_come_back_to_their_account_only(db: Database, account: Account) -> None:
    other = await accounts.create(db, company="B", plan="p", period="monthly", quota=5, now=NOW)
    pictures = [encoded.png().data, encoded.webp().data]
    added = [
        await watermarks.add(
            db, account.id, data, imgsvc.inspect(data).to_dict(), NOW + timedelta(seconds=index)
        )
        for index, data in enumerate(pictures)
    ]
    assert [item.info["format"] for item in added] == ["png", "webp"]
    assert [item.sha256 for item in added] == [hashlib.sha256(data).hexdigest() for data in pictures]
    assert await watermarks.WATERMARKS.list_all(db, account.id) == added
    assert await watermarks.WATERMARKS.get(db, account.id, added[0].id) == added[0]
    assert [await watermarks.data(db, account.id, item.id) for item in added] == pictures
    for account_id, watermark_id in ((other.id, added[0].id), (account.id, "nothing")):
        assert await watermarks.WATERMARKS.get(db, account_id, watermark_id) is None
        assert await watermarks.data(db, account_id, watermark_id) is None
        assert not await watermarks.WATERMARKS.delete(db, account_id, watermark_id)
    assert await watermarks.WATERMARKS.list_all(db, other.id) == []
    assert await watermarks.WATERMARKS.delete(db, account.id, added[0].id)
    assert await watermarks.WATERMARKS.list_all(db, account.id) == added[1:]


async def test_any_bytes_are_kept_as_they_are(db: Database, account: Account) -> None:
    data = bytes(range(256)) * 20_000
    info = imgsvc.ImageInfo(
        name="naïve \x00 \udcff.png", format="png", width=1, height=1, colorspace="srgb", bytes=1
    )
    added = await watermarks.add(db, account.id, data, info.to_dict(), NOW)
    assert await watermarks.data(db, account.id, added.id) == data
    found = await watermarks.WATERMARKS.get(db, account.id, added.id)
    assert found is not None
    assert found.info == info.to_dict()
