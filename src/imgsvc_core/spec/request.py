"""The whole request: which operations, in which order, and how the result is encoded."""

import functools
import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.errors import Problem, SpecError, invalid
from imgsvc_core.spec.adjust import Adjust, Auto
from imgsvc_core.spec.background import Background, BackgroundKind
from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import (
    Accepts,
    Operation,
    Parameters,
    all_params,
    collected,
    declared,
    doc,
    operation_schema,
    or_null,
    param,
    params,
)
from imgsvc_core.spec.filters import FILTERS, Filter
from imgsvc_core.spec.frame import Border, Canvas, Mask, Padding
from imgsvc_core.spec.geometry import Crop, Flip, Orient, Resize, Rotate, Scale, Trim
from imgsvc_core.spec.kinds import Kind
from imgsvc_core.spec.merging import Document
from imgsvc_core.spec.output import Output
from imgsvc_core.spec.parsing import parse_operation, parse_part, unknown_keys, unparse_operation
from imgsvc_core.spec.parts import Part, PartKind, PartsKind, part
from imgsvc_core.spec.redact import MOST_REDACTED, Redact
from imgsvc_core.spec.rules import NotTogether, Rule, given
from imgsvc_core.spec.watermark import Watermark

if TYPE_CHECKING:
    from imgsvc_core.spec.layers import Layer, Picture
else:
    Layer = Operation  # few requests have layers, and annotations need not load them

MOST_LAYERS = 100
"""The most layers of a request."""

_Read = Callable[[type[Any], object], Any]
Filters = Accepts[
    tuple[Filter, ...], Filter | Iterable[Filter | Mapping[str, Any]] | Mapping[str, Any] | None
]

Backgrounds = Accepts[Background | None, Background | Mapping[str, Any] | Color | str | None]

Layers = Accepts[tuple[Layer, ...], Iterable[Layer | Mapping[str, Any]] | None]
Redactions = Accepts[tuple[Redact, ...], Iterable[Redact | Mapping[str, Any]] | None]

_FILTERS = {item.key: item for item in FILTERS}
_OLD_NAME = "stylize"  # the old name of the filters
_WITHOUT_REFERENCES = 2  # a version of marshal in which equal values are equal bytes
_MAX_CACHED = 4096


class FilterKind(Kind):
    """The kind of ``filter``: an object of filters, or an array of one-key objects in the order to apply."""

    expectation = "object of filters or an array of one-key objects"

    def parse(self, value: object) -> tuple[Filter, ...]:
        found = self._read([value] if isinstance(value, Filter) else value, parse_operation)
        if isinstance(found, dict):
            return tuple(found[key] for key in _FILTERS if key in found)
        return tuple(item for one in found for item in one.values())

    def part(self, value: object) -> Document | list[Document]:
        return self._read(value, parse_part)

    def _read(self, value: object, read: _Read) -> Document | list[Document]:
        if isinstance(value, Mapping):
            return _filters(value, read)
        if not isinstance(value, Iterable) or isinstance(value, str | bytes):
            raise invalid("", f"Filter must be an {self.expectation}", f"got {shown(value)}")
        places = {f"[{index}]": item for index, item in enumerate(value)}
        return list(collected(places, lambda _, item: _one_filter(item, read)).values())

    def unparse(self, value: tuple[Filter, ...]) -> list[dict[str, Any]]:
        return [{item.key: unparse_operation(item)} for item in value]

    def schema(self) -> dict[str, Any]:
        filters = {item.key: or_null(operation_schema(item)) for item in FILTERS}
        one = {"type": "object", "properties": filters, "additionalProperties": False}
        only = {"oneOf": [given(name) for name in filters]}
        # Generators of clients know no `then`: they would ask for each of the names.
        several = {
            "type": "array",
            "title": "Filters in the order of the array",
            "items": {**one, "title": "Filter", "if": {}, "then": only},
        }
        return {
            "anyOf": [{**one, "title": "Filters in the fixed order", "maxProperties": len(filters)}, several]
        }


_STAYING = ("keep_pixels", "transcode")


