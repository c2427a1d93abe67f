"""What is left of the cache when its process is killed, or when its disk is full."""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from imgsvc_http.cache import index
from imgsvc_http.cache.place_tier import PlaceTier
from imgsvc_http.cache.places import LocalPlace
from imgsvc_http.state.database import Database
from imgsvc_http.state.migrating import migrate
from tests.http.cache.pictures import entry
from tests.http.cache.writer import NUMBERS

pytestmark = pytest.mark.asyncio

KILLS = 8
BOUND = 20 * 65_536


def killed_writer(url: str, folder: Path, seconds: float) -> None:
    command = [sys.executable, "-m", "tests.http.cache.writer", url, str(folder), str(BOUND)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        time.sleep(seconds)
        process.kill()


@pytest.mark.slow
async def test_a_kill_leaves_right_pictures_and_no_forgotten_file(tmp_path: Path) -> None:
    url, folder, chance = f"sqlite:///{tmp_path}/state.db", tmp_path / "cache", random.Random(7)
    await migrate(url)
    for _ in range(KILLS):
        await asyncio.to_thread(killed_writer, url, folder, chance.uniform(0.05, 0.6))
        async with await Database.open(url) as db:
            tier = PlaceTier(LocalPlace(folder), db, BOUND)
            found = [await tier.get(entry(number, 60_000).key) for number in range(NUMBERS)]
            assert all(made in (None, entry(number, 60_000)) for number, made in enumerate(found))
            assert any(found)
            rows = {row.key for row in await index.oldest(db, LocalPlace(folder).number())}
            files = {"".join(file.parts[-2:]) for file in folder.glob("??/*")}
            assert files <= rows
            assert sum(file.stat().st_size for file in folder.glob("??/*")) <= BOUND
            await tier.close()


async def test_a_full_disk_costs_no_answer_and_leaves_room_for_others(
    tmp_path: Path, small_disk: Path
) -> None:
    url, folder = f"sqlite:///{tmp_path}/state.db", small_disk / "cache"
    await migrate(url)
    async with await Database.open(url) as db:
        tier = PlaceTier(LocalPlace(folder), db, 2**40)
        for number in range(100):  # 100 MB, more than there is
            tier.put(entry(number, 2**20))
            await tier.written(entry(number).key)
        assert shutil.disk_usage(small_disk).free > 2 * 2**20
        assert tier.errors == 0
        found = [await tier.get(entry(number).key) for number in range(100)]
        assert all(made in (None, entry(number, 2**20)) for number, made in enumerate(found))
        assert len([made for made in found if made]) > 30
        with (small_disk / "filler").open("wb") as filler:  # others need all of it
            filler.write(bytes(shutil.disk_usage(small_disk).free - 8192))
        tier.put(entry(200, 2**20))
        await tier.written(entry(200).key)
        assert await tier.get(entry(200).key) is None
        assert shutil.disk_usage(small_disk).free > 2**20  # the cache has made room
        (small_disk / "filler").unlink()
        tier.put(entry(200, 2**20))
        await tier.written(entry(200).key)
        assert await tier.get(entry(200).key) == entry(200, 2**20)
        assert list((folder / "incoming").iterdir()) == []
        await tier.close()
