"""Presets: named parts of requests, which later requests complete."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.spec.declare import Operation, below, params
from imgsvc_core.spec.filters import FILTERS
from imgsvc_core.spec.merging import Document, merge
from imgsvc_core.spec.parsing import unknown_keys
from imgsvc_core.spec.request import OPERATIONS, FilterKind, Spec, parse

PRESET_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
"""What names of presets look like."""

PRESET_NAME_EXPECTATION = "1 to 63 lower-case letters, digits, - and _, the first a letter or digit"

PRESET = "preset"
"""The key and the option that name presets."""

_MAX_SHOWN = 60
_FILTERS = {item.key: item for item in FILTERS}
_PLACES_OF_FILTERS = ("filter", "stylize")


def with_presets(
    names: Iterable[str], presets: Mapping[str, Mapping[str, Any]], request: Mapping[str, Any]
) -> Document:
    """Return a request merged into the presets that it names: later presets win, and the request wins.

    An array of filters says their order and replaces those before; an object of filters is merged.

    Args:
        names: names of presets.
        presets: all presets, as `parse_preset` returns them.
        request: a request, as `parse_partial` returns it.

    Raises:
        SpecError: there is no such preset.
    """
    names = tuple(names)
    if problems := [_unknown(name, presets) for name in names if name not in presets]:
        raise SpecError(problems)
    found: Document = {}
    for document in (*(presets[name] for name in names), request):
        _merge_all(found, document)
    return found


def parse_merged(document: Mapping[str, Any], names: Iterable[str]) -> Spec:
    """Return the spec of a request with presets in it; messages name the presets.

    Raises:
        SpecError: with all problems found.
    """
    try:
        return parse(document)
    except SpecError as error:
        if not (quoted := ", ".join(f"'{name}'" for name in names)):
            raise
        problems = [problem.and_then(f"after preset {quoted}") for problem in error.problems]
    raise SpecError(problems)


def parse_presets(value: object) -> dict[str, Document]:
    """Return the presets of a table, as settings have it, by name.

    Raises:
        SpecError: with all problems found; each message names its preset.
    """
    if not isinstance(value, Mapping):
        message = f"Presets must be a table such as [presets.card], got {shown(value)}"
        raise SpecError([Problem("presets", message)])
    problems: list[Problem] = []
    found: dict[str, Document] = {}
    for name, preset in value.items():
        try:
            found[name] = parse_preset(name, preset)
        except SpecError as error:
            problems += below(f"presets.{name}", error.problems)
    if problems:
        raise SpecError(problems)
    return found


def parse_preset(name: str, value: object) -> Document:
    """Return a preset in its JSON form.

    Raises:
        SpecError: with all problems found; each message names the preset.
    """
    title = f"Preset '{name[:_MAX_SHOWN]}'"
    if not PRESET_NAME.fullmatch(name):
        raise SpecError([Problem("", f"{title} must have a name of {PRESET_NAME_EXPECTATION}")])
    if isinstance(value, Mapping) and PRESET in value:
        raise SpecError([Problem(PRESET, f"{title} cannot name other presets; write what they say into it")])
    try:
        return parse_partial(value, "The preset")
    except SpecError as error:
        raise SpecError(problem.and_then(f"in preset '{name}'") for problem in error.problems) from None


def preset_names(value: object) -> tuple[str, ...]:
    """Return the names of presets in a request: one name, or an array of them.

    Raises:
        SpecError: it is neither, or a name is given twice.
    """
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        expected = f"'{PRESET}' must be the name of a preset or an array of names"
        raise SpecError([Problem(PRESET, expected, f"got {shown(value)}")])
    if len(set(names)) < len(names):
        raise SpecError([Problem(PRESET, f"'{PRESET}' must name each preset once", f"got {shown(names)}")])
    return tuple(names)


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
        raise SpecError([Problem("", f"{title} must be an object of parameters", f"got {shown(value)}")])
    known = (*OPERATIONS, *_PLACES_OF_FILTERS)
    problems = unknown_keys(title, [key for key in value if key not in known], [*known, *also_known])
    found: Document = {}
    for key, part in value.items():
        if part is None:
            continue
        try:
            if key in OPERATIONS:
                found[key] = _partial_operation(OPERATIONS[key], part)
            elif key in _PLACES_OF_FILTERS:
                found["filter"] = _partial_filters(part)
        except SpecError as error:
            problems += below(key, error.problems)
    if value.get("filter") is not None and value.get("stylize") is not None:
        problems.append(Problem("stylize", "'stylize' is the old name of 'filter'; give only one of the two"))
    if problems:
        raise SpecError(problems)
    return found


def _merge_all(request: Document, document: Mapping[str, Any]) -> None:
    for key, part in document.items():
        if key != "filter":
            merge(request, key, part)
        elif isinstance(part, Mapping):
            for name, parameters in part.items():
                merge(request, name, parameters)
        else:
            request[key] = part


def _partial_operation(operation: type[Operation], value: object) -> Document:
    if not isinstance(value, Mapping):
        expected = f"{operation.title} must be an object of parameters"
        raise SpecError([Problem("", expected, f"got {shown(value)}")])
    known = params(operation)
    problems = unknown_keys(operation.title, [key for key in value if key not in known], known)
    found: Document = {}
    for name, param in known.items():
        if value.get(name) is None:
            continue
        try:
            found[name] = param.kind.unparse(param.parse(operation.title, value[name]))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return found


def _partial_filters(value: object) -> Document | list[Document]:
    if not isinstance(value, list):
        return _partial_filter_object(value)
    problems: list[Problem] = []
    found: list[Document] = []
    for index, item in enumerate(value):
        try:
            found.append(_partial_filter_object(item))
            if len(found[-1]) != 1:
                expected = "Filter array must hold objects with one key each"
                raise SpecError([Problem("", expected, f"got {shown(item)}")])
        except SpecError as error:
            problems += below(f"[{index}]", error.problems)
    if problems:
        raise SpecError(problems)
    return found


def _partial_filter_object(value: object) -> Document:
    if not isinstance(value, Mapping):
        expected = f"Filter must be an {FilterKind.expectation}"
        raise SpecError([Problem("", expected, f"got {shown(value)}")])
    problems = unknown_keys("Filter", [key for key in value if key not in _FILTERS], _FILTERS)
    found: Document = {}
    for key, part in value.items():
        if key in _FILTERS and part is not None:
            try:
                found[key] = _partial_operation(_FILTERS[key], part)
            except SpecError as error:
                problems += below(key, error.problems)
    if problems:
        raise SpecError(problems)
    return found


def _unknown(name: str, presets: Mapping[str, Any]) -> Problem:
    known = f"known are {', '.join(sorted(presets))}" if presets else "none is defined"
    return Problem(PRESET, f"There is no preset '{name[:_MAX_SHOWN]}'; {known}")
