"""JSON values to specs and back, with every problem found at once."""

from __future__ import annotations

import difflib
import functools
import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

import attrs
from cattrs import BaseValidationError, ClassValidationError, Converter, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.spec.declare import Operation, Param, params, rule_problems, shown
from imgsvc_core.spec.filters import FILTERS, Filter
from imgsvc_core.spec.request import OPERATIONS, Spec

_O = TypeVar("_O", bound=Operation)
_FILTERS = {item.key: item for item in FILTERS}
_FILTER_KEYS = ("filter", "stylize")
_WITHOUT_REFERENCES = 2  # a version in which equal values are equal bytes
_SHORT = 4096
_MOST_NAME = 60
_MOST_ADVICE = 10  # the search for what was meant takes longer than all the rest

_converter = Converter(detailed_validation=True, forbid_extra_keys=True)


def parse(value: object, *, also_known: Iterable[str] = ()) -> Spec:
    """The spec that a JSON value asks for; ``also_known`` are keys that a mistyped one may have meant.

    Raises:
        SpecError: with all problems found, each with its path.

    >>> parse({"resize": {"width": 800}}).resize.width
    800
    """
    if isinstance(value, Spec):
        return value
    try:
        plain = marshal.dumps(cast("Any", value), _WITHOUT_REFERENCES)
    except ValueError:  # not only JSON values
        plain = b""
    return _parse_again(plain, tuple(also_known)) if 0 < len(plain) <= _SHORT else _parse(value, also_known)


@functools.lru_cache(maxsize=256)
def _parse_again(plain: bytes, also_known: tuple[str, ...]) -> Spec:
    """The same request often comes again and again."""
    return _parse(marshal.loads(plain), also_known)


def _parse(value: object, also_known: Iterable[str]) -> Spec:
    if not isinstance(value, Mapping):
        raise SpecError([Problem("", f"The request must be a JSON object, got {shown(value)}")])
    problems: list[Problem] = []
    parts: dict[str, Any] = {}
    unknown: list[str] = []
    for key, part in value.items():
        try:
            if key in _FILTER_KEYS:
                if part is not None:
                    parts["filter"] = _parse_filters(part, path=key)
            elif key in OPERATIONS:
                parts[key] = None if part is None else parse_operation(OPERATIONS[key], part, path=key)
            else:
                unknown.append(_name(key))
        except SpecError as error:
            problems += error.problems
    problems += unknown_keys("The request", unknown, [*also_known, *OPERATIONS, *_FILTER_KEYS])
    if all(value.get(key) is not None for key in _FILTER_KEYS):
        problems.append(Problem("stylize", "'stylize' is the old name of 'filter'; give only one of the two"))
    if problems:
        order = {name: position for position, name in enumerate((*attrs.fields_dict(Spec), "stylize"))}
        raise SpecError(sorted(problems, key=lambda problem: order.get(_root(problem.path), len(order))))
    return Spec(**parts)


def parse_operation(operation: type[_O], value: object, *, path: str) -> _O:
    """An operation from its JSON object; problems carry paths below ``path``."""
    try:
        return _converter.structure(value, operation)
    except SpecError as error:
        raise SpecError(_below(path, error.problems)) from None


def unparse_operation(operation: Operation) -> dict[str, Any]:
    """The JSON object of an operation. Defaults are left out."""
    document: dict[str, Any] = _converter.unstructure(operation)
    return document


def unparse(spec: Spec) -> dict[str, Any]:
    """The JSON object of a spec; ``parse(unparse(spec)) == spec``. Defaults are left out."""
    document = {name: _converter.unstructure(part) for name, part in spec.operations()}
    if spec.filter:
        document["filter"] = [{item.key: _converter.unstructure(item)} for item in spec.filter]
    return document


def unknown_keys(title: str, keys: Iterable[str], known: Iterable[str]) -> list[Problem]:
    """The problems of keys that nothing is known of; the first few with what may have been meant by them."""
    known = list(known)
    return [
        Problem(key, f"{title} has no '{key}' parameter{_advice(key, known) if place < _MOST_ADVICE else ''}")
        for place, key in enumerate(key[:_MOST_NAME] for key in keys)
    ]


