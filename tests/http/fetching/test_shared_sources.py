"""One fetch serves all who want its source, and nothing of it is left when nobody may want it any more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import attrs
import pytest

from imgsvc_http.fetching.shared_sources import Shared, SharedSources
from imgsvc_http.storage.source_files import Allocate, SourceFiles

pytestmark = pytest.mark.asyncio

SIZE = 100_000


@contextlib.asynccontextmanager
async def used(taking: Awaitable[Shared[tuple[Path, int]]]) -> AsyncIterator[Shared[tuple[Path, int]]]:
    found = await taking
    try:
        yield found
    finally:
        found.release()


@attrs.define
class Sources:
    """Sources whose fetches wait until they may end; `used` bytes of files exist."""

    shared: SharedSources
    files: SourceFiles
    folder: Path
    may_end: asyncio.Event = attrs.field(factory=asyncio.Event)
    fetches: int = 0
    error: Exception | None = None

    async def fetch(self, allocate: Allocate) -> tuple[Path, int]:
        self.fetches += 1
        number = self.fetches
        with (file := allocate(None)).writing() as target:
            target.write(bytes([number]) * SIZE)
        await self.may_end.wait()
        if self.error is not None:
            raise self.error
        return file.path, number

    async def get(self, key: str = "a", seconds: float = 0) -> int:
        async with used(self.shared.take(key, "account", self.fetch, lambda _: seconds)) as found:
            path, number = found.result
            assert path.read_bytes() == bytes([number]) * SIZE
            await asyncio.sleep(0)
            assert path.stat().st_size == SIZE
            return number

    @property
    def files_left(self) -> int:
        return len(list(self.folder.iterdir()))


@pytest.fixture
def make(tmp_path: Path) -> Callable[[int], Sources]:
    def made(kept_bytes: int) -> Sources:
        files = SourceFiles(tmp_path / "files", 0, folder_bytes=10**9)
        return Sources(SharedSources(files, kept_bytes=kept_bytes), files, tmp_path / "files")

    return made


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_all_who_wait_share_a_fetch_and_later_ones_begin_another(
    make: Callable[[int], Sources],
) -> None:
    sources = make(10**6)
    asking = [asyncio.create_task(sources.get(key)) for key in ("a", "a", "b", "a")]
    await settle()
    sources.may_end.set()
    assert await asyncio.gather(*asking) == [1, 1, 2, 1]
    assert sources.files_left == 0
    assert await sources.get() == 3


async def test_what_is_kept_serves_later_ones_until_its_time(make: Callable[[int], Sources]) -> None:
    sources = make(10**6)
    sources.may_end.set()
    assert [await sources.get(seconds=60) for _ in range(3)] == [1, 1, 1]
    async with used(sources.shared.take("a", "account", sources.fetch, lambda _: 60)) as found:
        assert 0 <= found.age < 60
        assert found.result[1] == 1
    await sources.get("b", seconds=0.3)
    async with used(sources.shared.take("b", "account", sources.fetch, lambda _: 0.3)) as found:
        await asyncio.sleep(0.4)
        assert found.result[0].stat().st_size == SIZE, "somebody uses it"
        assert await sources.get("b", seconds=0.3) == found.result[1] + 1
    async with asyncio.timeout(60):
        while sources.files_left > 1:
            await asyncio.sleep(0.05)
    assert await sources.get(seconds=60) == 1


async def test_the_least_recently_used_goes_first(make: Callable[[int], Sources]) -> None:
    sources = make(2 * (SIZE + 2**16))
    sources.may_end.set()
    for key, number in (("a", 1), ("b", 2), ("a", 1), ("c", 3), ("a", 1), ("b", 4)):
        assert await sources.get(key, seconds=60) == number
    assert sources.files_left == 2
    sources.shared.close()
    assert sources.files_left == 0


async def test_without_room_nothing_is_kept(make: Callable[[int], Sources]) -> None:
    sources = make(0)
    sources.may_end.set()
    assert [await sources.get(seconds=60) for _ in range(2)] == [1, 2]
    assert sources.files_left == 0


async def test_all_get_the_error_and_later_ones_try_again(make: Callable[[int], Sources]) -> None:
    sources = make(10**6)
    sources.error = OSError("gone")
    asking = [asyncio.create_task(sources.get(seconds=60)) for _ in range(3)]
    await settle()
    sources.may_end.set()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert [str(error) for error in found] == ["gone"] * 3
    assert (sources.fetches, sources.files_left) == (1, 0)
    sources.error = None
    assert await sources.get() == 2


async def test_who_leaves_does_not_end_it_for_others_and_the_last_does(
    make: Callable[[int], Sources],
) -> None:
    sources = make(10**6)
    first, second, third = (asyncio.create_task(sources.get(seconds=60)) for _ in range(3))
    await settle()
    first.cancel()
    await settle()
    assert sources.files_left == 1
    for leaving in (second, third):
        leaving.cancel()
    await settle()
    assert (sources.fetches, sources.files_left) == (1, 0)
    sources.may_end.set()
    assert await sources.get() == 2


async def test_who_leaves_when_it_has_just_ended_leaves_nothing(make: Callable[[int], Sources]) -> None:
    sources = make(10**6)
    asking = asyncio.create_task(sources.get())
    await settle()
    sources.may_end.set()
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await settle()
    assert sources.files_left == 0


async def test_a_service_that_ends_leaves_nothing(make: Callable[[int], Sources]) -> None:
    sources = make(10**6)
    asking = asyncio.create_task(sources.get())
    await settle()
    sources.shared.close()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert sources.files_left == 0
