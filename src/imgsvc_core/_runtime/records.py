"""Classes of fields that attrs reads, and that share their methods.

attrs would compile a constructor for each class, which takes longer than all else of an import, and importing
it takes longer than a small picture. `attrs.evolve`, `attrs.asdict` and `attrs.fields` take records, too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from attrs import asdict, evolve, field, frozen, mutable

__all__ = [
    "MISSING",
    "MadeLater",
    "asdict",
    "evolve",
    "field",
    "frozen",
    "metadata_of",
    "mutable",
    "refuse_change",
    "values_getter",
]

_T = TypeVar("_T")


class _Missing:
    """The default of a field that must be given."""

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


def values_getter(names: Sequence[str]) -> Callable[[Any], Any]:
    """Return a function that returns the values of some attributes of an object."""
    return operator.attrgetter(*(names or ["__class__"]))


def metadata_of(record: type[Any]) -> dict[str, Mapping[str, Any]]:
    """Return the metadata of each field of a class of records, by name."""
    shape: _Shape = record.__imgsvc_record__
    return {name: one.metadata or {} for name, one in shape.fields.items()}


class MadeLater:
    """An attribute of a class that is made when it is read."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self._known: dict[type, Any] = {}

    def __get__(self, instance: object, owner: type) -> Any:
        if owner not in self._known:
            self._known[owner] = self._make(owner)
        return self._known[owner]


class _Field:
    """The facts of a field, by the names of `attrs.field`."""

    def __init__(
        self,
        *,
        default: Any = MISSING,
        factory: Callable[[], Any] | None = None,
        alias: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        repr: bool = True,
        hash: bool = True,
    ) -> None:
        self.default, self.factory, self.alias = default, factory, alias
        self.metadata, self.repr, self.hash = metadata, repr, hash
        self.kw_only = False


class _Shape:
    """The fields of a record, and what its constructor needs to know of them."""

    def __init__(self, cls: type, own: Mapping[str, _Field]) -> None:
        inherited = {
            name: one
            for base in reversed(cls.__mro__[1:])
            if "__imgsvc_record__" in vars(base)
            for name, one in vars(base)["__imgsvc_record__"].own.items()
        }
        self.own = own
        self.fields = {name: one for name, one in inherited.items() if name not in own} | {**own}
        self.arguments = {name: one.alias or name.lstrip("_") for name, one in self.fields.items()}
        self.expected = frozenset(self.arguments.values())
        self.renamed = [(alias, name) for name, alias in self.arguments.items() if alias != name]
        self.positional = tuple(self.arguments[name] for name, one in self.fields.items() if not one.kw_only)
        self.defaults = {
            self.arguments[name]: one.default
            for name, one in self.fields.items()
            if one.default is not MISSING
        }
        self.factories = [
            (self.arguments[name], one.factory)
            for name, one in self.fields.items()
            if one.factory is not None
        ]
        self.finishes = hasattr(cls, "__attrs_post_init__")
        self.compared = values_getter([*self.fields])
        self.hashed = values_getter([name for name, one in self.fields.items() if one.hash])


def _construct(self: Any, *given: Any, **named: Any) -> None:
    shape, values = self.__imgsvc_record__, self.__dict__
    values.update(shape.defaults)
    if given:
        values.update(zip(shape.positional, given, strict=False))
    values.update(named)
    for name, factory in shape.factories:
        if name not in values:
            values[name] = factory()
    if (
        values.keys() != shape.expected
        or len(given) > len(shape.positional)
        or (given and not named.keys().isdisjoint(shape.positional[: len(given)]))
    ):
        raise TypeError(_misfit(type(self), given, named))
    for alias, name in shape.renamed:
        values[name] = values.pop(alias)
    if shape.finishes:
        self.__attrs_post_init__()


def _misfit(cls: type[Any], given: Sequence[Any], named: Mapping[str, Any]) -> str:
    """Return why a constructor does not take these arguments, in Python's words."""
    shape: _Shape = cls.__imgsvc_record__
    called = f"{cls.__name__}.__init__()"
    if len(given) > len(shape.positional):
        return f"{called} takes {len(shape.positional)} arguments without their names but got {len(given)}"
    for name in named:
        if name not in shape.expected:
            return f"{called} got an unexpected keyword argument '{name}'"
        if name in shape.positional[: len(given)]:
            return f"{called} got multiple values for argument '{name}'"
    known = {*shape.positional[: len(given)], *named, *shape.defaults, *dict(shape.factories)}
    missing = [f"'{name}'" for name in shape.arguments.values() if name not in known]
    return f"{called} missing required arguments: {', '.join(missing)}"


def _equal(self: Any, other: Any) -> Any:
    compared = self.__imgsvc_record__.compared
    return compared(self) == compared(other) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash((type(self), self.__imgsvc_record__.hashed(self)))


