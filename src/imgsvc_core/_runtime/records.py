"""Immutable classes by attrs that share their methods.

attrs would compile the comparison, the hash and the representation of each class anew, which takes longer
than all else of an import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import attrs

if TYPE_CHECKING:
    from attrs import frozen

__all__ = ["frozen"]

_T = TypeVar("_T")


def _values(record: Any) -> tuple[Any, ...]:
    return tuple(getattr(record, field.name) for field in record.__attrs_attrs__)


def _equal(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(
        (
            type(self),
            *(getattr(self, field.name) for field in self.__attrs_attrs__ if field.hash is not False),
        )
    )


def _shown(self: Any) -> str:
    values = (f"{field.name}={getattr(self, field.name)!r}" for field in self.__attrs_attrs__ if field.repr)
    return f"{type(self).__qualname__}({', '.join(values)})"


_METHODS = {"__eq__": _equal, "__hash__": _hash, "__repr__": _shown}

if not TYPE_CHECKING:

    def frozen(cls: type[_T] | None = None, *, kw_only: bool = False) -> Any:
        """Make an immutable class as `attrs.frozen` does, with the methods of all others."""

        def made(cls: type[_T]) -> type[_T]:
            for name in _METHODS.keys() - vars(cls).keys():
                setattr(cls, name, _METHODS[name])
            return attrs.frozen(cls, kw_only=kw_only, eq=False, repr=False)

        return made if cls is None else made(cls)
