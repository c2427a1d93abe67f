"""Presets: named parts of requests, which later requests complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core._runtime.patterns import pattern
from imgsvc_core.errors import Problem, SpecError, invalid
from imgsvc_core.spec.declare import below, collected
from imgsvc_core.spec.merging import Document, merge
from imgsvc_core.spec.request import Spec, parse, parse_partial

PRESET_NAME = pattern(r"[a-z0-9][a-z0-9_-]{0,62}")
"""The pattern of names of presets."""

PRESET_NAME_EXPECTATION = "1 to 63 lower-case letters, digits, - and _, the first a letter or digit"

PRESET = "preset"
"""The key and the option that name presets."""

_MAX_SHOWN = 60


def with_presets(
    names: Iterable[str], presets: Mapping[str, Mapping[str, Any]], request: Mapping[str, Any]
) -> Document:
    """Return a request merged into the presets that it names: later presets win, and the request wins.

    An array of filters has an order and replaces earlier filters; an object of filters is merged.

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
        raise invalid("presets", f"Presets must be a table such as [presets.card], got {shown(value)}")
    try:
        return collected(value, parse_preset)
    except SpecError as error:
        raise SpecError(below("presets", error.problems)) from None


def parse_preset(name: str, value: object) -> Document:
    """Return a preset in its JSON form.

    Raises:
        SpecError: with all problems found; each message names the preset.
    """
    title = f"Preset '{name[:_MAX_SHOWN]}'"
    if not PRESET_NAME.fullmatch(name):
        raise invalid("", f"{title} must have a name of {PRESET_NAME_EXPECTATION}")
    if isinstance(value, Mapping) and PRESET in value:
        raise invalid(PRESET, f"{title} cannot name other presets; write what they say into it")
    try:
        return parse_partial(value, "The preset")
    except SpecError as error:
        raise SpecError(problem.and_then(f"in preset '{name}'") for problem in error.problems) from None


def preset_names(value: object) -> tuple[str, ...]:
    """Return the names of presets in a request: one name, or an array of them.

    Raises:
        SpecError: the value is neither, or a name is given twice.
    """
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        expected = f"'{PRESET}' must be the name of a preset or an array of names"
        raise invalid(PRESET, expected, f"got {shown(value)}")
    if len(set(names)) < len(names):
        raise invalid(PRESET, f"'{PRESET}' must name each preset once", f"got {shown(names)}")
    return tuple(names)


def _merge_all(request: Document, document: Mapping[str, Any]) -> None:
    for key, part in document.items():
        if key != "filter":
            merge(request, key, part)
        elif isinstance(part, Mapping):
            for name, parameters in part.items():
                merge(request, name, parameters)
        else:
            request[key] = part


def _unknown(name: str, presets: Mapping[str, Any]) -> Problem:
    known = f"known are {', '.join(sorted(presets))}" if presets else "none is defined"
    return Problem(PRESET, f"There is no preset '{name[:_MAX_SHOWN]}'; {known}")
