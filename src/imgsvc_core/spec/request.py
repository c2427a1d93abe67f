"""The whole request: which operations, in which order, and how the result is encoded."""

import functools
import hashlib
import json
import marshal
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar, cast

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.spec.adjust import Adjust, Auto
from imgsvc_core.spec.declare import (
    Accepts,
    Operation,
    Parameters,
    all_params,
    below,
    declared,
    doc,
    or_null,
    param,
    params,
)
from imgsvc_core.spec.filters import FILTERS, Filter
from imgsvc_core.spec.frame import Border, Canvas, Mask, Padding
from imgsvc_core.spec.geometry import Crop, Flip, Orient, Resize, Rotate, Scale, Trim
from imgsvc_core.spec.output import Output
from imgsvc_core.spec.parsing import parse_operation, unknown_keys, unparse_operation
from imgsvc_core.spec.rules import NotTogether, given
from imgsvc_core.spec.schema import operation_schema
from imgsvc_core.spec.watermark import Watermark

_JsonObject = Mapping[str, Any]
_O = TypeVar("_O", bound=Operation)
Part = Accepts[_O | None, _O | _JsonObject | None]
Filters = Accepts[
    tuple[Filter, ...], Filter | Iterable[Filter | Mapping[str, Any]] | Mapping[str, Any] | None
]

_FILTERS = {item.key: item for item in FILTERS}
_WITHOUT_REFERENCES = 2  # a version of marshal in which equal values are equal bytes
_MAX_CACHED = 4096


@attrs.frozen
class PartKind:
    """The kind of a parameter that is an operation."""

    operation: type[Operation]
    expectation = "object of parameters"

    def parse(self, value: object) -> Operation:
        return parse_operation(self.operation, value)

    def unparse(self, value: Operation) -> dict[str, Any]:
        return unparse_operation(value)

    def schema(self) -> dict[str, Any]:
        return operation_schema(self.operation)


@attrs.frozen
class FilterKind:
    """The kind of ``filter``: an object of filters, or an array of one-key objects in the order to apply."""

    expectation = "object of filters or an array of one-key objects"

    def parse(self, value: object) -> tuple[Filter, ...]:
        if isinstance(value, Filter):
            return (value,)
        if isinstance(value, Mapping):
            return tuple(sorted(_parse_filters(value), key=lambda item: FILTERS.index(type(item))))
        if not isinstance(value, Iterable) or isinstance(value, str | bytes):
            raise SpecError([Problem("", f"Filter must be an {self.expectation}", f"got {shown(value)}")])
        problems: list[Problem] = []
        filters: list[Filter] = []
        for index, item in enumerate(value):
            try:
                filters += [item] if isinstance(item, Filter) else _parse_item(item)
            except SpecError as error:
                problems += below(f"[{index}]", error.problems)
        if problems:
            raise SpecError(problems)
        return tuple(filters)

    def unparse(self, value: tuple[Filter, ...]) -> list[dict[str, Any]]:
        return [{item.key: unparse_operation(item)} for item in value]

    def schema(self) -> dict[str, Any]:
        filters = {item.key: or_null(operation_schema(item)) for item in FILTERS}
        one = {"type": "object", "properties": filters, "additionalProperties": False}
        several = {
            "type": "array",
            "title": "Filters in the order of the array",
            "items": {**one, "oneOf": [given(name) for name in filters]},
        }
        return {
            "anyOf": [{**one, "title": "Filters in the fixed order", "maxProperties": len(filters)}, several]
        }


def _part(operation: type[Operation], *, internal: bool = False) -> Any:
    return param(doc(operation), PartKind(operation), default=None, internal=internal)


@declared
class Spec(Parameters):
    """A request. The fields stand in the order of application, whatever order a JSON document has.

    Specs compare and hash by value. ``digest`` is the same for requests that ask for the same thing.
    """

    title: ClassVar[str] = "The request"

    orient: Part[Orient] = _part(Orient, internal=True)
    trim: Part[Trim] = _part(Trim)
    flip: Part[Flip] = _part(Flip)
    rotate: Part[Rotate] = _part(Rotate)
    crop: Part[Crop] = _part(Crop)
    resize: Part[Resize] = _part(Resize)
    scale: Part[Scale] = _part(Scale)
    auto: Part[Auto] = _part(Auto)
    adjust: Part[Adjust] = _part(Adjust)
    filter: Filters = param("Filters in the order of application.", FilterKind(), default=())
    mask: Part[Mask] = _part(Mask)
    canvas: Part[Canvas] = _part(Canvas)
    padding: Part[Padding] = _part(Padding)
    border: Part[Border] = _part(Border)
    watermark: Part[Watermark] = _part(Watermark)
    output: Part[Output] = _part(Output)

    def canonical(self) -> str:
        """Return the request as the shortest JSON text: no neutral operations, no defaults, sorted keys."""
        return json.dumps(unparse(self.simplified()), sort_keys=True, separators=(",", ":"))

    @functools.cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the canonical form in hexadecimal: the key of a cache of results."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def simplified(self) -> "Spec":
        """Return the same request without operations that change nothing."""
        parts: dict[str, Any] = {name: part for name, part in self.operations() if not part.is_neutral}
        filters = tuple(item for item in self.filter if not item.is_neutral)
        if len(parts) == len(self.operations()) and filters == self.filter:
            return self
        return Spec(**parts, filter=filters)

    @property
    def pictures(self) -> tuple[str, ...]:
        """Return the ids of the watermark pictures that the request needs."""
        named = (self.watermark.id,) if self.watermark else ()
        return tuple(dict.fromkeys((*named, *(id for item in self.filter for id in item.pictures))))

    def operations(self) -> tuple[tuple[str, Operation], ...]:
        """Return names and values of the operations that are present, in their order, without filters."""
        parts: list[tuple[str, Any]] = [(name, getattr(self, name)) for name in ALL_OPERATIONS]
        return tuple((name, part) for name, part in parts if part is not None)


