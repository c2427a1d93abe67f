"""Sources that are kept for previews: whose they are, how long they stay, and how many there are."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from imgsvc_http.storage.kept_sources import MOST_OF_A_KEY, KeptSources

ONE, OTHER = str(uuid4()), str(uuid4())
SECONDS = 600
BYTES = 4000

Keep = Callable[..., str]


@pytest.fixture
def clock() -> list[float]:
    return [1e9]


@pytest.fixture
def kept(tmp_path: Path, clock: list[float]) -> KeptSources:
    return KeptSources(tmp_path / "kept", SECONDS, BYTES, clock=lambda: clock[0])


@pytest.fixture
def keep(kept: KeptSources, tmp_path: Path, clock: list[float]) -> Keep:
    """Keep so many bytes, a second after the ones before."""

    def keep(data: bytes, owner: str = ONE) -> str:
        clock[0] += 1
        source = tmp_path / "source"
        source.write_bytes(data)
        return kept.keep(owner, source, ".jpg")

    return keep


def has(kept: KeptSources, id_: str, owner: str = ONE) -> bool:
    try:
        kept.open(owner, id_).close()
    except FileNotFoundError:
        return False
    return True


def total(kept: KeptSources, tmp_path: Path) -> int:
    return sum(file.stat().st_size for file in (tmp_path / "kept").iterdir())


def test_a_source_is_read_by_its_own_key_only(kept: KeptSources, keep: Keep) -> None:
    id_ = keep(b"photo")
    with kept.open(ONE, id_) as file:
        assert file.read() == b"photo"
    assert not has(kept, id_, OTHER)
    assert keep(b"photo") == id_
    assert id_.endswith(".jpg")


@pytest.mark.parametrize("id_", ["", "x", "../../state.db", f"../{'0' * 32}.jpg", f"{'0' * 32}.jpg\n"])
def test_no_other_file_is_a_source(id_: str, kept: KeptSources) -> None:
    assert not has(kept, id_)


def test_a_source_ends_some_minutes_after_its_last_use(
    kept: KeptSources, keep: Keep, clock: list[float], tmp_path: Path
) -> None:
    id_ = keep(b"photo")
    clock[0] += SECONDS - 1
    assert has(kept, id_)
    clock[0] += SECONDS - 1
    kept.sweep()
    assert has(kept, id_)
    clock[0] += SECONDS
    assert not has(kept, id_)
    assert total(kept, tmp_path) == 5
    kept.sweep()
    assert total(kept, tmp_path) == 0


def test_a_key_has_so_many_at_most_and_loses_the_one_that_it_used_last(
    kept: KeptSources, keep: Keep, clock: list[float]
) -> None:
    ids = [keep(b"%d" % number) for number in range(MOST_OF_A_KEY)]
    others = keep(b"others", OTHER)
    clock[0] += 1
    assert has(kept, ids[0])
    newest = keep(b"newest")
    assert [has(kept, id_) for id_ in ids] == [True, False, *[True] * (MOST_OF_A_KEY - 2)]
    assert has(kept, newest)
    assert has(kept, others, OTHER)


def test_a_key_has_so_many_bytes_at_most(kept: KeptSources, keep: Keep) -> None:
    first, second = keep(b"a" * 600), keep(b"b" * 300)
    third = keep(b"c" * (kept.most_bytes - 300))
    assert [has(kept, id_) for id_ in (first, second, third)] == [False, True, True]


def test_all_keys_have_so_many_bytes_at_most_and_the_one_with_the_most_makes_room(
    kept: KeptSources, keep: Keep, tmp_path: Path
) -> None:
    small = keep(b"s" * 300, OTHER)
    owners = [str(uuid4()) for _ in range(4)]
    large = [
        keep(b"%d" % number * (kept.most_bytes - 4 + number), owner) for number, owner in enumerate(owners)
    ]
    assert has(kept, small, OTHER)
    assert [has(kept, id_, owner) for id_, owner in zip(large, owners, strict=True)] == [
        True,
        True,
        False,
        True,
    ]
    assert total(kept, tmp_path) <= BYTES


def test_what_a_killed_process_was_copying_goes(
    kept: KeptSources, clock: list[float], tmp_path: Path
) -> None:
    left = tmp_path / "kept" / ".copying-0"
    left.write_bytes(b"half")
    os.utime(left, (clock[0], clock[0]))
    kept.sweep()
    assert left.exists()
    clock[0] += SECONDS
    kept.sweep()
    assert not left.exists()


def test_only_one_process_at_a_time_adds_or_deletes(tmp_path: Path) -> None:
    """The clock is asked for in the middle of both, when nobody else gets the lock."""
    folder, source, locked = tmp_path / "kept", tmp_path / "source", []

    def clock() -> float:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked.append(False)
        except BlockingIOError:
            locked.append(True)
        finally:
            os.close(descriptor)
        return 1e9

    kept = KeptSources(folder, SECONDS, BYTES, clock=clock)
    source.write_bytes(b"photo")
    kept.keep(ONE, source, ".jpg")
    assert set(locked) == {True}
    locked.clear()
    kept.sweep()
    assert set(locked) == {True}
    clock()
    assert not locked[-1]
