"""Immutable classes by attrs that share their methods.

attrs would compile the comparison, the hash and the representation of each class anew, which takes longer
than all else of an import.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

if TYPE_CHECKING:
    from attrs import frozen

__all__ = ["frozen", "values_getter"]

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

if not TYPE_CHECKING:

    def frozen(cls: type[_T] | None = None, *, kw_only: bool = False) -> Any:
        """Make an immutable class as `attrs.frozen` does, with the methods of all others."""

        def made(cls: type[_T]) -> type[_T]:
            for name in _METHODS.keys() - vars(cls).keys():
                setattr(cls, name, _METHODS[name])
            made = attrs.frozen(cls, kw_only=kw_only, eq=False, repr=False)
            fields = attrs.fields(made)
            made.__imgsvc_compared__ = values_getter([field.name for field in fields])
            made.__imgsvc_hashed__ = values_getter(
                [field.name for field in fields if field.hash is not False]
            )
            return made

        return made if cls is None else made(cls)
