"""What is left of the cache when its process is killed, or when its disk is full."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from pathlib import Path

import pytest

from imgsvc_http.cache.place_tier import CALL_SECONDS, PlaceTier
from imgsvc_http.storage.folder import Folder
from tests.http.cache.pictures import entry
from tests.http.cache.writer import NUMBERS
from tests.support import forked_python

pytestmark = pytest.mark.asyncio

KILLS = 8
LOADED = ("imgsvc_http.cache.place_tier", "imgsvc_http.storage.folder")
BOUND = 20 * 65_536


def killed_writer(folder: Path, seconds: float) -> None:
    process = forked_python.start("-m", "tests.http.cache.writer", str(folder), str(BOUND), loaded=LOADED)
    while not (printed := process.printed())[0]:
        assert process.poll() is None, printed
        time.sleep(0.005)
    time.sleep(seconds)
    process.kill()
    process.wait()


@pytest.mark.slow
async def test_a_kill_leaves_right_pictures_and_no_forgotten_file(tmp_path: Path) -> None:
    folder, chance = tmp_path / "cache", random.Random(7)
    for _ in range(KILLS):
        await asyncio.to_thread(killed_writer, folder, chance.uniform(0.05, 0.6))
        tier = PlaceTier(Folder(f"file://{folder}", CALL_SECONDS), BOUND)
        made = [entry(number, 60_000) for number in range(NUMBERS)]
        found = [await tier.get(one.key, one.source_digest) for one in made]
        assert all(one in (None, expected) for one, expected in zip(found, made, strict=True))
        assert any(found)
        sizes = [file.stat().st_size for file in folder.glob("??/*")]
        assert sum(sizes) <= BOUND
        assert (await tier.totals())[0] == len(sizes)
        await tier.close()


async def test_a_full_disk_costs_no_answer_and_leaves_room_for_others(small_disk: Path) -> None:
    folder = small_disk / "cache"
    tier = PlaceTier(Folder(f"file://{folder}", CALL_SECONDS), 2**40)
    for number in range(100):  # 100 MB, more than there is
        tier.put(entry(number, 2**20))
        await tier.written(entry(number).key)
    usage = shutil.disk_usage(small_disk)
    assert usage.free >= usage.total // 20
    assert tier.errors == 0
    found = [await tier.get(entry(number).key, entry(number).source_digest) for number in range(100)]
    assert all(made in (None, entry(number, 2**20)) for number, made in enumerate(found))
    assert len([made for made in found if made]) > 30
    with (small_disk / "filler").open("wb") as filler:  # others need all of it
        filler.write(bytes(shutil.disk_usage(small_disk).free - 8192))
    tier.put(entry(200, 2**20))
    await tier.written(entry(200).key)
    assert await tier.get(entry(200).key, entry(200).source_digest) is None
    assert shutil.disk_usage(small_disk).free > 2**20  # the cache has made room
    (small_disk / "filler").unlink()
    tier.put(entry(200, 2**20))
    await tier.written(entry(200).key)
    assert await tier.get(entry(200).key, entry(200).source_digest) == entry(200, 2**20)
    assert list((folder / "incoming").iterdir()) == []
    await tier.close()
