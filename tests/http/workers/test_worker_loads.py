"""Who takes more than its share of the workers."""

from __future__ import annotations

import attrs

from imgsvc_http.workers.worker_loads import WorkerLoads


@attrs.define
class Clock:
    """A clock that a test moves."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_who_is_alone_has_no_share_to_exceed() -> None:
    clock = Clock()
    loads = WorkerLoads(2, clock)
    for _ in range(4):
        loads.begin("alone")
    clock.now += 60
    assert not loads.exceeds_share("alone")
    assert not loads.exceeds_share("another one")


def test_many_workers_for_long_exceed_a_share_and_a_few_pictures_do_not() -> None:
    clock = Clock()
    loads = WorkerLoads(2, clock)
    for _ in range(2):
        loads.begin("greedy")
    exceeding = []
    for _ in range(30):
        loads.begin("modest")
        clock.now += 0.05
        loads.end("modest")
        clock.now += 0.15
        exceeding.append(loads.exceeds_share("greedy"))
        assert not loads.exceeds_share("modest")
    assert not exceeding[0]
    assert all(exceeding[10:])


def test_two_with_the_same_work_share_the_workers() -> None:
    clock = Clock()
    loads = WorkerLoads(2, clock)
    for name in ("one", "other"):
        loads.begin(name)
    clock.now += 30
    assert not any(loads.exceeds_share(name) for name in ("one", "other"))


def test_time_before_work_does_not_count() -> None:
    clock = Clock()
    loads = WorkerLoads(2, clock)
    loads.begin("late")
    loads.end("late")
    clock.now += 4
    for name in ("late", "late", "modest"):
        loads.begin(name)
    clock.now += 0.1
    assert not loads.exceeds_share("late")
    clock.now += 10
    assert loads.exceeds_share("late")


def test_what_was_long_ago_does_not_count() -> None:
    clock = Clock()
    loads = WorkerLoads(2, clock)
    for _ in range(2):
        loads.begin("greedy")
    loads.begin("modest")
    clock.now += 10
    assert loads.exceeds_share("greedy")
    loads.end("modest")
    clock.now += 10
    assert not loads.exceeds_share("greedy")
    for _ in range(2):
        loads.end("greedy")
    clock.now += 10
    loads.begin("modest")
    assert not loads.exceeds_share("greedy")
