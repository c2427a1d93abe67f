"""Ids that nothing can have are told as such, whatever the database makes of their characters."""

from __future__ import annotations

from pathlib import Path

import pytest
from yarl import URL

from tests.http.calls import assert_failure, call, upload
from tests.http.receivers import receiving
from tests.http.service_process import running
from tests.support import encoded

NUL = "a\0b"
_GOOGLE = {"provider": "google", "keyfile": NUL, "bucket": "bucket"}


@pytest.mark.asyncio
async def test_ids_with_nuls_are_those_of_nothing(empty_url: str, tmp_path: Path) -> None:
    settings = {"database.url": empty_url, "fetch.private_allowed": "127.0.0.1"}
    photo = encoded.jpeg().data
    with running(tmp_path / "state", settings) as service:
        async with service.client() as client, receiving() as receiver:
            for family in ("webhook", "watermark", "keyfile"):
                url = URL(f"{service.url}/1.0/{family}s/a%00b", encoded=True)
                for method in ("GET",) if family == "webhook" else ("GET", "DELETE"):
                    assert_failure(await call(client, method, url), 404, "not_found", family)
            for asked in ({"watermark": {"id": NUL}}, {"store": _GOOGLE}):
                for more in ({}, {"webhook": {"url": f"{receiver.url}/"}}):
                    reply = await upload(client, photo, {**asked, **more})
                    assert_failure(reply, 422, "invalid_parameter", "uploaded")
