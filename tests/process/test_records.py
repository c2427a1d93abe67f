"""Classes of records: immutable, compared by value, and those of attrs for all who ask."""

from __future__ import annotations

import inspect
import pickle

import attrs
import pytest

from imgsvc_core._runtime.records import frozen


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


def test_a_record_inherits_the_fields_of_its_base() -> None:
    assert Place(x=1, z=4) != Place(x=1)
    assert repr(Place(x=1)) == "Place(x=1, y=2, note='', z=3)"


def test_a_class_tells_its_fields_and_its_signature() -> None:
    assert list(inspect.signature(Point).parameters) == ["x", "y", "note"]
    assert [field.name for field in attrs.fields(Place)] == ["x", "y", "note", "z"]
    assert Point.__match_args__ == ("x", "y", "note")


def test_a_record_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Place(x=1, z=5))) == Place(x=1, z=5)
