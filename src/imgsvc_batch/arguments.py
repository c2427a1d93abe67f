"""What the arguments of a batch have to be; `SpecError` tells what is wrong with one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imgsvc_batch.naming import Template
from imgsvc_batch.places import can_be_named, place_of, problem_of_target, readable
from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.limits import Limits
from imgsvc_core.spec import Spec, parse


def as_source(value: str | Path) -> str:
    """The absolute path or URL of a source."""
    return _place("source", value)


def as_target(value: str | Path) -> str:
    """The absolute path or URL of a target."""
    place = _place("target", value)
    if expected := problem_of_target(place):
        raise _refusal("target", expected, place)
    return place


def as_manifest(value: str | Path | None) -> Path | None:
    """The path of a manifest."""
    if value is not None and not _is_path(value):
        raise _refusal("manifest", "the path of a file", value)
    return None if value is None else Path(value)


def as_template(value: Template | str | None) -> Template | None:
    """The template of this text."""
    if value is not None and not isinstance(value, str | Template):
        raise _refusal("name", "a template", value)
    return Template(value) if isinstance(value, str) else value


def check_workers(batch: object, field: object, value: int | None) -> None:
    """Raise where it is no number of processes."""
    if value is not None and not _is_count(value):
        raise _refusal("workers", "a number of processes from 1 up", value)


def check_limits(batch: object, field: object, value: object) -> None:
    """Raise where it is anything else."""
    if not isinstance(value, Limits):
        raise _refusal("limits", "imgsvc_core.Limits", value)


def check_watermarks(batch: object, field: object, value: object) -> None:
    """Raise where it names no pictures."""
    if not isinstance(value, Mapping) or not all(_is_name(id) for id in value):
        raise _refusal("watermarks", "pictures by their ids", value)


def of_variant(name: str, message: str) -> str:
    """A message about one of several variants."""
    return f"Variant '{name}': {message}" if name else message


def as_variants(value: Mapping[str, Any]) -> dict[str, Spec]:
    """The specs by their names; all their problems are told at once."""
    if not isinstance(value, Mapping):
        raise _refusal("variants", "specs by their names", value)
    problems: list[Problem] = []
    parsed: dict[str, Spec] = {}
    for name, spec in value.items():
        if not _is_name(name):
            raise _refusal("variants", "specs by names that are UTF-8, without NUL", name)
        if "/" in name or name.startswith("."):
            message = f"Batch 'variants' parameter must have names without '/' or '.' in front, got '{name}'"
            problems.append(Problem("variants", message))
        try:
            parsed[name] = parse(spec)
        except SpecError as error:
            problems += [
                Problem(f"{name}.{problem.path}".strip("."), of_variant(name, problem.message))
                for problem in error.problems
            ]
    if not value:
        problems.append(Problem("variants", "Batch 'variants' parameter must name one spec or more"))
    if problems:
        raise SpecError(problems)
    return parsed


def _refusal(name: str, expected: str, value: object) -> SpecError:
    got = readable(f"'{value}'" if isinstance(value, str) else repr(value))
    return SpecError([Problem(name, f"Batch '{name}' parameter must be {expected}, got {got}")])


def _is_path(value: object) -> bool:
    return isinstance(value, str | Path) and str(value) not in ("", "file://", "local://")


def _place(name: str, value: str | Path) -> str:
    if not _is_path(value):
        raise _refusal(name, "a path or a URL", value)
    place = place_of(value)
    if not can_be_named(place):
        raise _refusal(name, "UTF-8, without NUL", place)
    return place


def _is_name(value: object) -> bool:
    return isinstance(value, str) and can_be_named(value)


def _is_count(value: object) -> bool:
    return type(value) is int and value > 0
