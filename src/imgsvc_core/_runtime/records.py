"""Immutable classes by attrs that share their methods, and that attrs completes when they are first used.

attrs would compile the comparison, the hash and the representation of each class anew, and a process uses few
of the classes that it loads. Both would take longer than all else of an import.
"""

from __future__ import annotations

import functools
import operator
import os
from _thread import RLock  # of real threads, whatever was patched
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

if TYPE_CHECKING:
    from attrs import frozen

__all__ = ["complete_all", "complete_later", "frozen", "values_getter"]

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


def values_getter(names: Sequence[str]) -> Callable[[Any], Any]:
    """Return a function that returns the values of some attributes of an object."""
    return operator.attrgetter(*(names or ["__class__"]))


_METHODS = {"__eq__": _equal, "__hash__": _hash, "__repr__": _shown}
_COMPLETING = RLock()
_incomplete: list[Callable[[], object]] = []
os.register_at_fork(  # a process is not forked while another thread completes a class
    before=_COMPLETING.acquire, after_in_parent=_COMPLETING.release, after_in_child=_COMPLETING.release
)


class _Later:
    """An attribute of a class that is made, with others, when one of them is first asked for."""

    def __init__(self, cls: type, name: str, complete: Callable[[Any], None]) -> None:
        self._cls = cls
        self._name = name
        self._complete = complete

    def __get__(self, instance: object, owner: type) -> Any:
        with _COMPLETING:
            if vars(self._cls).get(self._name) is self:
                self._complete(self._cls)
        return getattr(owner if instance is None else instance, self._name)


def complete_later(cls: type, names: Iterable[str], complete: Callable[[Any], None]) -> None:
    """Let a function set these attributes of a class when one of them is first asked for."""
    for name in names:
        setattr(cls, name, _Later(cls, name, complete))
    _incomplete.append(functools.partial(getattr, cls, name))


def complete_all() -> None:
    """Complete the classes that are loaded, in a process whose children use most of them."""
    while _incomplete:
        _incomplete.pop()()


_BY_ATTRS = (
    *("__init__", "__setattr__", "__delattr__", "__attrs_attrs__", "__match_args__"),
    *("__imgsvc_compared__", "__imgsvc_hashed__"),
)


def _complete(cls: Any, *, kw_only: bool) -> None:
    del cls.__match_args__  # attrs makes it for classes that have none
    attrs.define(cls, frozen=True, slots=False, eq=False, repr=False, auto_detect=False, kw_only=kw_only)
    fields = attrs.fields(cls)
    cls.__imgsvc_compared__ = values_getter([field.name for field in fields])
    cls.__imgsvc_hashed__ = values_getter([field.name for field in fields if field.hash is not False])


if not TYPE_CHECKING:

    def frozen(cls: type[_T] | None = None, *, kw_only: bool = False) -> Any:
        """Make an immutable class as `attrs.frozen` does, with the methods of all others."""

        def made(cls: type[_T]) -> type[_T]:
            for name in _METHODS.keys() - vars(cls).keys():
                setattr(cls, name, _METHODS[name])
            complete_later(cls, _BY_ATTRS, functools.partial(_complete, kw_only=kw_only))
            return cls

        return made if cls is None else made(cls)
