"""The tier at a place: its bound, which entry goes first, damage, failures and purges."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from imgsvc_http.cache import index, purges
from imgsvc_http.cache.entries import Entry, source_digest
from imgsvc_http.cache.place_tier import PlaceTier
from imgsvc_http.cache.places import LocalPlace
from imgsvc_http.state.database import Database
from imgsvc_http.state.migrating import migrate
from tests.http.cache.pictures import SOURCE, Clock, Producer, ask, entry, new_cache
from tests.http.conftest import NOW

BLOCK = 4096
BOUND = 64 * BLOCK


def files(folder: Path) -> list[Path]:
    """All files of entries."""
    return [file for file in folder.glob("??/*") if file.is_file()]


@contextlib.asynccontextmanager
async def opened(
    folder: Path, db: Database, clock: Clock, bound: int = BOUND, gather_seconds: float = 0
) -> AsyncIterator[PlaceTier]:
    tier = PlaceTier(LocalPlace(folder), db, bound, gather_seconds=gather_seconds, clock=clock)
    try:
        yield tier
    finally:
        await tier.close()


async def write(tier: PlaceTier, made: Entry) -> None:
    tier.put(made)
    await tier.written(made.key)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.mark.asyncio
async def test_an_entry_outlives_the_process(db: Database, folder: Path, clock: Clock) -> None:
    async with opened(folder, db, clock) as tier:
        tier.put(entry(1))
        assert await tier.get(entry(1).key) == entry(1)  # while it is being written, too
        await tier.written(entry(1).key)
    async with opened(folder, db, clock) as tier:
        assert await tier.get(entry(1).key) == entry(1)
        assert await tier.get(entry(2).key) is None
        assert await tier.totals() == (1, BLOCK)


@pytest.mark.asyncio
async def test_the_entry_that_was_used_longest_ago_goes_first(
    db: Database, folder: Path, clock: Clock
) -> None:
    async with opened(folder, db, clock) as tier:
        for number in range(64):
            clock.now += 1
            await write(tier, entry(number))
        clock.now += 1
        tier.touch(entry(0).key)
        clock.now += 1
        await write(tier, entry(64))
        assert await tier.get(entry(0).key) == entry(0)
        assert await tier.get(entry(1).key) is None
        assert await tier.get(entry(64).key) == entry(64)
        assert len(files(folder)) * BLOCK == (await tier.totals())[1] <= BOUND
        assert tier.evicted >= 1


@pytest.mark.asyncio
async def test_an_entry_that_was_made_again_was_used_then(db: Database, folder: Path, clock: Clock) -> None:
    async with opened(folder, db, clock, bound=5 * BLOCK) as tier:
        for number in range(4):
            await write(tier, entry(number))
        for number in range(4):
            clock.now += 1
            tier.touch(entry(number).key)
        for number in (0, 4, 5):
            clock.now += 1
            await write(tier, entry(number))
        assert await tier.get(entry(0).key) == entry(0)
        assert await tier.get(entry(1).key) is None


@pytest.mark.asyncio
async def test_a_million_urls_are_bounded(db: Database, folder: Path, clock: Clock) -> None:
    async with opened(folder, db, clock, bound=8 * BLOCK) as tier:
        for number in range(100):
            clock.now += 1
            await write(tier, entry(number, source=f"https://example.org/{number}"))
            assert len(files(folder)) <= 8


@pytest.mark.asyncio
async def test_an_entry_larger_than_the_bound_costs_no_other(
    db: Database, folder: Path, clock: Clock
) -> None:
    async with opened(folder, db, clock) as tier:
        tier.put(entry(1))
        tier.put(entry(2, BOUND + 1))
        await asyncio.gather(tier.written(entry(1).key), tier.written(entry(2).key))
        assert await tier.get(entry(1).key) == entry(1)
        assert await tier.get(entry(2).key) is None


@pytest.mark.asyncio
async def test_entries_that_wait_are_answered_and_are_written_at_the_end(
    db: Database, folder: Path, clock: Clock
) -> None:
    async with opened(folder, db, clock, gather_seconds=60) as tier:
        for number in range(5):
            tier.put(entry(number))
        await asyncio.sleep(0.1)
        assert files(folder) == []
        assert await tier.get(entry(3).key) == entry(3)
    async with opened(folder, db, clock) as tier:
        assert [await tier.get(entry(number).key) for number in range(5)] == [*map(entry, range(5))]
        assert await tier.totals() == (5, 5 * BLOCK)


@pytest.mark.asyncio
async def test_many_entries_do_not_wait(db: Database, folder: Path, clock: Clock) -> None:
    async with opened(folder, db, clock, gather_seconds=60) as tier:
        for number in range(20):
            tier.put(entry(number))
        await asyncio.wait_for(tier.written(entry(0).key), 60)
        assert len(files(folder)) == 20


@pytest.mark.asyncio
async def test_entries_that_are_written_together_are_bounded(
    db: Database, folder: Path, clock: Clock
) -> None:
    async with opened(folder, db, clock, bound=8 * BLOCK, gather_seconds=60) as tier:
        for number in range(30):
            tier.put(entry(number))
    assert 4 <= len(files(folder)) <= 8
    async with opened(folder, db, clock) as tier:
        assert await tier.totals() == (len(files(folder)), len(files(folder)) * BLOCK)
        assert await tier.get(entry(29).key) == entry(29)


@pytest.mark.asyncio
async def test_an_entry_that_is_removed_while_it_waits_is_not_written(
    db: Database, folder: Path, clock: Clock
) -> None:
    async with opened(folder, db, clock, gather_seconds=60) as tier:
        tier.put(entry(1))
        tier.put(entry(2))
        await tier.remove(entry(1).key)
        assert await tier.get(entry(1).key) is None
    async with opened(folder, db, clock) as tier:
        assert await tier.get(entry(1).key) is None
        assert await tier.get(entry(2).key) == entry(2)


@pytest.mark.parametrize("together", [1, 16])
@pytest.mark.asyncio
async def test_a_file_that_cannot_be_written_costs_no_other(
    db: Database, folder: Path, clock: Clock, together: int
) -> None:
    class Broken(LocalPlace):
        files_in_thread = together

        def write(self, key: str, data: bytes) -> None:
            if key == entry(1).key:
                raise OSError("a broken sector")
            super().write(key, data)

    tier = PlaceTier(Broken(folder), db, BOUND, gather_seconds=60, clock=clock)
    for number in range(3):
        tier.put(entry(number))
    await tier.close()
    assert tier.errors == 1
    async with opened(folder, db, clock) as tier:
        found = [await tier.get(entry(number).key) for number in range(3)]
        assert found == [entry(0), None, entry(2)]
        assert await tier.totals() == (2, 2 * BLOCK)


@pytest.mark.asyncio
async def test_a_process_that_is_alone_looks_for_no_file_that_was_never_written(
    db: Database, folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_KEYS", 100)
    looked = list[str]()

    class Watched(LocalPlace):
        def read(self, key: str) -> bytes | None:
            looked.append(key)
            return super().read(key)

    async with opened(folder, db, clock, bound=2**30) as tier:
        for number in range(256):
            tier.put(entry(number, 10))
            if number % 16 == 15:
                await tier.written(entry(number).key)
    tier = PlaceTier(Watched(folder), db, 2**30, alone=True, gather_seconds=0, clock=clock)
    cache, produce = new_cache(clock, memory_bytes=0, place=tier), Producer()
    looking = asyncio.create_task(tier.run())
    await ask(cache, produce, "first")
    while looked:  # until it knows all keys
        looked.clear()
        await asyncio.sleep(0.05)
        await ask(cache, produce, str(time.monotonic()))
    for number in range(100):
        assert (await ask(cache, produce, str(number), source="https://example.org/new")).state == "miss"
    assert len(looked) < 5
    states = [await ask(cache, produce, str(number)) for number in range(256)]
    assert {result.state for result in states} == {"hit"}
    assert (await ask(cache, produce, "0", source="https://example.org/new")).state == "hit"
    looking.cancel()
    await cache.close()


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign", "folder", "empty", "missing"])
@pytest.mark.asyncio
async def test_a_damaged_file_is_a_miss_and_is_replaced(
    db: Database, folder: Path, clock: Clock, damage: str
) -> None:
    async with opened(folder, db, clock) as tier:
        for number in (1, 2):
            await write(tier, entry(number))
        key = entry(1).key
        file = folder / key[:2] / key[2:]
        data = file.read_bytes()
        match damage:
            case "cut":
                file.write_bytes(data[:-1])
            case "flipped":
                file.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
            case "foreign":
                other = entry(2).key
                file.write_bytes((folder / other[:2] / other[2:]).read_bytes())
            case "folder":
                file.unlink()
                file.mkdir()
            case "empty":
                file.write_bytes(b"")
            case "missing":
                file.unlink()
        assert await tier.get(key) is None
        if damage != "folder":
            await write(tier, entry(1))
            assert await tier.get(key) == entry(1)


@pytest.mark.asyncio
async def test_a_folder_that_cannot_be_written_costs_no_answer(
    db: Database, tmp_path: Path, clock: Clock
) -> None:
    (tmp_path / "cache").write_bytes(b"no folder")
    async with opened(tmp_path / "cache", db, clock) as tier:
        await write(tier, entry(1))
        assert await tier.get(entry(1).key) is None
        assert tier.errors


@pytest.mark.asyncio
@pytest.mark.parametrize("deleted", [".", "incoming", "place"])
async def test_a_folder_that_was_deleted_is_made_again(
    db: Database, folder: Path, clock: Clock, deleted: str
) -> None:
    async with opened(folder, db, clock) as tier:
        await write(tier, entry(1))
        number = LocalPlace(folder).number()
        gone = folder / deleted
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
        LocalPlace(folder).sweep()
        assert await tier.get(entry(1).key) == (None if deleted == "." else entry(1))
        await write(tier, entry(2))
        assert await tier.get(entry(2).key) == entry(2)
        assert tier.errors == 0
    if deleted != "place":
        assert LocalPlace(folder).number() == number


@pytest.mark.asyncio
async def test_a_folder_in_place_of_a_file_is_a_miss(db: Database, folder: Path, clock: Clock) -> None:
    async with opened(folder, db, clock) as tier:
        await write(tier, entry(1))
        (file,) = files(folder)
        file.unlink()
        file.mkdir()
        assert await tier.get(entry(1).key) is None
        assert tier.errors == 0


@pytest.mark.asyncio
async def test_purging_a_source_deletes_its_files_alone(db: Database, folder: Path, clock: Clock) -> None:
    others = [entry(1, source="https://example.org/other"), entry(1, account="another")]
    async with opened(folder, db, clock) as tier:
        for made in (entry(1), entry(2), *others):
            await write(tier, made)
        assert await tier.purge(source_digest("acc", SOURCE)) == 2
        assert await tier.get(entry(1).key) is None
        assert [await tier.get(made.key) for made in others] == others
        assert await tier.purge(purges.EVERYTHING) == 2
        assert files(folder) == []
        assert await tier.totals() == (0, 0)


@pytest.mark.asyncio
async def test_what_was_begun_before_a_purge_is_not_written_after_it(
    db: Database, folder: Path, clock: Clock
) -> None:
    async with opened(folder, db, clock) as tier:
        number = await purges.record(db, source_digest("acc", SOURCE), NOW)
        tier.put(entry(1))  # of epoch 0
        await tier.written(entry(1).key)
        assert await tier.get(entry(1).key) is None
        assert files(folder) == []
        later = entry(2, epoch=number)
        await write(tier, later)
        assert await tier.get(later.key) == later


@pytest.mark.asyncio
async def test_two_nodes_share_a_folder_and_two_folders_do_not_mix(
    db: Database, tmp_path: Path, clock: Clock
) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    async with (
        opened(shared, db, clock) as one,
        opened(shared, db, clock) as two,
        opened(own, db, clock) as other,
    ):
        one.put(entry(1))
        await one.written(entry(1).key)
        assert await two.get(entry(1).key) == entry(1)
        assert await other.get(entry(1).key) is None
        assert await other.totals() == (0, 0)
        assert await two.totals() == await one.totals() == (1, BLOCK)


@pytest.mark.asyncio
async def test_two_nodes_writing_at_once_leave_no_file_without_a_row(
    db: Database, folder: Path, clock: Clock
) -> None:
    async with opened(folder, db, clock, 16 * BLOCK) as one, opened(folder, db, clock, 16 * BLOCK) as two:
        for step in range(12):
            clock.now += 1
            for tier in (one, two):
                for number in range(step, step + 6):
                    tier.put(entry(number))
            await asyncio.gather(
                *(tier.written(entry(number).key) for tier in (one, two) for number in range(step, step + 6))
            )
        rows = {row.key for row in await index.oldest(db, LocalPlace(folder).number())}
        assert {"".join(file.parts[-2:]) for file in files(folder)} <= rows


@pytest.mark.asyncio
async def test_files_of_a_database_that_was_lost_are_deleted(
    db: Database, folder: Path, clock: Clock
) -> None:
    async with opened(folder, db, clock) as tier:
        for number in range(4):
            await write(tier, entry(number))
        rows = await index.oldest(db, LocalPlace(folder).number())
        await index.remove(db, LocalPlace(folder).number(), rows[:2])
        for file in files(folder):
            os.utime(file, (1, 1))
        await write(tier, entry(5))  # its row may not be seen yet
        for key in {row.key for row in rows}:
            await tier.delete_unknown(int(key[:3], 16))
        assert {"".join(file.parts[-2:]) for file in files(folder)} == {
            *(row.key for row in rows[2:]),
            entry(5).key,
        }


class PlaceMachine(RuleBasedStateMachine):
    """Compares the tier to a list of what was used, the oldest first, through restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name, "cache")
        url = f"sqlite:///{self.scratch.name}/state.db"
        self.loop.run_until_complete(migrate(url))
        self.db = self.loop.run_until_complete(Database.open(url))
        self.clock = Clock()
        self.model: dict[str, int] = {}
        self.open()

    def open(self) -> None:
        self.tier = PlaceTier(
            LocalPlace(self.folder), self.db, 10 * BLOCK, gather_seconds=0, clock=self.clock
        )

    @rule(number=st.integers(0, 15), blocks=st.integers(1, 4))
    def put(self, number: int, blocks: int) -> None:
        self.clock.now += 1
        made = entry(number, blocks * BLOCK - 1000)
        self.loop.run_until_complete(write(self.tier, made))
        if sum(self.model.values()) + blocks > 10:  # as if the old one stayed
            room = (sum(self.model.values()) + blocks - 10) * BLOCK + 10 * BLOCK // 64
            while room > 0 and self.model:
                room -= self.model.pop(next(iter(self.model))) * BLOCK
        self.model.pop(made.key, None)
        self.model[made.key] = blocks

    @rule(number=st.integers(0, 15))
    def get(self, number: int) -> None:
        self.clock.now += 1
        key = entry(number).key
        found = self.loop.run_until_complete(self.tier.get(key))
        assert (found is not None) == (key in self.model)
        if found is not None:
            self.tier.touch(key)
            self.model[key] = self.model.pop(key)

    @rule()
    def restart(self) -> None:
        self.loop.run_until_complete(self.tier.close())
        self.open()

    @invariant()
    def bounded(self) -> None:
        assert {"".join(file.parts[-2:]) for file in files(self.folder)} == set(self.model)
        assert sum(self.model.values()) <= 10

    def teardown(self) -> None:
        self.loop.run_until_complete(self.tier.close())
        self.loop.run_until_complete(self.db.close())
        self.loop.close()
        self.scratch.cleanup()


TestPlaceMachine = PlaceMachine.TestCase
TestPlaceMachine.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)


@pytest.mark.asyncio
async def test_a_picture_that_is_made_while_its_file_is_looked_for_is_not_made_again(
    db: Database, folder: Path, clock: Clock
) -> None:
    looked, go_on = [threading.Event(), threading.Event()], threading.Event()

    class Slow(LocalPlace):
        def read(self, key: str) -> bytes | None:
            found = super().read(key)
            if looked[0].is_set():
                looked[1].set()
                assert go_on.wait(20)
            looked[0].set()
            return found

    tier = PlaceTier(Slow(folder), db, 2**24, clock=clock)
    cache, produce = new_cache(clock, place=tier), Producer(waiting=asyncio.Event())
    first = asyncio.create_task(ask(cache, produce))
    await produce.began.wait()
    second = asyncio.create_task(ask(cache, produce))
    assert await asyncio.to_thread(looked[1].wait, 20)
    assert produce.waiting is not None
    produce.waiting.set()
    assert (await first).state == "miss"
    go_on.set()
    assert (await second).state == "hit"
    assert produce.made == 1
    await cache.close()