def _advice(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean '{near[0]}'?" if near else f"; known are {', '.join(known)}"


def _parse_filters(value: object, *, path: str) -> tuple[Filter, ...]:
    if isinstance(value, Mapping):
        filters = _parse_filter_object(value, path)
        return tuple(sorted(filters, key=lambda item: FILTERS.index(type(item))))
    if not isinstance(value, list | tuple):
        message = f"Filter must be an object of filters or an array of one-key objects, got {shown(value)}"
        raise SpecError([Problem(path, message)])
    problems: list[Problem] = []
    filters = []
    for index, item in enumerate(value):
        here = f"{path}[{index}]"
        if not isinstance(item, Mapping) or len(item) != 1:
            problems.append(
                Problem(here, f"Filter array must hold objects with one key each, got {shown(item)}")
            )
            continue
        try:
            filters += _parse_filter_object(item, here)
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return tuple(filters)


def _parse_filter_object(value: Mapping[Any, Any], path: str) -> list[Filter]:
    unknown = [_name(key) for key in value if key not in _FILTERS]
    problems = _below(path, unknown_keys("Filter", unknown, _FILTERS))
    filters: list[Filter] = []
    for key, item in value.items():
        if key not in _FILTERS:
            continue
        try:
            filters.append(parse_operation(_FILTERS[key], item, path=f"{path}.{key}"))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return filters


@_converter.register_structure_hook_factory(lambda cls: isinstance(cls, type) and issubclass(cls, Operation))
def _structure_operation(operation: type[_O]) -> Callable[[Any, Any], _O]:
    declared = params(operation)
    structure = make_dict_structure_fn(
        operation,
        _converter,
        _cattrs_forbid_extra_keys=True,
        **{
            param.attribute: override(rename=name, struct_hook=_structure_param(operation, param))
            for name, param in declared.items()
        },  # type: ignore[arg-type]
    )

    def hook(value: Any, _: Any) -> _O:
        if not isinstance(value, Mapping):
            raise SpecError(
                [Problem("", f"{operation.title} must be an object of parameters, got {shown(value)}")]
            )
        document = {_name(key): item for key, item in value.items()}
        try:
            return structure(document, operation)
        except ClassValidationError as error:
            values = {name: _converted(operation, name, item) for name, item in document.items()}
            found = [*_problems(error, operation), *rule_problems(operation, values)]
            raise SpecError(dict.fromkeys(found)) from None

    return hook


@_converter.register_unstructure_hook_factory(
    lambda cls: isinstance(cls, type) and issubclass(cls, Operation)
)
def _unstructure_operation(operation: type[Operation]) -> Callable[[Any], dict[str, Any]]:
    overrides = {
        param.attribute: override(rename=name, unstruct_hook=_unstructure_param(param))
        for name, param in params(operation).items()
    }
    return make_dict_unstructure_fn(operation, _converter, _cattrs_omit_if_default=True, **overrides)  # type: ignore[arg-type]


def _structure_param(operation: type[Operation], param: Param) -> Callable[[Any, Any], Any]:
    return lambda value, _: param.parse(operation.title, value)


def _converted(operation: type[Operation], name: str, value: Any) -> Any:
    """A parameter's value as an operation has it, where it is one; what is not stays as it came."""
    try:
        return params(operation)[name].parse(operation.title, value)
    except (KeyError, SpecError):
        return value


def _unstructure_param(param: Param) -> Callable[[Any], Any]:
    return lambda value: None if value is None else param.kind.unparse(value)


def _problems(error: BaseValidationError, operation: type[Operation]) -> Iterator[Problem]:
    for exception in error.exceptions:
        if isinstance(exception, SpecError):
            yield from exception.problems
        elif isinstance(exception, ForbiddenExtraKeysError):
            yield from unknown_keys(operation.title, sorted(exception.extra_fields), params(operation))
        elif isinstance(exception, KeyError):
            param = params(operation)[exception.args[0]]
            message = (
                f"{operation.title} '{param.name}' parameter is required and must be {param.kind.expectation}"
            )
            yield Problem(param.name, message)
        else:
            raise exception


def _name(key: object) -> str:
    return key if isinstance(key, str) else shown(key)


def _below(path: str, problems: Iterable[Problem]) -> list[Problem]:
    return [
        attrs.evolve(problem, path=f"{path}.{problem.path}" if problem.path else path) for problem in problems
    ]


def _root(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]
