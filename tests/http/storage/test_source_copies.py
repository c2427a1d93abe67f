"""Copies of sources for all nodes: whose they are, how long they stay, and how many there are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from imgsvc_http.storage.kept_sources import MOST_OF_A_KEY
from imgsvc_http.storage.source_copies import SourceCopies

pytestmark = pytest.mark.asyncio

ONE, OTHER = str(uuid4()), str(uuid4())
SECONDS, BYTES = 600, 4000
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def source_id(number: int) -> str:
    return f"{number:032x}.jpg"


@pytest.fixture
def copies(tmp_path: Path) -> SourceCopies:
    return SourceCopies(f"file://{tmp_path}/shared", SECONDS, BYTES)


async def keep(
    copies: SourceCopies, folder: Path, number: int, *, size: int = 10, owner: str = ONE, after: int = 0
) -> None:
    path = folder / "source"
    path.write_bytes(bytes([number]) * size)
    await copies.keep(owner, source_id(number), path, BEGIN + timedelta(seconds=after))


async def has(copies: SourceCopies, number: int, owner: str = ONE, after: int = 0) -> bool:
    return await copies.find(owner, source_id(number), BEGIN + timedelta(seconds=after)) is not None


async def test_a_copy_is_read_by_its_key_until_it_expires(copies: SourceCopies, tmp_path: Path) -> None:
    await keep(copies, tmp_path, 7)
    name = await copies.find(ONE, source_id(7), BEGIN)
    assert name is not None
    assert b"".join([chunk async for chunk in copies.read(name)]) == b"\7" * 10
    assert not await has(copies, 7, OTHER)
    assert not await has(copies, 8)
    assert not await has(copies, 7, after=SECONDS + 1)


async def test_a_source_that_is_kept_again_stays_longer_and_once(
    copies: SourceCopies, tmp_path: Path
) -> None:
    for after in (0, SECONDS - 1):
        await keep(copies, tmp_path, 7, after=after)
    assert await has(copies, 7, after=SECONDS + 100)
    assert len(list((tmp_path / "shared").iterdir())) == 1


async def test_a_key_has_so_many_copies_and_a_quarter_of_the_bytes(
    copies: SourceCopies, tmp_path: Path
) -> None:
    await keep(copies, tmp_path, 99, owner=OTHER)
    for number in range(MOST_OF_A_KEY + 1):
        await keep(copies, tmp_path, number, after=number)
    assert [await has(copies, number) for number in range(3)] == [False, True, True]
    await keep(copies, tmp_path, 20, size=BYTES // 4 - 25, after=50)
    assert [number for number in range(21) if await has(copies, number)] == [7, 8, 20]
    assert await has(copies, 99, OTHER)


async def test_all_keys_have_so_many_bytes_and_the_oldest_go_first(
    copies: SourceCopies, tmp_path: Path
) -> None:
    owners = [str(uuid4()) for _ in range(5)]
    for number, owner in enumerate(owners):
        await keep(copies, tmp_path, number, size=BYTES // 4, owner=owner, after=number)
    assert [await has(copies, number, owner) for number, owner in enumerate(owners)] == [False] + 4 * [True]


async def test_expired_copies_are_deleted_and_nothing_else(copies: SourceCopies, tmp_path: Path) -> None:
    await keep(copies, tmp_path, 1)
    await keep(copies, tmp_path, 2, after=100)
    (tmp_path / "shared" / "notes.txt").touch()
    await copies.sweep(BEGIN + timedelta(seconds=SECONDS + 1))
    assert not await has(copies, 1)
    assert await has(copies, 2)
    assert (tmp_path / "shared" / "notes.txt").exists()
