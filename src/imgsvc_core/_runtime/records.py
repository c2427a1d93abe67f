"""Immutable classes by attrs that share their methods, and whose constructors are made at their first use.

attrs would compile the methods of each class anew at the import, which takes longer than a small picture,
and most pictures need few of the classes.
"""

from __future__ import annotations

import contextlib
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import attrs

if TYPE_CHECKING:
    from attrs import frozen

__all__ = ["complete_later", "frozen", "values_getter"]

_T = TypeVar("_T")


def _equal(self: Any, other: Any) -> Any:
    return (
        self.__imgsvc_compared__(self) == self.__imgsvc_compared__(other)
        if type(self) is type(other)
        else NotImplemented
    )


def _hash(self: Any) -> int:
    return hash((type(self), self.__imgsvc_hashed__(self)))


def _shown(self: Any) -> str:
    values = (f"{field.name}={getattr(self, field.name)!r}" for field in self.__attrs_attrs__ if field.repr)
    return f"{type(self).__qualname__}({', '.join(values)})"


def _refuse(self: Any, *_: Any) -> NoReturn:
    raise attrs.exceptions.FrozenInstanceError


def values_getter(names: Sequence[str]) -> Callable[[Any], Any]:
    """Return a function that returns the values of some attributes of an object."""
    return operator.attrgetter(*(names or ["__class__"]))


_METHODS = {"__eq__": _equal, "__hash__": _hash, "__repr__": _shown}
_FROZEN = {"__setattr__": _refuse, "__delattr__": _refuse}
_LATER = ("__attrs_attrs__", "__imgsvc_compared__", "__imgsvc_hashed__", "__match_args__", "__signature__")
_OF_ATTRS = {"__init__", "__dict__", "__weakref__", "__imgsvc_fields__", *_FROZEN, *_LATER}
_FEW = 30
"""So many objects are made in less time than a constructor is compiled."""


class _Later:
    """An attribute of a class that a function sets, with others, when one of them is first read."""

    def __init__(self, cls: type, name: str, complete: Callable[[], None]) -> None:
        self._cls = cls
        self._name = name
        self._complete = complete

    def __get__(self, instance: object, owner: type) -> Any:
        self._complete()
        return getattr(self._cls, self._name)


def complete_later(cls: type, names: Iterable[str], complete: Callable[[], None]) -> None:
    """Let a function set attributes of a class when one of them is first read."""
    for name in names:
        setattr(cls, name, _Later(cls, name, complete))


class _Fields:
    """The fields that a class declares. attrs makes a constructor of them when there are many objects."""

    def __init__(self, cls: Any, kw_only: bool) -> None:
        self._cls = cls
        self._kw_only = kw_only
        self._annotations = inspect.get_annotations(cls)
        self._values = {name: vars(cls)[name] for name in self._annotations if name in vars(cls)}
        self._left = _FEW

    def initialize(self, made: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Give an object its fields."""
        self._left -= 1
        values = self._plainly(args, named) if self._left > 0 else None
        if values is None:
            self.complete()
            self._cls.__init__(made, *args, **named)
            return
        vars(made).update(values)
        if hasattr(made, "__attrs_post_init__"):
            made.__attrs_post_init__()

    def _plainly(self, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any] | None:
        """Return the values of all fields; None if the fields are not plain or the arguments not right."""
        if self._plain is None or (args and self._kw_only):
            return None
        names, defaults = self._plain
        given = dict(zip(names, args, strict=False)) | named
        values = defaults | given
        right = len(given) == len(args) + len(named) and values.keys() == names.keys()
        return values if right else None

    @cached_property
    def _plain(self) -> tuple[dict[str, None], dict[str, Any]] | None:
        """The names and the defaults of all fields, if it takes nothing of attrs but them."""
        names: dict[str, None] = {}
        defaults: dict[str, Any] = {}
        for owner in reversed(self._cls.__mro__):
            own = vars(owner).get("__imgsvc_fields__")
            if own is None and "__attrs_attrs__" not in vars(owner):
                continue
            if own is None or own._kw_only != self._kw_only or "ClassVar" in str(own._annotations):
                return None
            for name in own._annotations:
                names.pop(name, None)
                defaults.pop(name, None)
            names |= dict.fromkeys(own._annotations)
            defaults |= own._values
        declared = any(isinstance(value, type(attrs.field())) for value in defaults.values())
        return None if declared else (names, defaults)

    def complete(self) -> None:
        """Give the class what attrs makes of it. Threads may do so at the same time, with the same result."""
        cls = self._cls
        kept = {name: value for name, value in vars(cls).items() if name not in _OF_ATTRS}
        names = {"__qualname__": cls.__qualname__, "__annotations__": self._annotations}
        copy = type(cls)(cls.__name__, cls.__bases__, {**kept, **names, **self._values})
        made: Any = attrs.frozen(copy, kw_only=self._kw_only, eq=False, repr=False, slots=False)
        fields = attrs.fields(made)
        made.__imgsvc_compared__ = values_getter([field.name for field in fields])
        made.__imgsvc_hashed__ = values_getter([field.name for field in fields if field.hash is not False])
        made.__signature__ = None  # it is that of the constructor
        for name in (*_LATER, "__init__"):
            setattr(cls, name, vars(made)[name])
        for name in self._values.keys() & {field.name for field in fields}:
            with contextlib.suppress(AttributeError):
                delattr(cls, name)  # as attrs does


if not TYPE_CHECKING:

    def frozen(cls: type[_T] | None = None, *, kw_only: bool = False) -> Any:
        """Make an immutable class as `attrs.frozen` does, with the methods of all others."""

        def made(cls: type[_T]) -> type[_T]:
            cls.__imgsvc_fields__ = fields = _Fields(cls, kw_only)

            def initialize(self: Any, *args: Any, **named: Any) -> None:
                fields.initialize(self, args, named)

            complete_later(cls, _LATER, fields.complete)
            for name, method in {**_FROZEN, "__init__": initialize}.items():
                setattr(cls, name, method)
            for name in _METHODS.keys() - vars(cls).keys():
                setattr(cls, name, _METHODS[name])
            return cls

        return made if cls is None else made(cls)