def _shown(self: Any) -> str:
    fields = self.__imgsvc_record__.fields.items()
    values = (f"{name}={getattr(self, name)!r}" for name, one in fields if one.repr)
    return f"{type(self).__qualname__}({', '.join(values)})"


def _replaced(self: Any, **changes: Any) -> Any:
    arguments = self.__imgsvc_record__.arguments.items()
    return type(self)(**{alias: getattr(self, name) for name, alias in arguments} | changes)


def refuse_change(self: object, name: str, value: object = None) -> NoReturn:
    """Raise the error of attrs for a change of an immutable object."""
    if name.startswith("__"):  # typing tries to keep the types of a generic class on each object
        raise AttributeError(name)
    from attrs.exceptions import FrozenInstanceError

    raise FrozenInstanceError


def _attrs_fields(cls: type[Any]) -> Any:
    """Return the fields as attrs describes them."""
    import attrs

    shape: _Shape = cls.__imgsvc_record__
    annotations = {
        name: annotation
        for base in reversed(cls.__mro__)
        for name, annotation in getattr(base, "__annotations__", {}).items()
    }
    fields = {
        name: attrs.field(
            default=attrs.NOTHING if one.default is MISSING else one.default,
            factory=one.factory, alias=shape.arguments[name], metadata=one.metadata, repr=one.repr,
            hash=None if one.hash else False, kw_only=one.kw_only, type=annotations[name],
        )
        for name, one in shape.fields.items()
    }  # fmt: skip
    return attrs.fields(attrs.make_class(cls.__name__, fields))


def _signature(cls: type[Any]) -> Any:
    import inspect

    return inspect.Signature(tuple(_parameters(cls)))


def _parameters(cls: type[Any]) -> Iterator[Any]:
    from inspect import Parameter

    ordered = sorted(cls.__attrs_attrs__, key=lambda one: one.kw_only)
    for one in ordered:
        kind = Parameter.KEYWORD_ONLY if one.kw_only else Parameter.POSITIONAL_OR_KEYWORD
        default = Parameter.empty if repr(one.default) == "NOTHING" else one.default
        yield Parameter(one.alias, kind, default=default, annotation=one.type)


_METHODS = {
    "__init__": _construct,
    "__repr__": _shown,
    "__replace__": _replaced,
    "__match_args__": MadeLater(lambda cls: cls.__imgsvc_record__.positional),
    "__attrs_attrs__": MadeLater(_attrs_fields),
    "__signature__": MadeLater(_signature),
}
_OF_VALUES = {"__eq__": _equal, "__hash__": _hash}
_OF_IMMUTABLE = {"__setattr__": refuse_change, "__delattr__": refuse_change}


def _made(cls: type[_T], methods: Mapping[str, Any], *, kw_only: bool) -> type[_T]:
    own = {}
    for name, annotation in cls.__annotations__.items():
        if "ClassVar" in str(annotation):
            continue
        given = vars(cls).get(name, MISSING)
        own[name] = given if isinstance(given, _Field) else _Field(default=given)
        own[name].kw_only = kw_only
        if given is not MISSING:
            delattr(cls, name)
    for name, method in methods.items():
        if name not in vars(cls):
            setattr(cls, name, method)
    made: Any = cls
    made.__imgsvc_record__ = _Shape(cls, own)
    return cls


if not TYPE_CHECKING:
    field = _Field

    def frozen(cls: type[_T] | None = None, *, kw_only: bool = False, eq: bool = True) -> Any:
        """Make an immutable class as `attrs.frozen` does."""
        methods = _METHODS | _OF_IMMUTABLE | (_OF_VALUES if eq else {})
        made = partial(_made, methods=methods, kw_only=kw_only)
        return made if cls is None else made(cls)

    def mutable(cls: type[_T] | None = None, *, eq: bool = True) -> Any:
        """Make a class as `attrs.mutable` does."""
        methods = _METHODS | ({"__eq__": _equal, "__hash__": None} if eq else {})
        made = partial(_made, methods=methods, kw_only=False)
        return made if cls is None else made(cls)

    def evolve(record: _T, **changes: Any) -> _T:
        """Return a copy of a record with other values of some fields."""
        return record.__replace__(**changes)

    def asdict(record: Any) -> dict[str, Any]:
        """Return the values of a record by name, those of records in them likewise."""
        return {name: _plain(getattr(record, name)) for name in record.__imgsvc_record__.fields}

    def _plain(value: Any) -> Any:
        if hasattr(type(value), "__imgsvc_record__"):
            return asdict(value)
        if isinstance(value, dict):
            return {name: _plain(item) for name, item in value.items()}
        return type(value)(map(_plain, value)) if isinstance(value, list | tuple) else value
