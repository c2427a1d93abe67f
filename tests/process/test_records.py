"""Classes of records that attrs completes when they are first used."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import signal
import sys
import threading
from typing import Any

import attrs
import pytest

from imgsvc_core._runtime.records import complete_all, complete_later, frozen


@frozen
class Point:
    x: int
    y: int = 2
    note: str = attrs.field(default="", hash=False)


@frozen(kw_only=True)
class Place(Point):
    z: int = 3


def test_a_record_is_immutable_compared_by_value_and_changed_as_one_of_attrs() -> None:
    point = Point(1)
    assert (point, hash(point)) == (Point(1, 2), hash(Point(1, note="other")))
    assert point != Point(1, note="other")
    assert repr(attrs.evolve(point, y=5)) == "Point(x=1, y=5, note='')"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        delattr(point, "x")


def test_a_class_tells_its_fields_and_its_signature_before_it_is_used() -> None:
    fresh: Any = frozen(type("Fresh", (Point,), {"__annotations__": {"z": "int"}, "z": 7}))
    assert list(inspect.signature(fresh).parameters) == ["x", "y", "note", "z"]
    assert [field.name for field in attrs.fields(fresh)] == ["x", "y", "note", "z"]
    assert fresh.__match_args__ == ("x", "y", "note", "z")


def test_a_record_inherits_the_fields_of_its_base() -> None:
    assert Place(x=1, z=4) != Place(x=1)
    assert repr(Place(x=1)) == "Place(x=1, y=2, note='', z=3)"


def test_a_record_of_a_class_that_is_not_used_yet_is_copied_and_pickled() -> None:
    made = pickle.dumps(Point(1, 5))
    fresh: Any = frozen(type("Point", (), {"__annotations__": {"x": "int", "y": "int", "note": "str"}}))
    fresh.__module__, fresh.__qualname__ = __name__, "Point"
    found = pickle.loads(made)
    assert (found.x, found.y, copy.copy(found)) == (1, 5, found)
    unused: Any = object.__new__(fresh)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        unused.x = 1


def test_all_classes_are_completed_at_once() -> None:
    fresh: Any = frozen(type("Fresh", (), {"__annotations__": {"x": "int"}}))
    assert not inspect.isfunction(vars(fresh)["__init__"])
    complete_all()
    assert inspect.isfunction(vars(fresh)["__init__"])


def test_threads_that_use_a_class_first_at_the_same_time_get_the_same() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(40):
            fresh: Any = frozen(type("Fresh", (), {"__annotations__": {"x": "int", "y": "int"}, "y": 2}))
            begin, made = threading.Barrier(8), list[str]()

            def make(fresh: Any = fresh, begin: threading.Barrier = begin, made: list[str] = made) -> None:
                begin.wait()
                made.append(repr(fresh(1)))

            threads = [threading.Thread(target=make) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert made == ["Fresh(x=1, y=2)"] * 8
    finally:
        sys.setswitchinterval(interval)


def test_a_process_that_is_forked_while_a_class_is_completed_can_use_it() -> None:
    begun, ready = threading.Event(), threading.Event()

    class Slow:
        x: int

    def complete(cls: type[Slow]) -> None:
        begun.set()
        ready.wait(60)
        cls.x = 1

    complete_later(Slow, ["x"], complete)
    threading.Thread(target=lambda: Slow.x).start()
    begun.wait(60)
    threading.Timer(0.3, ready.set).start()
    child = os.fork()
    if not child:
        signal.alarm(30)
        os._exit(Slow.x != 1)
    assert os.waitpid(child, 0)[1] == 0
