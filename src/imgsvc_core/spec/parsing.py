"""JSON objects to operations and back, with every problem found at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from cattrs import Converter, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from imgsvc_core._runtime.jsontext import SOMETHING, shown
from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.spec.declare import REQUIRED, Param, Parameters, all_params, below, check, params

_P = TypeVar("_P", bound=Parameters)
_MAX_NAME = 60
_MAX_ADVICE = 10  # finding the meant name takes longer than everything else

_converter = Converter(forbid_extra_keys=True, detailed_validation=False)


def parse_operation(
    operation: type[_P], value: object, *, path: str = "", also_known: Iterable[str] = ()
) -> _P:
    """Return the operation of a JSON object.

    Args:
        operation: the class.
        value: JSON values, or an operation of the class.
        path: where the object stands, for the paths of problems.
        also_known: more keys that a mistyped one may have meant.

    Raises:
        SpecError: with all problems found.
    """
    if isinstance(value, operation):
        return value
    if not isinstance(value, Mapping):
        got = SOMETHING if operation.confidential else shown(value)
        raise SpecError([Problem(path, f"{operation.title} must be an object of parameters", f"got {got}")])
    document = {_as_text(key): item for key, item in value.items()}
    try:
        return _converter.structure(document, operation)
    except SpecError as error:
        raise SpecError(below(path, error.problems)) from None
    except (ForbiddenExtraKeysError, KeyError):  # the values were not looked at
        known = params(operation)
        given = {
            name: document.get(name, REQUIRED)
            for name, param in known.items()
            if name in document or param.required
        }
        _, problems = check(operation, given)
        unknown = [key for key in document if key not in known]
        problems += unknown_keys(operation.title, unknown, [*also_known, *known])
        raise SpecError(below(path, problems)) from None


def restore_operation(operation: type[_P], document: Mapping[str, Any]) -> _P:
    """Return the operation that `unparse_operation` wrote, also with internal parameters."""
    known = all_params(operation)
    return operation(**{known[name].attribute: value for name, value in document.items()})


def unparse_operation(operation: Parameters) -> dict[str, Any]:
    """Return the JSON object of an operation, without defaults."""
    document: dict[str, Any] = _converter.unstructure(operation)
    return document


def unknown_keys(title: str, keys: Iterable[object], known: Iterable[str]) -> list[Problem]:
    """Return a problem for each unknown key. The first ones suggest a similar key."""
    known = list(known)
    return [
        Problem(key, f"{title} has no '{key}' parameter{_advice(key, known) if place < _MAX_ADVICE else ''}")
        for place, key in enumerate(_as_text(key)[:_MAX_NAME] for key in keys)
    ]


def _as_text(key: object) -> str:
    return key if isinstance(key, str) else shown(key)


def _advice(key: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, known, n=1)
    return f"; did you mean '{near[0]}'?" if near else f"; known are {', '.join(known)}"


def _is_declared(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, Parameters)


@_converter.register_structure_hook_factory(_is_declared)
def _structure_hook(operation: type[_P]) -> Callable[[Any, Any], _P]:
    """Return the function that maps keys to arguments. The constructor checks and converts the values."""
    overrides = {
        param.attribute: override(rename=name, omit=param.internal, struct_hook=lambda value, _: value)
        for name, param in all_params(operation).items()
    }
    # The types of cattrs give every keyword that of its last option.
    return make_dict_structure_fn(operation, _converter, **overrides)  # type: ignore[arg-type]


@_converter.register_unstructure_hook_factory(_is_declared)
def _unstructure_hook(operation: type[Parameters]) -> Callable[[Any], dict[str, Any]]:
    overrides = {
        param.attribute: override(rename=name, unstruct_hook=_unparse(param))
        for name, param in all_params(operation).items()
    }
    return make_dict_unstructure_fn(operation, _converter, _cattrs_omit_if_default=True, **overrides)  # type: ignore[arg-type]


def _unparse(param: Param) -> Callable[[Any], Any]:
    return lambda value: None if value is None else param.kind.unparse(value)
