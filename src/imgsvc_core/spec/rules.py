"""Rules between the parameters of one operation, each with its check and its JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import attrs

from imgsvc_core.errors import Problem


class Rule(Protocol):
    """A condition on several parameters of an operation together."""

    def problems(self, title: str, values: Mapping[str, Any]) -> Iterator[Problem]:
        """What is wrong with the given values; absent ones are ``None``."""

    def schema(self) -> dict[str, Any]:
        """The same condition in JSON Schema."""


_NOT_ASKED: dict[str, Any] = {"enum": [None, False]}


def _given(*names: str) -> dict[str, Any]:
    """Objects in which the parameters stand and are not null, which is as if they were absent."""
    return {"required": list(names), "properties": {name: {"not": {"type": "null"}} for name in names}}


def _absent(*names: str) -> dict[str, Any]:
    """Objects in which none of the parameters stands, but for null."""
    return {"properties": {name: {"type": "null"} for name in names}}


def _quoted(names: tuple[str, ...], word: str) -> str:
    return f" {word} ".join(f"'{name}'" for name in names)


@attrs.frozen
class AtLeastOne:
    """One of the parameters must be there."""

    names: tuple[str, ...]

    def problems(self, title: str, values: Mapping[str, Any]) -> Iterator[Problem]:
        if all(values.get(name) is None for name in self.names):
            yield Problem(
                self.names[0], f"{title} needs at least one of {_quoted(self.names, 'and')}, got none"
            )

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [_given(name) for name in self.names]}


@attrs.frozen
class RequiredWhen:
    """Parameters that certain choices of another one need."""

    choice: str
    options: tuple[str, ...]
    required: tuple[str, ...]
    default: bool = False  # whether the condition also holds when the choice is left out

    def problems(self, title: str, values: Mapping[str, Any]) -> Iterator[Problem]:
        option = values.get(self.choice)
        if not isinstance(option, str) or option not in self.options:
            return
        for name in self.required:
            if values.get(name) is None:
                yield Problem(
                    name, f"{title} '{name}' parameter is required when '{self.choice}' is {option}"
                )

    def schema(self) -> dict[str, Any]:
        condition: dict[str, Any] = {"properties": {self.choice: {"enum": list(self.options)}}}
        if not self.default:
            condition["required"] = [self.choice]
        return {"if": condition, "then": _given(*self.required)}


@attrs.frozen
class NotWhen:
    """Parameters that mean nothing under certain choices of another one; false asks for nothing either."""

    choice: str
    options: tuple[str, ...]
    excluded: tuple[str, ...]
    default: bool = False  # whether the condition also holds when the choice is left out

    def problems(self, title: str, values: Mapping[str, Any]) -> Iterator[Problem]:
        option = values.get(self.choice)
        if not isinstance(option, str) or option not in self.options:
            return
        for name in self.excluded:
            if values.get(name) is not None and values.get(name) is not False:
                yield Problem(
                    name, f"{title} '{name}' parameter must be left out when '{self.choice}' is {option}"
                )

    def schema(self) -> dict[str, Any]:
        condition: dict[str, Any] = {"properties": {self.choice: {"enum": list(self.options)}}}
        if not self.default:
            condition["required"] = [self.choice]
        return {"if": condition, "then": {"properties": dict.fromkeys(self.excluded, _NOT_ASKED)}}


@attrs.frozen
class Needs:
    """A parameter that means nothing without another one."""

    name: str
    other: str

    def problems(self, title: str, values: Mapping[str, Any]) -> Iterator[Problem]:
        if values.get(self.name) is not None and values.get(self.other) is None:
            yield Problem(
                self.name, f"{title} '{self.name}' parameter must be used together with '{self.other}'"
            )

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [_absent(self.name), _given(self.other)]}


@attrs.frozen
class NotTogether:
    """Two groups of parameters that exclude each other."""

    first: tuple[str, ...]
    second: tuple[str, ...]

    def problems(self, title: str, values: Mapping[str, Any]) -> Iterator[Problem]:
        for name in self.first:
            for other in self.second:
                if values.get(name) is not None and values.get(other) is not None:
                    yield Problem(
                        name, f"{title} '{name}' parameter cannot be used together with '{other}'; give one"
                    )

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [_absent(*self.first), _absent(*self.second)]}


@attrs.frozen
class Together:
    """Parameters that need each other."""

    names: tuple[str, ...]

    def problems(self, title: str, values: Mapping[str, Any]) -> Iterator[Problem]:
        missing = [name for name in self.names if values.get(name) is None]
        if len(missing) < len(self.names):
            for name in missing:
                given = next(other for other in self.names if other not in missing)
                yield Problem(name, f"{title} '{name}' parameter is required together with '{given}'")

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [_absent(*self.names), _given(*self.names)]}