class _NothingBesideCodedPixels:
    """Coded pixels that stay as they are leave no room for operations on pixels."""

    def problems(self, operation: type[Parameters], values: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield a problem for each operation."""
        output = values["output"]
        staying = [key for key in _STAYING if isinstance(output, Output) and getattr(output, key)]
        for name in values if staying else ():
            if name not in ("output", "orient") and values[name] not in (None, ()):
                yield Problem(name, f"'{name}' must be left out when output '{staying[0]}' is true")

    def schema(self, otherwise: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
        """Return the same condition in JSON Schema, and what holds ``otherwise``."""
        nothing: dict[str, Any] = {"enum": [None, [], {}]}
        operations = {name: {"type": "null"} for name in OPERATIONS if name != "output"}
        then = {"properties": operations | dict.fromkeys((_OLD_NAME, *LISTS), nothing)}
        found = dict(otherwise)
        for key in reversed(_STAYING):
            output = {"type": "object", "required": [key], "properties": {key: {"const": True}}}
            condition = {"required": ["output"], "properties": {"output": output}}
            found = {"if": condition, "then": then, **({"else": found} if found else {})}
        return found


@declared
class Spec(Parameters):
    """A request. The fields stand in the order of application, whatever order a JSON document has.

    Specs compare and hash by value. ``digest`` is the same for requests that ask for the same thing.
    """

    title: ClassVar[str] = "The request"
    rules: ClassVar[tuple[Rule, ...]] = (_NothingBesideCodedPixels(),)

    orient: Part[Orient] = part(Orient, internal=True)
    redact: Redactions = param(
        "Boxes and faces to make unreadable.", PartsKind(Redact, MOST_REDACTED), default=()
    )
    trim: Part[Trim] = part(Trim)
    flip: Part[Flip] = part(Flip)
    rotate: Part[Rotate] = part(Rotate)
    crop: Part[Crop] = part(Crop)
    resize: Part[Resize] = part(Resize)
    scale: Part[Scale] = part(Scale)
    auto: Part[Auto] = part(Auto)
    adjust: Part[Adjust] = part(Adjust)
    filter: Filters = param("Filters in the order of application.", FilterKind(), default=())
    mask: Part[Mask] = part(Mask)
    canvas: Part[Canvas] = part(Canvas)
    padding: Part[Padding] = part(Padding)
    background: Backgrounds = param(doc(Background), BackgroundKind(), default=None)
    border: Part[Border] = part(Border)
    watermark: Part[Watermark] = part(Watermark)
    layers: Layers = param(
        "Layers in the order of drawing.", PartsKind("layers:Layer", MOST_LAYERS), default=()
    )
    output: Part[Output] = part(Output)

    def canonical(self) -> str:
        """Return the request as the shortest JSON text: no neutral operations, no defaults, sorted keys."""
        import json  # for keys of caches only

        return json.dumps(unparse(self.simplified()), sort_keys=True, separators=(",", ":"))

    @functools.cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the canonical form in hexadecimal: the key of a cache of results.

        That of a request with text also depends on the allowed fonts.
        """
        import hashlib  # loads OpenSSL

        fonts = ""
        if any(layer.text is not None for layer in self.layers):
            from imgsvc_core.fonts import catalog

            fonts = catalog().digest
        return hashlib.sha256((self.canonical() + fonts).encode()).hexdigest()

    def simplified(self) -> "Spec":
        """Return the same request without operations that change nothing."""
        parts: dict[str, Any] = {name: part for name, part in self.operations() if not part.is_neutral}
        filters = tuple(item for item in self.filter if not item.is_neutral)
        if len(parts) == len(self.operations()) and filters == self.filter:
            return self
        return Spec(**parts, redact=self.redact, filter=filters, layers=self.layers)

    @functools.cached_property
    def pictures(self) -> tuple[str, ...]:
        """Return the ids of the watermark pictures that the request needs."""
        if not (self.watermark or self.filter or self.layers):
            return ()
        named = (self.watermark.id,) if self.watermark else ()
        filters = (id for item in self.filter for id in item.pictures)
        layers = (picture.id for picture in self.layer_pictures.values() if picture.id is not None)
        return tuple(dict.fromkeys((*named, *filters, *layers)))

    @functools.cached_property
    def layer_pictures(self) -> "Mapping[str, Picture]":
        """Return the pictures of layers by the paths of the layers."""
        pictures = {f"layers[{place}].picture": layer.picture for place, layer in enumerate(self.layers)}
        return {path: picture for path, picture in pictures.items() if picture is not None}

    def path_of_picture(self, id: str) -> str:
        """Return the path at which the request names a watermark picture."""
        if self.watermark is None or self.watermark.id != id:
            for path, picture in self.layer_pictures.items():
                if picture.id == id:
                    return f"{path}.id"
        return "watermark.id"

    def operations(self) -> tuple[tuple[str, Operation], ...]:
        """Return names and values of the operations that are present, in their order, without lists."""
        parts: list[tuple[str, Any]] = [(name, getattr(self, name)) for name in ALL_OPERATIONS]
        return tuple((name, part) for name, part in parts if part is not None)


ALL_OPERATIONS: Mapping[str, type[Operation]] = {
    name: item.kind.operation for name, item in all_params(Spec).items() if isinstance(item.kind, PartKind)
}
"""The operations by key, without lists, in the order of application, and also those that are internal."""

OPERATIONS: Mapping[str, type[Operation]] = {
    name: operation for name, operation in ALL_OPERATIONS.items() if name in params(Spec)
}
"""The operations of a request by key, without lists, in the order of application."""

LISTS: tuple[str, ...] = tuple(name for name in params(Spec) if name not in OPERATIONS)
"""The keys of a request whose values are lists of operations, in the order of application."""

_OF_JSON = (str, int, float, list, Mapping, type(None))
_PLACES = {name: place for place, name in enumerate(params(Spec))}


Request: TypeAlias = Spec | Operation | Sequence[Operation] | Mapping[str, Any]
"""A request as Python gives it: whole, one operation, some in the order of application, or as JSON values."""


def parse(value: object, *, also_known: Iterable[str] = ()) -> Spec:
    """Return the spec of a request.

    Args:
        value: JSON values, a spec, an operation, or a list of operations in the order of application.
        also_known: keys that a mistyped one may have meant.

    Raises:
        SpecError: with all problems found, each with its path.

    >>> parse({"resize": {"width": 800}}).resize.width
    800
    >>> parse(Resize(width=800)) == parse([Resize(width=800)]) == parse({"resize": {"width": 800}})
    True
    """
    if isinstance(value, Spec):
        return value
    if isinstance(value, Operation):
        return _listed([value])
    if isinstance(value, list | tuple) and not all(isinstance(item, _OF_JSON) for item in value):
        return _listed(value)
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
    """Parse a document. The result is cached, because many pictures often have the same request."""
    return _parse(marshal.loads(plain), also_known)


def _parse(value: object, also_known: Iterable[str]) -> Spec:
    if not isinstance(value, Mapping):
        of_python = "" if isinstance(value, _OF_JSON) else ", an operation or a list of operations"
        name = getattr(value, "__name__", "")
        got = f"got the class {name}; pass {name}(...)" if isinstance(value, type) else f"got {shown(value)}"
        raise invalid("", f"The request must be a JSON object{of_python}", got)
    found: Spec = _read(value, Spec.title, parse_operation, also_known)
    return found


def _listed(items: Sequence[object]) -> Spec:
    """Return the spec of operations in a list, which must stand in the order of application."""
    parts: dict[str, Any] = {}
    problems: list[Problem] = []
    before = ""
    for index, item in enumerate(items):
        if not isinstance(item, Operation) or (key := _key_of(item)) is None:
            expected = "The list must hold operations such as Resize(width=300)"
            problems.append(Problem(f"[{index}]", expected, f"got {shown(item)}"))
            continue
        if key in LISTS:
            parts[key] = (*parts.get(key, ()), item)
        elif key in parts:
            problems.append(Problem(f"[{index}]", f"The list must hold '{key}' once, got it twice"))
        else:
            parts[key] = item
        if before and _PLACES[key] < _PLACES[before]:
            message = f"'{key}' is applied before '{before}': put it there in the list"
            problems.append(Problem(f"[{index}]", message))
        else:
            before = key
    if problems:
        raise SpecError(problems)
    return Spec(**parts)


def _key_of(item: Operation) -> str | None:
    """Return the key of the request to which an operation belongs."""
    if isinstance(item, Filter):
        return "filter"
    if isinstance(item, Redact):
        return "redact"
    if OPERATIONS.get(item.key) is type(item):
        return item.key
    from imgsvc_core.spec import layers

    return "layers" if isinstance(item, layers.Layer) else None


def parse_partial(value: object, title: str, *, also_known: Iterable[str] = ()) -> Document:
    """Return a part of a request in its JSON form, without nulls; required parameters may be missing.

    Args:
        value: a JSON value.
        title: the subject of messages about the whole, such as "The request".
        also_known: more keys that a mistyped one may have meant.

    Raises:
        SpecError: with all problems found.
    """
    if not isinstance(value, Mapping):
        raise invalid("", f"{title} must be an object of parameters", f"got {shown(value)}")
    found: Document = _read(value, title, parse_part, also_known)
    return found


def _read(value: Mapping[Any, Any], title: str, read: _Read, also_known: Iterable[str]) -> Any:
    """Return what is read from a request in which the filters may have their old name."""
    known = params(Spec)
    document = {key: item for key, item in value.items() if key in known}
    old = value.get(_OLD_NAME)
    problems: list[Problem] = []
    if old is not None and document.get("filter") is None:
        document["filter"] = old
    elif old is not None:
        message = f"'{_OLD_NAME}' is the old name of 'filter'; give only one of the two"
        problems.append(Problem(_OLD_NAME, message))
    unknown = [key for key in value if key not in known and key != _OLD_NAME]
    if unknown:
        problems += unknown_keys(title, unknown, (*also_known, *known, _OLD_NAME), below=_places())
    try:
        found = read(Spec, document)
    except SpecError as error:
        problems = [*(_renamed(item) if old is not None else item for item in error.problems), *problems]
    if problems:
        raise SpecError(problems)
    return found


@functools.cache
def _places() -> Mapping[str, str]:
    """Return what parameters of operations, and filters, are called in a request, as parts of a question."""
    found = {key: [f"'filter.{key}'"] for key in _FILTERS}
    for key, operation in OPERATIONS.items():
        for name in params(operation):
            found.setdefault(name, []).append(f"'{key}.{name}'")
    return {name: " or ".join(places) for name, places in found.items()}


def unparse(spec: Spec) -> dict[str, Any]:
    """Return the JSON object of a spec without defaults; ``parse(unparse(spec)) == spec``."""
    return unparse_operation(spec)


def request_schema() -> dict[str, Any]:
    """Return the JSON Schema of a whole request.

    >>> sorted(request_schema()["properties"])[:3]
    ['adjust', 'auto', 'background']
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
        "properties": {**properties, _OLD_NAME: {**properties["filter"], "deprecated": True}},
        **_NothingBesideCodedPixels().schema(NotTogether(("filter",), (_OLD_NAME,)).schema()),
        "additionalProperties": False,
    }


def _filters(value: Mapping[Any, Any], read: _Read) -> Document:
    """Return what is read from the filters of an object, by their keys."""
    unknown = unknown_keys("Filter", [key for key in value if key not in _FILTERS], _FILTERS)
    given = {key: item for key, item in value.items() if key in _FILTERS and item is not None}
    return collected(given, lambda key, item: read(_FILTERS[key], item), unknown)


def _one_filter(item: object, read: _Read) -> Document:
    if isinstance(item, Filter):
        return {item.key: item}
    if not isinstance(item, Mapping) or sum(value is not None for value in item.values()) != 1:
        raise invalid("", "Filter array must hold objects with one key each", f"got {shown(item)}")
    return _filters(item, read)


def _renamed(problem: Problem) -> Problem:
    """Return a problem of ``filter`` as one of its old name."""
    if problem.path.partition(".")[0].partition("[")[0] != "filter":
        return problem
    return attrs.evolve(problem, path=_OLD_NAME + problem.path.removeprefix("filter"))
