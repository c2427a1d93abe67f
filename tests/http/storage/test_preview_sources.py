"""Sources of previews: whose they are, how long they stay, and how many there are."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from imgsvc_http.storage.preview_sources import MOST_OF_A_KEY, PreviewSources

pytestmark = pytest.mark.asyncio

ONE, OTHER = str(uuid4()), str(uuid4())
SECONDS, BYTES = 600, 4000
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def sources(tmp_path: Path) -> PreviewSources:
    return PreviewSources(f"file://{tmp_path}/shared", SECONDS, BYTES)


async def keep(
    sources: PreviewSources, folder: Path, number: int, *, size: int = 10, owner: str = ONE, after: int = 0
) -> str:
    path = folder / "source"
    path.write_bytes(bytes([number]) * size)
    return await sources.keep(owner, path, ".jpg", BEGIN + timedelta(seconds=after))


async def has(sources: PreviewSources, id_: str, owner: str = ONE, after: int = 0) -> bool:
    return await sources.find(owner, id_, BEGIN + timedelta(seconds=after)) is not None


async def content(sources: PreviewSources, id_: str) -> bytes:
    found = await sources.find(ONE, id_, BEGIN)
    assert found is not None
    return b"".join([chunk async for chunk in sources.read(found)])


async def test_a_source_is_read_by_its_key_until_it_expires(sources: PreviewSources, tmp_path: Path) -> None:
    id_ = await keep(sources, tmp_path, 7)
    assert id_ == f"{hashlib.sha256(bytes([7]) * 10).hexdigest()[:32]}.jpg"
    assert await content(sources, id_) == b"\7" * 10
    assert not await has(sources, id_, OTHER)
    assert not await has(sources, f"{'0' * 32}.jpg")
    assert await has(sources, id_, after=SECONDS)
    assert not await has(sources, id_, after=SECONDS + 1)


@pytest.mark.parametrize("id_", ["", "../secret", "a/b", "*", f"{'0' * 32}.jpg/..", "x" * 300])
async def test_no_other_file_is_a_source(id_: str, sources: PreviewSources, tmp_path: Path) -> None:
    await keep(sources, tmp_path, 7)
    assert not await has(sources, id_)


async def test_a_source_that_is_kept_again_stays_longer_and_once(
    sources: PreviewSources, tmp_path: Path
) -> None:
    id_, again = [await keep(sources, tmp_path, 7, after=after) for after in (0, SECONDS - 1)]
    assert id_ == again
    assert await has(sources, id_, after=SECONDS + 100)
    assert len(list((tmp_path / "shared").iterdir())) == 1


async def test_a_source_that_is_not_written_to_its_end_is_not_read(
    sources: PreviewSources, tmp_path: Path
) -> None:
    """As it is while another node writes it, or after a kill."""
    id_ = await keep(sources, tmp_path, 7)
    (file,) = (tmp_path / "shared").iterdir()
    file.write_bytes(b"\7" * 9)
    with pytest.raises(FileNotFoundError):
        await content(sources, id_)
    assert await content(sources, await keep(sources, tmp_path, 7, after=1)) == b"\7" * 10


async def test_a_key_has_so_many_sources_and_a_quarter_of_the_bytes(
    sources: PreviewSources, tmp_path: Path
) -> None:
    others = await keep(sources, tmp_path, 99, owner=OTHER)
    ids = [await keep(sources, tmp_path, number, after=number) for number in range(MOST_OF_A_KEY + 1)]
    assert [await has(sources, id_) for id_ in ids[:3]] == [False, True, True]
    large = await keep(sources, tmp_path, 20, size=sources.most_bytes - 25, after=50)
    assert [id_ for id_ in (*ids, large) if await has(sources, id_)] == [*ids[-2:], large]
    assert await has(sources, others, OTHER)


async def test_all_keys_have_so_many_bytes_and_the_oldest_go_first(
    sources: PreviewSources, tmp_path: Path
) -> None:
    owners = [str(uuid4()) for _ in range(5)]
    ids = [
        await keep(sources, tmp_path, number, size=sources.most_bytes, owner=owner, after=number)
        for number, owner in enumerate(owners)
    ]
    kept = [await has(sources, id_, owner) for id_, owner in zip(ids, owners, strict=True)]
    assert kept == [False] + 4 * [True]


async def test_expired_sources_are_deleted_and_nothing_else(sources: PreviewSources, tmp_path: Path) -> None:
    first = await keep(sources, tmp_path, 1)
    second = await keep(sources, tmp_path, 2, after=100)
    (tmp_path / "shared" / "notes.txt").touch()
    await sources.sweep(BEGIN + timedelta(seconds=SECONDS + 1))
    assert not await has(sources, first)
    assert await has(sources, second)
    assert (tmp_path / "shared" / "notes.txt").exists()
