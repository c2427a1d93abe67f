"""The tier at a place: its bound, which entry goes first, damage, failures and purges."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from imgsvc_http.cache import place_tier, purges
from imgsvc_http.cache.entries import Entry, source_digest
from imgsvc_http.cache.files import name_of
from imgsvc_http.cache.place_tier import CALL_SECONDS, PlaceTier
from imgsvc_http.storage.folder import Folder
from tests.http.cache.pictures import SOURCE, Clock, Producer, ask, entry, new_cache

BLOCK = 4096
BOUND = 64 * BLOCK


def files(folder: Path) -> list[Path]:
    """All files of entries."""
    return [file for file in folder.glob("??/*") if file.is_file()]


@contextlib.asynccontextmanager
async def opened(folder: Path, clock: Clock, bound: int = BOUND) -> AsyncIterator[PlaceTier]:
    tier = PlaceTier(Folder(f"file://{folder}", CALL_SECONDS), bound, gather_seconds=0, clock=clock)
    try:
        yield tier
    finally:
        await tier.close()


async def found(tier: PlaceTier, made: Entry) -> Entry | None:
    return await tier.get(made.key, made.source_digest)


def file_of(folder: Path, made: Entry) -> Path:
    return folder / name_of(made.source_digest, made.key)


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
async def test_an_entry_outlives_the_process(folder: Path, clock: Clock) -> None:
    async with opened(folder, clock) as tier:
        tier.put(entry(1))
        assert await found(tier, entry(1)) == entry(1)  # while it is being written, too
        await tier.written(entry(1).key)
    async with opened(folder, clock) as tier:
        assert await found(tier, entry(1)) == entry(1)
        assert await found(tier, entry(2)) is None
        assert await tier.totals() == (1, BLOCK)


@pytest.mark.asyncio
async def test_the_entry_that_was_used_longest_ago_goes_first(folder: Path, clock: Clock) -> None:
    async with opened(folder, clock) as tier:
        for number in range(64):
            clock.now += 1
            await write(tier, entry(number))
        clock.now += 1
        tier.touch(entry(0))
        clock.now += 1
        await write(tier, entry(64))
        assert await found(tier, entry(0)) == entry(0)
        assert await found(tier, entry(1)) is None
        assert await found(tier, entry(64)) == entry(64)
        assert len(files(folder)) * BLOCK == (await tier.totals())[1] <= BOUND
        assert tier.evicted >= 1


@pytest.mark.asyncio
async def test_an_answer_from_memory_is_a_use(folder: Path, clock: Clock) -> None:
    async with opened(folder, clock, bound=4 * BLOCK) as tier:
        cache = new_cache(clock, place=tier)
        for number in (1, 2, 3):
            clock.now += 1
            made = (await ask(cache, Producer(version=number), str(number))).entry
            await tier.written(made.key)
        clock.now += 1
        hit = cache.fresh(entry(1).key)
        assert hit is not None
        cache.count_hit(hit)
        for number in (4, 5):
            clock.now += 1
            await write(tier, entry(number))
        assert await found(tier, entry(1)) is not None
        assert await found(tier, entry(2)) is None
        assert cache.answers == {"miss": 3, "hit": 1}


@pytest.mark.asyncio
async def test_an_entry_that_was_made_again_was_used_then(folder: Path, clock: Clock) -> None:
    async with opened(folder, clock, bound=5 * BLOCK) as tier:
        for number in range(4):
            await write(tier, entry(number))
        for number in range(4):
            clock.now += 1
            tier.touch(entry(number))
        for number in (0, 4, 5):
            clock.now += 1
            await write(tier, entry(number))
        assert await found(tier, entry(0)) == entry(0)
        assert await found(tier, entry(1)) is None


@pytest.mark.asyncio
async def test_a_million_urls_are_bounded(folder: Path, clock: Clock) -> None:
    async with opened(folder, clock, bound=8 * BLOCK) as tier:
        for number in range(100):
            clock.now += 1
            await write(tier, entry(number, source=f"https://example.org/{number}"))
            assert len(files(folder)) <= 8


@pytest.mark.asyncio
async def test_a_bound_that_became_much_lower_holds_at_once(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(folder, clock) as tier:
        for number in range(40):
            clock.now += 1
            await write(tier, entry(number))
    monkeypatch.setattr("imgsvc_http.cache.files._LEAST_OLDEST", 3)  # files that one count remembers
    async with opened(folder, clock, bound=8 * BLOCK) as tier:
        clock.now += 1
        await write(tier, entry(40))
        assert len(files(folder)) <= 8
        assert await found(tier, entry(40)) == entry(40)
        assert await found(tier, entry(39)) == entry(39)


@pytest.mark.asyncio
async def test_an_entry_larger_than_the_bound_costs_no_other(folder: Path, clock: Clock) -> None:
    async with opened(folder, clock) as tier:
        tier.put(entry(1))
        tier.put(entry(2, BOUND + 1))
        await asyncio.gather(tier.written(entry(1).key), tier.written(entry(2).key))
        assert await found(tier, entry(1)) == entry(1)
        assert await found(tier, entry(2)) is None


@pytest.mark.asyncio
async def test_entries_that_wait_are_answered_and_are_written_at_the_end(folder: Path, clock: Clock) -> None:
    async with opened(folder, clock) as tier:
        for number in range(5):
            tier.put(entry(number))
        assert files(folder) == []
        assert await found(tier, entry(3)) == entry(3)
    async with opened(folder, clock) as tier:
        assert [await found(tier, entry(number)) for number in range(5)] == [*map(entry, range(5))]
        assert await tier.totals() == (5, 5 * BLOCK)


@pytest.mark.asyncio
async def test_entries_wait_for_others_until_there_are_enough(folder: Path, clock: Clock) -> None:
    tier = PlaceTier(Folder(f"file://{folder}", CALL_SECONDS), BOUND, gather_seconds=600, clock=clock)
    for number in range(15):
        tier.put(entry(number))
    await asyncio.sleep(0.1)
    assert files(folder) == []
    tier.put(entry(15))
    await asyncio.wait_for(tier.written(entry(0).key), 60)
    assert len(files(folder)) == 16
    tier.put(entry(16))
    await tier.close()
    assert len(files(folder)) == 17


@pytest.mark.asyncio
async def test_entries_that_are_written_together_are_bounded(folder: Path, clock: Clock) -> None:
    async with opened(folder, clock, bound=8 * BLOCK) as tier:
        for number in range(30):
            tier.put(entry(number))
    assert 4 <= len(files(folder)) <= 8
    async with opened(folder, clock) as tier:
        assert await tier.totals() == (len(files(folder)), len(files(folder)) * BLOCK)
        assert await found(tier, entry(29)) == entry(29)


@pytest.mark.asyncio
async def test_entries_that_come_faster_than_they_are_written_are_bounded(folder: Path, clock: Clock) -> None:
    async with opened(folder, clock, bound=1000 * BLOCK) as tier:
        for number in range(100):
            tier.put(entry(number))
    assert len(files(folder)) == 64


@pytest.mark.asyncio
async def test_an_entry_that_is_removed_while_it_waits_is_not_written(folder: Path, clock: Clock) -> None:
    async with opened(folder, clock) as tier:
        tier.put(entry(1))
        tier.put(entry(2))
        await tier.remove(entry(1))
        assert await found(tier, entry(1)) is None
    async with opened(folder, clock) as tier:
        assert await found(tier, entry(1)) is None
        assert await found(tier, entry(2)) == entry(2)


@pytest.mark.asyncio
async def test_a_file_that_cannot_be_written_costs_no_other(folder: Path, clock: Clock) -> None:
    file_of(folder, entry(1)).mkdir(parents=True)  # no file takes its place
    async with opened(folder, clock) as tier:
        for number in range(3):
            tier.put(entry(number))
    assert tier.errors == 1
    async with opened(folder, clock) as tier:
        assert [await found(tier, entry(number)) for number in range(3)] == [entry(0), None, entry(2)]
        assert await tier.totals() == (2, 2 * BLOCK)


class Broken(Folder):
    """A folder of a file system that fails with errors of its own."""

    async def call(self, work: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("AccessDenied")


@pytest.mark.asyncio
@pytest.mark.parametrize("task", [found, write, PlaceTier.remove, PlaceTier.run])
async def test_errors_of_any_kind_cost_no_answer(
    task: Callable[..., Awaitable[Entry | None]], folder: Path, clock: Clock
) -> None:
    tier = PlaceTier(Broken(f"file://{folder}", CALL_SECONDS), BOUND, gather_seconds=0, clock=clock)
    tier.touch(entry(2))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0 if task is PlaceTier.run else None):
            assert await task(tier, *([] if task is PlaceTier.run else [entry(1)])) is None
    assert tier.errors == 1
    await tier.close()
    assert tier.errors == 2


class Watched(Folder):
    """A folder that notes what it is called for."""

    def __init__(self, url: str, seconds: float) -> None:
        super().__init__(url, seconds)
        self.looked = list[str]()

    async def call(self, work: Any, *args: Any, **kwargs: Any) -> Any:
        if work is place_tier._read:
            self.looked.append(args[0])
        return await super().call(work, *args, **kwargs)


@pytest.mark.asyncio
async def test_a_process_that_is_alone_looks_for_no_file_that_was_never_written(
    folder: Path, clock: Clock
) -> None:
    async with opened(folder, clock, bound=2**30) as tier:
        for number in range(256):
            tier.put(entry(number, 10))
            if number % 16 == 15:
                await tier.written(entry(number).key)
    watched = Watched(f"file://{folder}", CALL_SECONDS)
    tier = PlaceTier(watched, 2**30, alone=True, gather_seconds=0, clock=clock)
    cache, produce = new_cache(clock, memory_bytes=0, place=tier), Producer()
    looking = asyncio.create_task(tier.run())
    await ask(cache, produce, "first")
    while watched.looked:  # until it knows all keys
        watched.looked.clear()
        await asyncio.sleep(0.05)
        await ask(cache, produce, str(time.monotonic()))
    for number in range(100):
        assert (await ask(cache, produce, str(number), source="https://example.org/new")).state == "miss"
    assert len(watched.looked) < 5
    states = [await ask(cache, produce, str(number)) for number in range(256)]
    assert {result.state for result in states} == {"hit"}
    assert (await ask(cache, produce, "0", source="https://example.org/new")).state == "hit"
    looking.cancel()
    await cache.close()


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign", "folder", "empty", "missing"])
@pytest.mark.asyncio
async def test_a_damaged_file_is_a_miss_and_is_replaced(folder: Path, clock: Clock, damage: str) -> None:
    async with opened(folder, clock) as tier:
        for number in (1, 2):
            await write(tier, entry(number))
        file = file_of(folder, entry(1))
        data = file.read_bytes()
        match damage:
            case "cut":
                file.write_bytes(data[:-1])
            case "flipped":
                file.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
            case "foreign":
                file.write_bytes(file_of(folder, entry(2)).read_bytes())
            case "folder":
                file.unlink()
                file.mkdir()
            case "empty":
                file.write_bytes(b"")
            case "missing":
                file.unlink()
        assert await found(tier, entry(1)) is None
        if damage != "folder":
            await write(tier, entry(1))
            assert await found(tier, entry(1)) == entry(1)


@pytest.mark.asyncio
async def test_a_folder_that_cannot_be_written_costs_no_answer(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "cache").write_bytes(b"no folder")
    async with opened(tmp_path / "cache", clock) as tier:
        await write(tier, entry(1))
        assert await found(tier, entry(1)) is None
        assert tier.errors


@pytest.mark.asyncio
@pytest.mark.parametrize("deleted", [".", "incoming", "??"])
async def test_a_folder_that_was_deleted_is_made_again(folder: Path, clock: Clock, deleted: str) -> None:
    async with opened(folder, clock) as tier:
        await write(tier, entry(1))
        for gone in [folder] if deleted == "." else list(folder.glob(deleted)):
            shutil.rmtree(gone)
        assert await found(tier, entry(1)) == (entry(1) if deleted == "incoming" else None)
        await write(tier, entry(2))
        assert await found(tier, entry(2)) == entry(2)
        assert tier.errors == 0


@pytest.mark.asyncio
async def test_a_folder_in_place_of_a_file_is_a_miss(folder: Path, clock: Clock) -> None:
    async with opened(folder, clock) as tier:
        await write(tier, entry(1))
        (file,) = files(folder)
        file.unlink()
        file.mkdir()
        assert await found(tier, entry(1)) is None
        assert tier.errors == 0


@pytest.mark.asyncio
async def test_purging_a_source_deletes_its_files_alone(folder: Path, clock: Clock) -> None:
    others = [entry(1, source="https://example.org/other"), entry(1, account="another")]
    async with opened(folder, clock) as tier:
        for made in (entry(1), entry(2), *others):
            await write(tier, made)
        assert await tier.purge(source_digest("acc", SOURCE)) == 2
        assert await found(tier, entry(1)) is None
        assert [await found(tier, made) for made in others] == others
        assert await tier.purge(purges.EVERYTHING) == 2
        assert files(folder) == []
        assert await tier.totals() == (0, 0)


@pytest.mark.asyncio
async def test_what_was_purged_since_it_was_begun_is_not_written(folder: Path, clock: Clock) -> None:
    async with opened(folder, clock) as tier:
        tier.is_purged = lambda entry: entry.epoch < 1
        await write(tier, entry(1))  # of epoch 0
        assert await found(tier, entry(1)) is None
        assert files(folder) == []
        later = entry(2, epoch=1)
        await write(tier, later)
        assert await found(tier, later) == later


@pytest.mark.asyncio
async def test_two_nodes_share_a_folder_and_two_folders_do_not_mix(tmp_path: Path, clock: Clock) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    async with (
        opened(shared, clock) as one,
        opened(shared, clock) as two,
        opened(own, clock) as other,
    ):
        one.put(entry(1))
        await one.written(entry(1).key)
        assert await found(two, entry(1)) == entry(1)
        assert await found(other, entry(1)) is None
        assert await other.totals() == (0, 0)
        assert await two.totals() == await one.totals() == (1, BLOCK)


@pytest.mark.asyncio
async def test_files_that_another_process_wrote_count(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_tier, "_COUNT_SECONDS", 0)
    monkeypatch.setattr(place_tier, "_COUNT_PART", 0)
    async with opened(folder, clock, 16 * BLOCK) as one, opened(folder, clock, 16 * BLOCK) as two:
        for step in range(12):
            clock.now += 1
            for tier in (one, two):
                for number in range(step, step + 6):
                    await write(tier, entry(number + 100 * (tier is two)))
                assert len(files(folder)) <= 16
        assert await one.totals() == await two.totals() == (len(files(folder)), BLOCK * len(files(folder)))


@pytest.mark.asyncio
async def test_other_files_stay_and_do_not_count(folder: Path, clock: Clock) -> None:
    others = [folder / "README", folder / "ab" / "another", folder / "incoming" / "new"]
    for other in others:
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_bytes(b"half a pict")
    async with opened(folder, clock, 4 * BLOCK) as tier:
        for number in range(9):
            await write(tier, entry(number))
        assert (await tier.totals())[0] <= 4
        assert await tier.purge(purges.EVERYTHING) <= 4
    assert all(other.exists() for other in others)


@pytest.mark.asyncio
async def test_what_a_dead_process_left_is_deleted(folder: Path, clock: Clock) -> None:
    old, new = folder / "incoming" / "old", folder / "incoming" / "new"
    old.parent.mkdir(parents=True)
    for file in (old, new):
        file.write_bytes(b"half a pict")
    os.utime(old, (time.time() - 3600, time.time() - 3600))
    async with opened(folder, clock) as tier:
        await tier.totals()
    assert (old.exists(), new.exists()) == (False, True)


class PlaceMachine(RuleBasedStateMachine):
    """Compares the tier to a list of what was used, the oldest first, through restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name, "cache")
        self.clock = Clock()
        self.model: dict[str, int] = {}
        self.open()

    def open(self) -> None:
        self.tier = PlaceTier(
            Folder(f"file://{self.folder}", CALL_SECONDS), 10 * BLOCK, gather_seconds=0, clock=self.clock
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
        kept = self.loop.run_until_complete(found(self.tier, entry(number)))
        assert (kept is not None) == (key in self.model)
        if kept is not None:
            self.tier.touch(kept)
            self.model[key] = self.model.pop(key)

    @rule()
    def restart(self) -> None:
        self.loop.run_until_complete(self.tier.close())
        self.open()

    @invariant()
    def bounded(self) -> None:
        assert {file.name.rpartition("-")[2] for file in files(self.folder)} == set(self.model)
        assert sum(self.model.values()) <= 10

    def teardown(self) -> None:
        self.loop.run_until_complete(self.tier.close())
        self.loop.close()
        self.scratch.cleanup()


TestPlaceMachine = PlaceMachine.TestCase
TestPlaceMachine.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)


@pytest.mark.asyncio
async def test_a_picture_that_is_made_while_its_file_is_looked_for_is_not_made_again(
    folder: Path, clock: Clock
) -> None:
    looked, go_on = [asyncio.Event(), asyncio.Event()], asyncio.Event()

    class Slow(Folder):
        async def call(self, work: Any, *args: Any, **kwargs: Any) -> Any:
            done = await super().call(work, *args, **kwargs)
            if work is place_tier._read:
                if looked[0].is_set():
                    looked[1].set()
                    await asyncio.wait_for(go_on.wait(), 60)
                looked[0].set()
            return done

    tier = PlaceTier(Slow(f"file://{folder}", CALL_SECONDS), 2**24, clock=clock)
    cache, produce = new_cache(clock, place=tier), Producer(waiting=asyncio.Event())
    first = asyncio.create_task(ask(cache, produce))
    await produce.began.wait()
    second = asyncio.create_task(ask(cache, produce))
    await asyncio.wait_for(looked[1].wait(), 60)
    assert produce.waiting is not None
    produce.waiting.set()
    assert (await first).state == "miss"
    go_on.set()
    assert (await second).state == "hit"
    assert produce.made == 1
    await cache.close()
