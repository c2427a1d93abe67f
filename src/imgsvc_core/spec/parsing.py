"""JSON objects to operations and back, with every problem found at once.

The constructor of an operation checks and converts its values, so reading an object only names them. An
object may also be a part of an operation, such as in a preset, which lacks required parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from typing import Any, TypeVar

from imgsvc_core._runtime.jsontext import SOMETHING, shown
from imgsvc_core._runtime.patterns import pattern
from imgsvc_core.errors import Problem, SpecError, invalid
from imgsvc_core.spec.declare import Parameters, all_params, below, collected, params

_Document = dict[str, Any]
_P = TypeVar("_P", bound=Parameters)
_T = TypeVar("_T")
_MAX_NAME = 60
_MAX_ADVICE = 10  # finding the meant name takes longer than everything else
_WORD = pattern("[A-Za-z]?[a-z_-]{1,20}")


def parse_operation(operation: type[_P], value: object, *, path: str = "") -> _P:
    """Return the operation of a JSON object, or of an operation of the class itself.

    Args:
        operation: the class.
        value: JSON values, or an operation of the class.
        path: the path of the object, for the paths of problems.

    Raises:
        SpecError: with all problems found.
    """
    if isinstance(value, operation):
        return value

    def made(given: _Document) -> _P:
        values = {known[name].attribute: item for name, item in given.items()}
        return operation(**operation._missing | values)

    known = params(operation)
    return _read(operation, value, made, path)


def parse_part(operation: type[Parameters], value: object) -> _Document:
    """Return a part of an operation in its JSON form without nulls; required parameters may be missing."""

    def made(given: _Document) -> _Document:
        present = {name: item for name, item in given.items() if item is not None}
        return collected(present, lambda name, item: known[name].parse(operation.title, item, part=True))

    known = params(operation)
    return _read(operation, value, made)


def _read(operation: type[Parameters], value: object, make: Callable[[_Document], _T], path: str = "") -> _T:
    """Return what is made of the known parameters of a JSON object.

    A mistyped name counts as the one that was meant, so that it is the only problem.
    """
    title, confidential = operation.title, operation.confidential
    if not isinstance(value, Mapping):
        got = SOMETHING if confidential else shown(value)
        raise invalid(path, f"{title} must be an object of parameters", f"got {got}")
    known = params(operation)
    given = {name: value[name] for name in known if name in value}
    unknown = [key for key in value if key not in known] if len(given) < len(value) else []
    problems = unknown_keys(title, unknown, known, confidential=confidential) if unknown else []
    meant = {near: value[key] for key in unknown[:_MAX_ADVICE] if (near := _near(_as_text(key), known))}
    try:
        made = make({**meant, **given})
    except SpecError as error:
        problems = [*error.problems, *problems]
    if problems:
        raise SpecError(below(path, problems))
    return made


def restore_operation(operation: type[_P], document: Mapping[str, Any]) -> _P:
    """Return the operation that `unparse_operation` wrote, also with internal parameters."""
    known = all_params(operation)
    return operation(**{known[name].attribute: value for name, value in document.items()})


def unparse_operation(operation: Parameters) -> _Document:
    """Return the JSON object of an operation, without defaults."""
    document: _Document = {}
    for name, item in operation._params.items():
        value = getattr(operation, item.attribute)
        if value is not item.default and value != item.default:
            document[name] = None if value is None else item.kind.unparse(value)
    return document


def unknown_keys(
    title: str,
    keys: Iterable[object],
    known: Iterable[str],
    *,
    below: Mapping[str, str] = {},
    confidential: bool = False,
) -> list[Problem]:
    """Return a problem for each unknown key. The first ones suggest a similar key.

    ``below`` says what to write instead of keys that belong to another level. A ``confidential`` key that is
    not a word is not shown: it may be a misplaced secret.
    """
    known = list(known)
    names = [_as_text(key)[:_MAX_NAME] for key in keys]
    if confidential:
        names = [name if _WORD.fullmatch(name) else SOMETHING for name in names]
    advice = [_advice(below.get(name) or _quoted(_near(name, known)), known) for name in names[:_MAX_ADVICE]]
    return [
        Problem(name, f"{title} has no '{name}' parameter{more}")
        for name, more in zip_longest(names, advice, fillvalue="")
    ]


def _as_text(key: object) -> str:
    return key if isinstance(key, str) else shown(key)


def _advice(meant: str | None, known: list[str]) -> str:
    return f"; did you mean {meant}?" if meant else f"; known are {', '.join(known)}"


def _quoted(name: str | None) -> str | None:
    return name and f"'{name}'"


def _near(key: str, known: Iterable[str]) -> str | None:
    """Return the known name that a mistyped one probably means."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(key[:_MAX_NAME], known, n=1)), None)
