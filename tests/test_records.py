"""Records beside the classes that attrs makes of the same fields."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import attrs
import pytest
from attrs.exceptions import FrozenInstanceError

from imgsvc_core._runtime.records import asdict, evolve, field, frozen, metadata_of, mutable

T = TypeVar("T")


@frozen
class Place:
    """A record with fields of all kinds."""

    kind: ClassVar[str] = "place"
    name: str
    _secret: int = 3
    tags: list[str] = field(factory=list, hash=False)
    note: str = field(default="", repr=False, metadata={"doc": "A note."})

    @property
    def secret(self) -> int:
        return self._secret


@attrs.frozen
class PlaceByAttrs:
    kind: ClassVar[str] = "place"
    name: str
    _secret: int = 3
    tags: list[str] = attrs.field(factory=list, hash=False)
    note: str = attrs.field(default="", repr=False, metadata={"doc": "A note."})

    @property
    def secret(self) -> int:
        return self._secret


@frozen(kw_only=True)
class Town(Place):
    size: int
    name: str = "Bern"


@attrs.frozen(kw_only=True)
class TownByAttrs(PlaceByAttrs):
    size: int
    name: str = "Bern"


@mutable
class Count:
    number: int = 0


@frozen
class Box(Generic[T]):
    content: T


@frozen(eq=False)
class Single:
    number: int


@frozen
class Positive:
    number: int

    def __attrs_post_init__(self) -> None:
        if self.number < 1:
            raise ValueError(self.number)


PAIRS = [(Place, PlaceByAttrs), (Town, TownByAttrs)]
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("a",), {}),
    (("a", 4), {"note": "n"}),
    (("a", 4, ["t"], "n"), {}),
    ((), {"name": "a", "secret": 5}),
    ((), {"size": 3}),
    ((4, ["t"]), {"size": 3}),
    ((), {}),
    (("a", 1, [], "n", 5), {}),
    (("a",), {"name": "b"}),
    (("a",), {"size": 3, "nmae": "b"}),
    (("a",), {"_secret": 4}),
    (("a",), {"kind": "b"}),
]


def outcome(make: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> object:
    try:
        made = make(*given, **named)
    except TypeError:
        return TypeError
    return repr(made).replace("ByAttrs", ""), attrs.asdict(made), made.secret


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize(("given", "named"), CALLS)
def test_a_constructor_takes_what_that_of_attrs_takes(
    ours: Any, theirs: Any, given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    assert outcome(ours, given, named) == outcome(theirs, given, named)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_attrs_and_inspect_know_the_fields(ours: Any, theirs: Any) -> None:
    def told(cls: Any) -> list[tuple[Any, ...]]:
        return [
            (one.name, one.alias, one.default, one.kw_only, one.repr, one.hash, dict(one.metadata), one.type)
            for one in attrs.fields(cls)
        ]

    assert told(ours) == told(theirs)
    assert attrs.has(ours)
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    assert metadata_of(ours)["note"] == {"doc": "A note."}


def test_records_are_compared_and_hashed_by_value_and_type() -> None:
    one, same = Place("a", tags=["t"]), Place("a", tags=["t"])
    assert (one == same, hash(one) == hash(same)) == (True, True)
    assert one != Place("b", tags=["t"])
    assert Town(size=1) != Place("Bern")
    assert Count(1) == Count(1)
    assert Single(1) != Single(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Count(1))


def test_only_mutable_records_change() -> None:
    one = Place("a")
    with pytest.raises(FrozenInstanceError):
        one.name = "b"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del one.name
    count = Count()
    count.number += 1
    assert count.number == 1


def test_no_two_records_share_what_a_factory_makes() -> None:
    Place("a").tags.append("t")
    assert Place("a").tags == []


@pytest.mark.parametrize("evolved", [evolve, attrs.evolve])
def test_a_copy_with_other_values_is_checked_as_a_new_one(evolved: Any) -> None:
    assert evolved(Place("a", 4), secret=5) == Place("a", 5)
    assert evolved(Box[int](1), content=2) == Box(2)
    with pytest.raises(ValueError, match="0"):
        evolved(Positive(3), number=0)
    with pytest.raises(TypeError, match="numbr"):
        evolved(Positive(3), numbr=1)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_records_can_be_copied_and_pickled(copied: Any) -> None:
    for one in (Place("a", 4, ["t"]), Town(4, ["t"], size=2), Count(3)):
        assert copied(one) == one


def test_values_are_told_down_to_records_in_records() -> None:
    nested = Box({"places": (Place("a"), [Town(size=1)])})
    assert asdict(nested) == attrs.asdict(nested)
    assert asdict(nested)["content"]["places"][0]["name"] == "a"


def test_records_match_patterns() -> None:
    match Place("a", 4):
        case Place(name, secret):
            assert (name, secret) == ("a", 4)
