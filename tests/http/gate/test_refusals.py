"""What a refused request leaves behind."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from imgsvc_http import Settings
from imgsvc_http.gate.pacing import RequestPacing
from tests.http.calls import call
from tests.http.embedded import embedded

pytestmark = pytest.mark.asyncio


async def test_refused_requests_hold_nobody_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    under_way: Counter[str] = Counter()
    begin, end = RequestPacing.begin, RequestPacing.end

    async def begin_and_count(pacing: RequestPacing, name: str, *steps: int) -> None:
        await begin(pacing, name, *steps)
        under_way[name] += 1

    def end_and_count(pacing: RequestPacing, name: str) -> None:
        end(pacing, name)
        under_way[name] -= 1

    monkeypatch.setattr(RequestPacing, "begin", begin_and_count)
    monkeypatch.setattr(RequestPacing, "end", end_and_count)
    settings = Settings.load(None, {}, {"server.state_folder": tmp_path / "state", "server.plain_http": True})
    async with embedded(settings) as (client, _):
        for key, status in (("wrong", 401), ("", 401)):
            reply = await call(client, "GET", "/1.0/account", headers={"Authorization": f"Bearer {key}"})
            assert reply.status == status
        assert (await call(client, "GET", "/1.0/account")).status == 200
    assert under_way
    assert not any(under_way.values())
