"""JSON objects to operations and back, with every problem found at once.

The hooks of two converters are made from the declarations. `WHOLE` reads and writes operations. `PARTS` reads
objects that may lack required parameters, such as presets, and returns them in their JSON form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from typing import Any, TypeVar

from cattrs import Converter
from cattrs.gen import make_dict_unstructure_fn, override

from imgsvc_core._runtime.jsontext import SOMETHING, shown
from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.spec.declare import REQUIRED, Param, Parameters, all_params, below, collected, params

_Document = dict[str, Any]
_P = TypeVar("_P", bound=Parameters)
_MAX_NAME = 60
_MAX_ADVICE = 10  # finding the meant name takes longer than everything else
_WORD = re.compile("[A-Za-z]?[a-z_-]{1,20}")

WHOLE = Converter()
"""Reads and writes whole operations."""

PARTS = Converter()
"""Reads parts of operations as JSON documents without nulls."""


def parse_operation(operation: type[_P], value: object, *, path: str = "") -> _P:
    """Return the operation of a JSON object, or of an operation of the class itself.

    Args:
        operation: the class.
        value: JSON values, or an operation of the class.
        path: the path of the object, for the paths of problems.

    Raises:
        SpecError: with all problems found.
    """
    try:
        return WHOLE.structure(value, operation)
    except SpecError as error:
        raise SpecError(below(path, error.problems)) from None


def restore_operation(operation: type[_P], document: Mapping[str, Any]) -> _P:
    """Return the operation that `unparse_operation` wrote, also with internal parameters."""
    known = all_params(operation)
    return operation(**{known[name].attribute: value for name, value in document.items()})


def unparse_operation(operation: Parameters) -> _Document:
    """Return the JSON object of an operation, without defaults."""
    document: _Document = WHOLE.unstructure(operation)
    return document


def unknown_keys(
    title: str, keys: Iterable[object], known: Iterable[str], *, confidential: bool = False
) -> list[Problem]:
    """Return a problem for each unknown key. The first ones suggest a similar key.

    A ``confidential`` key that is not a word is not shown: it may be a misplaced secret.
    """
    known = list(known)
    names = [_as_text(key)[:_MAX_NAME] for key in keys]
    if confidential:
        names = [name if _WORD.fullmatch(name) else SOMETHING for name in names]
    advice = [_advice(name, known) for name in names[:_MAX_ADVICE]]
    return [
        Problem(name, f"{title} has no '{name}' parameter{more}")
        for name, more in zip_longest(names, advice, fillvalue="")
    ]


def _as_text(key: object) -> str:
    return key if isinstance(key, str) else shown(key)


def _advice(key: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, known, n=1)
    return f"; did you mean '{near[0]}'?" if near else f"; known are {', '.join(known)}"


def _is_declared(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, Parameters)


def _checked_keys(operation: type[Parameters], value: object) -> tuple[_Document, list[Problem]]:
    """Return the known parameters of a JSON object, and the problems of its other keys."""
    if not isinstance(value, Mapping):
        got = SOMETHING if operation.confidential else shown(value)
        raise SpecError([Problem("", f"{operation.title} must be an object of parameters", f"got {got}")])
    known = params(operation)
    given = {name: value[name] for name in known if name in value}
    if len(given) == len(value):
        return given, []
    unknown = [key for key in value if key not in known]
    return given, unknown_keys(operation.title, unknown, known, confidential=operation.confidential)


@WHOLE.register_structure_hook_factory(_is_declared)
def _whole_hook(operation: type[_P]) -> Callable[[Any, Any], _P]:
    """Return the function that reads an object. The constructor checks and converts the values."""
    attributes = {name: param.attribute for name, param in params(operation).items()}
    missing = {param.attribute: REQUIRED for param in params(operation).values() if param.required}

    def structure(value: Any, _: Any) -> _P:
        if isinstance(value, operation):
            return value
        given, problems = _checked_keys(operation, value)
        try:
            found = operation(**missing | {attributes[name]: item for name, item in given.items()})
        except SpecError as error:
            raise SpecError([*error.problems, *problems]) from None
        if problems:
            raise SpecError(problems)
        return found

    return structure


@PARTS.register_structure_hook_factory(_is_declared)
def _part_hook(operation: type[Parameters]) -> Callable[[Any, Any], _Document]:
    known = params(operation)

    def structure(value: Any, _: Any) -> _Document:
        given, problems = _checked_keys(operation, value)
        present = {name: item for name, item in given.items() if item is not None}
        return collected(present, lambda name, item: known[name].part(operation.title, item), problems)

    return structure


@WHOLE.register_unstructure_hook_factory(_is_declared)
def _unstructure_hook(operation: type[Parameters]) -> Callable[[Any], _Document]:
    overrides = {
        param.attribute: override(rename=name, unstruct_hook=_unparse(param))
        for name, param in all_params(operation).items()
    }
    # The types of cattrs give every keyword the type of its last option.
    return make_dict_unstructure_fn(operation, WHOLE, _cattrs_omit_if_default=True, **overrides)  # type: ignore[arg-type]


def _unparse(param: Param) -> Callable[[Any], Any]:
    return lambda value: None if value is None else param.kind.unparse(value)