ALL_OPERATIONS: Mapping[str, type[Operation]] = {
    name: item.kind.operation for name, item in all_params(Spec).items() if isinstance(item.kind, PartKind)
}
"""The operations by key, without filters, in the order of application, and also those that are internal."""

OPERATIONS: Mapping[str, type[Operation]] = {
    name: operation for name, operation in ALL_OPERATIONS.items() if name in params(Spec)
}
"""The operations of a request by key, without filters, in the order of application."""

PHASES: tuple[str, ...] = (
    "orient",
    "trim",
    "flip",
    "rotate",
    "crop",
    "resize",
    "scale",
    "auto",
    "adjust",
    "filter",
    "mask",
    "canvas",
    "padding",
    "border",
    "watermark",
    "opacity",
    "output",
)
"""The order in which a picture is worked on. Orientation and conversion to sRGB come first."""


def parse(value: object, *, also_known: Iterable[str] = ()) -> Spec:
    """Return the spec that a JSON value asks for.

    Args:
        value: JSON values, or a spec.
        also_known: keys that a mistyped one may have meant.

    Raises:
        SpecError: with all problems found, each with its path.

    >>> parse({"resize": {"width": 800}}).resize.width
    800
    """
    if isinstance(value, Spec):
        return value
    also_known = tuple(also_known)
    try:
        plain = marshal.dumps(cast("Any", value), _WITHOUT_REFERENCES)
        if len(plain) <= _MAX_CACHED:
            return _parse_cached(plain, also_known)
    except (SpecError, ValueError):
        pass  # marshal writes NumPy's numbers as bytes: what fails is parsed again as it was given
    return _parse(value, also_known)


@functools.lru_cache(maxsize=256)
def _parse_cached(plain: bytes, also_known: tuple[str, ...]) -> Spec:
    """Parse a document that may come again and again."""
    return _parse(marshal.loads(plain), also_known)


def _parse(value: object, also_known: Iterable[str]) -> Spec:
    if not isinstance(value, Mapping):
        raise SpecError([Problem("", "The request must be a JSON object", f"got {shown(value)}")])
    document = {key: item for key, item in value.items() if key != "stylize"}
    old = value.get("stylize")
    problems: list[Problem] = []
    if old is not None and document.get("filter") is not None:
        message = "'stylize' is the old name of 'filter'; give only one of the two"
        problems.append(Problem("stylize", message))
    elif old is not None:
        document["filter"] = old
    try:
        spec = parse_operation(Spec, document, also_known=(*also_known, "stylize"))
    except SpecError as error:
        problems = [*(_renamed(item) if old is not None else item for item in error.problems), *problems]
    if problems:
        raise SpecError(problems)
    return spec


def unparse(spec: Spec) -> dict[str, Any]:
    """Return the JSON object of a spec without defaults; ``parse(unparse(spec)) == spec``."""
    return unparse_operation(spec)


def request_schema() -> dict[str, Any]:
    """Return the JSON Schema of a whole request.

    >>> sorted(request_schema()["properties"])[:3]
    ['adjust', 'auto', 'border']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Image processing request",
        **request_object(),
    }


def request_object() -> dict[str, Any]:
    """Return the JSON Schema of a request without the head of a document."""
    properties = operation_schema(Spec)["properties"]
    return {
        "type": "object",
        "properties": {**properties, "stylize": {**properties["filter"], "deprecated": True}},
        **NotTogether(("filter",), ("stylize",)).schema(),
        "additionalProperties": False,
    }


def _parse_filters(value: Mapping[Any, Any]) -> list[Filter]:
    """Return the filters of an object, in its order."""
    problems = unknown_keys("Filter", [key for key in value if key not in _FILTERS], _FILTERS)
    filters: list[Filter] = []
    for key, item in value.items():
        try:
            if key in _FILTERS and item is not None:
                filters.append(parse_operation(_FILTERS[key], item, path=key))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return filters


def _parse_item(item: object) -> list[Filter]:
    keys = [key for key, value in item.items() if value is not None] if isinstance(item, Mapping) else []
    if len(keys) != 1:
        expected = "Filter array must hold objects with one key each"
        raise SpecError([Problem("", expected, f"got {shown(item)}")])
    return _parse_filters(cast("Mapping[Any, Any]", item))


def _renamed(problem: Problem) -> Problem:
    """Return a problem of ``filter`` as one of its old name."""
    if problem.path.partition(".")[0].partition("[")[0] != "filter":
        return problem
    return attrs.evolve(problem, path="stylize" + problem.path.removeprefix("filter"))
