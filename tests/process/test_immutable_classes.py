"""Immutable classes are those of attrs, however many of their objects were made."""

from __future__ import annotations

import copy
import inspect
import pickle
import pkgutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import attrs
import pytest

import imgsvc_core
from imgsvc_core._runtime.records import _FEW, frozen

MANY = _FEW + 2


def point() -> Any:
    """Return a new class, of which no object was made."""

    @frozen
    class Base:
        x: int
        label: str = ""

    @frozen
    class Point(Base):
        y: float = 2.0
        seen: tuple[int, ...] = ()

        def __attrs_post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("negative")

    return Point


def test_few_and_many_objects_are_alike() -> None:
    cls = point()
    made = [cls(1, y=3, label="a") for _ in range(MANY)]
    assert all(one == made[0] and hash(one) == hash(made[0]) for one in made)
    assert {repr(one) for one in made} == {"point.<locals>.Point(x=1, label='a', y=3, seen=())"}
    assert [vars(one) for one in made] == [{"x": 1, "label": "a", "y": 3, "seen": ()}] * MANY
    assert cls(1) != cls(2)
    assert cls(1) != (1, "", 2.0, ())


@pytest.mark.parametrize("before", [0, 1, MANY])
@pytest.mark.parametrize(
    ("args", "named", "message"),
    [
        ((), {}, "missing 1 required positional argument: 'x'"),
        ((1,), {"x": 1}, "got multiple values for argument 'x'"),
        ((1,), {"z": 1}, "got an unexpected keyword argument 'z'"),
        ((1, "", 2, (), 5), {}, "takes from 2 to 5 positional arguments but 6 were given"),
    ],
)
def test_wrong_arguments(before: int, args: Any, named: Any, message: str) -> None:
    cls = point()
    for _ in range(before):
        cls(1)
    with pytest.raises(TypeError, match=message.replace("(", "\\(")):
        cls(*args, **named)


@pytest.mark.parametrize("before", [0, MANY])
def test_an_object_is_checked_and_cannot_be_changed(before: int) -> None:
    cls = point()
    for _ in range(before):
        cls(1)
    with pytest.raises(ValueError, match="negative"):
        cls(-1)
    one = cls(1)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one.x = 2
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        del one.x
    assert one.x == 1


def test_attrs_and_python_know_a_class_of_which_no_object_was_made() -> None:
    assert [field.name for field in attrs.fields(point())] == ["x", "label", "y", "seen"]
    names = list(inspect.signature(point()).parameters)
    assert names == ["x", "label", "y", "seen"] == list(point().__match_args__)
    cls = point()
    made = copy.copy(cls(1))
    assert attrs.evolve(made, x=2) == cls(2)
    assert attrs.asdict(made)["x"] == 1
    match cls(5):
        case cls(x):
            assert x == 5


def test_arguments_by_name_only_factories_and_properties() -> None:
    @frozen(kw_only=True)
    class Named:
        a: int
        b: list[int] = attrs.field(factory=list)

    assert Named(a=1).b is not Named(a=1).b
    for _ in range(MANY):
        with pytest.raises(TypeError, match="positional"):
            Named(1)  # type: ignore[call-arg]


def test_a_class_is_completed_by_several_threads() -> None:
    for _ in range(20):
        cls = point()
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda number, cls=cls: cls(number, y=number), range(4 * MANY)))
        assert [one.x for one in found] == list(range(4 * MANY))


def test_an_object_of_another_process_is_read_before_any_is_made() -> None:
    info = imgsvc_core.Face(left=1, top=2, width=3, height=4, score=0.9)
    read = (
        "import pickle, sys; face = pickle.loads(sys.stdin.buffer.read()); print(repr(face)); face.left = 1"
    )
    done = subprocess.run([sys.executable, "-c", read], input=pickle.dumps(info), capture_output=True)
    assert done.stdout.decode().strip() == repr(info)
    assert b"FrozenInstanceError" in done.stderr


def test_plain_fields_of_all_classes_are_those_of_attrs() -> None:
    for module in pkgutil.walk_packages(imgsvc_core.__path__, "imgsvc_core."):
        import_module(module.name)
    loaded = [module for name, module in [*sys.modules.items()] if name.startswith("imgsvc_core.")]
    classes = {one for module in loaded for one in vars(module).values() if isinstance(one, type)}
    plain = 0
    for cls in classes:
        declared = vars(cls).get("__imgsvc_fields__")
        if declared is None or (known := declared._plain) is None:
            continue
        plain += 1
        fields = attrs.fields(cls)
        assert list(known[0]) == [field.name for field in fields], cls
        defaults = {field.name: field.default for field in fields if field.default is not attrs.NOTHING}
        assert known[1] == defaults, cls
    assert plain > 60
