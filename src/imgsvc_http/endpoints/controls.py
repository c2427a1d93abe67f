"""What the playground knows of requests, for its controls: generated from the declarations of the core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import groupby
from typing import Any

import attrs

from imgsvc_core import FORMATS, Spec, __version__
from imgsvc_core.spec import FILTERS
from imgsvc_core.spec.declaring import Operation, Param, PartKind, PartsKind, Words, doc, params
from imgsvc_core.spec.options import PARAMETER_OPTIONS, ParameterOption
from imgsvc_http.answering.answers import documented
from imgsvc_http.endpoints.examples import examples

Value = str | int | float | bool


_OPTIONS = [option for option in PARAMETER_OPTIONS.values() if not isinstance(option.param.kind, Words)]
"""Those that change a picture. Words ask for facts of it."""

_ARRAYS = [item for item in params(Spec).values() if isinstance(item.kind, PartsKind)]
"""Parameters of requests that are arrays of objects."""


def _part_of(param: Param) -> type[Operation] | None:
    """Return what the object of a parameter is, or each object of its array."""
    return param.kind.operation if isinstance(param.kind, PartKind | PartsKind) else None


def _parts(found: Iterable[Param]) -> Iterator[type[Operation]]:
    """Yield the classes of objects that parameters hold, and those that these hold."""
    for operation in filter(None, map(_part_of, found)):
        yield operation
        yield from _parts(params(operation).values())


_PARTS = {operation.key: operation for operation in _parts(_ARRAYS)}
"""What arrays and objects of requests hold, by key."""


def _all_operations() -> Iterable[type[Operation]]:
    return {*(option.operation for option in _OPTIONS), *_PARTS.values()}


def _all_params() -> Iterator[Param]:
    yield from (option.param for option in _OPTIONS)
    yield from _ARRAYS
    for operation in _PARTS.values():
        yield from params(operation).values()


def _names(items: Iterable[object]) -> dict[str, Any]:
    return {"enum": sorted({type(item).__name__ for item in items})}


@attrs.frozen(kw_only=True)
class Control:
    """A parameter of requests, for the control that sets it.

    Lengths are pixels from ``minimum`` to ``maximum``, or percent from ``least`` to ``most``.
    """

    name: str
    option: str = documented("Its name among those of all operations.")
    doc: str
    unit: str | None
    required: bool
    default: Value | None
    neutral: Value | None = documented("The value that changes nothing.")
    kind: str = documented(
        "What values it takes.", schema={"enum": sorted({item.kind.control for item in _all_params()})}
    )
    minimum: float | None = None
    maximum: float | None = None
    least: float | None = None
    most: float | None = documented("The largest percentage, or the most items of an array.", default=None)
    options: tuple[str, ...] | None = None
    alpha: bool | None = documented("Whether a color may have alpha.", default=None)
    part: str | None = documented("The key of what an object, or each item of an array, is.", default=None)


@attrs.frozen(kw_only=True)
class Rule:
    """A rule about several parameters of a group, with the fields of its kind."""

    rule: str = documented(
        "Its kind.", schema=_names(rule for operation in _all_operations() for rule in operation.rules)
    )
    choice: str | None = None
    options: tuple[Value, ...] | None = None
    names: tuple[str, ...] | None = None
    values: tuple[Value, ...] | None = None
    default: bool | None = None
    name: str | None = None
    other: str | None = None
    first: tuple[str, ...] | None = None
    second: tuple[str, ...] | None = None


@attrs.frozen(kw_only=True)
class Group:
    """An operation or a filter with its parameters."""

    key: str
    title: str
    doc: str
    filter: bool
    rules: tuple[Rule, ...]
    params: tuple[Control, ...]


@attrs.frozen(kw_only=True)
class WritableFormat:
    """A format of results."""

    name: str
    media_type: str
    suffix: str


@attrs.frozen(kw_only=True)
class Declarations:
    """What the page knows of the service.

    ``groups`` are operations, filters and arrays, in the order of application. An array is a group of one
    parameter of the same name. ``parts`` are what arrays and objects hold.
    """

    version: str
    metadata_header: str
    groups: tuple[Group, ...]
    parts: tuple[Group, ...]
    formats: tuple[WritableFormat, ...]
    examples: tuple[str, ...]


def declared(metadata_header: str = "") -> Declarations:
    """Return what the declarations say of requests, and the name of the header with the facts of results."""
    return Declarations(
        version=__version__,
        metadata_header=metadata_header,
        groups=_groups(),
        parts=tuple(_group(operation, params(operation).values()) for operation in _PARTS.values()),
        formats=tuple(
            WritableFormat(name=row.name, media_type=row.media_type, suffix=row.suffix)
            for row in FORMATS.values()
            if row.writable
        ),
        examples=tuple(examples()),
    )


@cache
def _groups() -> tuple[Group, ...]:
    in_order = groupby(_OPTIONS, key=lambda option: option.operation)
    groups = [_group(operation, [option.param for option in options]) for operation, options in in_order]
    places = {name: place for place, name in enumerate(params(Spec))}
    return tuple(
        sorted((*groups, *map(_array, _ARRAYS)), key=lambda group: places.get(group.key, places["filter"]))
    )


def _array(param: Param) -> Group:
    """Return an array of a request as a group."""
    title, control = param.name.capitalize(), _control(param, param.name)
    return Group(key=param.name, title=title, doc=param.doc, filter=False, rules=(), params=(control,))


def _group(operation: type[Operation], params: Iterable[Param]) -> Group:
    return Group(
        key=operation.key,
        title=operation.title,
        doc=doc(operation),
        filter=operation in FILTERS,
        rules=tuple(Rule(rule=type(rule).__name__, **_fields(rule, Rule)) for rule in operation.rules),
        params=tuple(_control(param, _option(operation, param)) for param in params),
    )


def _option(operation: type[Operation], param: Param) -> str:
    """Return the name of a parameter's option. Parameters of parts have names like those of options."""
    return ParameterOption(operation, param).name


def _control(param: Param, option: str) -> Control:
    def plain(value: Any) -> Any:
        return None if value in (attrs.NOTHING, None, ()) else param.kind.unparse(value)

    kind, part = param.kind, _part_of(param)

    return Control(
        name=param.name,
        option=option,
        doc=param.doc,
        unit=param.unit,
        required=param.required,
        default=plain(param.default),
        neutral=plain(param.neutral),
        kind=kind.control,
        part=None if part is None else part.key,
        **_fields(kind, Control),
    )


def _fields(declared: object, cls: type[attrs.AttrsInstance]) -> Mapping[str, Any]:
    """Return what a kind or a rule says, by the names of the fields that a class has, too."""
    own = type(declared)
    names = {field.name for field in attrs.fields(own)} if attrs.has(own) else set()
    return {name: getattr(declared, name) for name in names & attrs.fields_dict(cls).keys()}
