"""The playground behind a balancer that sends each request to another node."""

from __future__ import annotations

import asyncio
from pathlib import Path

import attrs
import pytest

from imgsvc_http.state.vault import new_master_key
from tests.http.calls import assert_failure, call, upload
from tests.http.playground.page import PICTURES
from tests.http.service_process import await_start, start
from tests.support import servers

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

PHOTO = (PICTURES / "portrait.jpg").read_bytes()


async def test_every_node_makes_previews_of_a_source_that_one_node_got(tmp_path: Path) -> None:
    with servers.postgresql() as database:
        settings = {
            "database.url": database,
            "temporary.url": f"file://{tmp_path}/temporary",
            "security.master_keys": new_master_key(),
        }
        states = [tmp_path / name for name in ("one", "two")]
        processes = [start(state, settings) for state in states]
        try:
            nodes = [
                await asyncio.to_thread(await_start, process, state)
                for process, state in zip(processes, states, strict=True)
            ]
            (key,) = (node.key for node in nodes if node.key)
            one, two = (attrs.evolve(node, key=key) for node in nodes)
            async with one.client() as first, two.client() as second:
                id_ = (await upload(first, PHOTO, path="/playground/sources")).json["source"]["id"]
                asked = {"request": {"resize": {"width": 64}}}
                for client in (second, first, second):
                    made = await call(client, "POST", f"/playground/previews/{id_}", json=asked)
                    assert made.json["output"]["width"] == 64
                assert (await call(second, "GET", f"/playground/sources/{id_}")).body == PHOTO
                async with asyncio.timeout(30):  # the answer to GET may end before its source is closed
                    while len(two.leftovers()) != 1:  # which serves the next previews
                        await asyncio.sleep(0.05)
                unknown = f"{'0' * 32}.jpg"
                missing = await call(second, "POST", f"/playground/previews/{unknown}", json=asked)
                assert_failure(missing, 404, "not_found", "source")
        finally:
            for process in processes:
                process.kill()
                process.communicate()
