"""Rules between the parameters of one operation, each with its check and its JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import Problem

if TYPE_CHECKING:
    from imgsvc_core.spec.declare import Parameters


class Rule(Protocol):
    """A condition on several parameters of an operation together."""

    def problems(self, operation: type[Parameters], values: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield a problem for each wrong value of an operation. `None` is a value that was not given."""

    def schema(self) -> dict[str, Any]:
        """Return the same condition in JSON Schema.

        The schema has no ``anyOf`` or ``oneOf``: generators of clients take these for kinds of objects.
        """


@frozen
class AtLeastOne:
    """One of the parameters must be given."""

    names: tuple[str, ...]

    def problems(self, operation: type[Parameters], values: Mapping[str, Any]) -> Iterator[Problem]:
        if all(values[name] is None for name in self.names):
            *others, last = (f"'{name}'" for name in self.names)
            quoted = f"{', '.join(others)} and {last}"
            yield Problem(self.names[0], f"{operation.title} needs at least one of {quoted}", "got none")

    def schema(self) -> dict[str, Any]:
        return {"not": {"type": "object", **absent(*self.names)}}


@frozen
class _When:
    """A rule that applies if another parameter, the choice, has one of some values."""

    choice: str
    options: tuple[str | bool, ...]
    names: tuple[str, ...]
    default: bool = False  # True if one of the values is the default of the choice

    def _holds(self, values: Mapping[str, Any]) -> bool:
        option = values[self.choice]
        return isinstance(option, str | bool) and option in self.options

    def _when(self, values: Mapping[str, Any]) -> str:
        option = values[self.choice]
        return f"when '{self.choice}' is {option if isinstance(option, str) else str(option).lower()}"

    def _schema(self, then: dict[str, Any]) -> dict[str, Any]:
        if self.default:
            return {"if": {"properties": {self.choice: {"enum": [*self.options, None]}}}, "then": then}
        condition = {"properties": {self.choice: {"enum": list(self.options)}}, "required": [self.choice]}
        return {"if": condition, "then": then}


class RequiredWhen(_When):
    """Parameters that must be given for some values of the choice."""

    def problems(self, operation: type[Parameters], values: Mapping[str, Any]) -> Iterator[Problem]:
        for name in self.names if self._holds(values) else ():
            if values[name] is None:
                yield missing(operation, name, self._when(values))

    def schema(self) -> dict[str, Any]:
        return self._schema(given(*self.names))


@frozen
class NotWhen(_When):
    """Parameters that must not be given for some values of the choice; false counts as not given.

    If ``values`` are given, only those are excluded.
    """

    values: tuple[str, ...] = ()

    def problems(self, operation: type[Parameters], values: Mapping[str, Any]) -> Iterator[Problem]:
        for name in self.names if self._holds(values) else ():
            value = values[name]
            if self.values and value in self.values:
                yield Problem(name, f"{operation.subject(name)} must not be {value} {self._when(values)}")
            elif not self.values and value is not None and value is not False:
                yield Problem(name, f"{operation.subject(name)} must be left out {self._when(values)}")

    def schema(self) -> dict[str, Any]:
        allowed = {"not": {"enum": list(self.values)}} if self.values else {"enum": [None, False]}
        return self._schema({"properties": {name: dict(allowed) for name in self.names}})


class OnlyWhen(_When):
    """Parameters that mean nothing unless the choice has one of some values."""

    def problems(self, operation: type[Parameters], values: Mapping[str, Any]) -> Iterator[Problem]:
        for name in () if self._holds(values) else self.names:
            if values[name] is not None:
                unless = f"unless '{self.choice}' is {' or '.join(map(str, self.options))}"
                yield Problem(name, f"{operation.subject(name)} must be left out {unless}")

    def schema(self) -> dict[str, Any]:
        condition = {"properties": {self.choice: {"enum": list(self.options)}}, "required": [self.choice]}
        return {"if": condition, "else": absent(*self.names)}


@frozen
class Needs:
    """A parameter that means nothing without another one."""

    name: str
    other: str

    def problems(self, operation: type[Parameters], values: Mapping[str, Any]) -> Iterator[Problem]:
        if values[self.name] is not None and values[self.other] is None:
            message = f"{operation.subject(self.name)} must be used together with '{self.other}'"
            yield Problem(self.name, message)

    def schema(self) -> dict[str, Any]:
        return {"if": absent(self.name), "else": given(self.other)}


@frozen
class NotTogether:
    """Two groups of parameters that exclude each other."""

    first: tuple[str, ...]
    second: tuple[str, ...]

    def problems(self, operation: type[Parameters], values: Mapping[str, Any]) -> Iterator[Problem]:
        for name in self.first:
            for other in self.second:
                if values[name] is not None and values[other] is not None:
                    message = f"{operation.subject(name)} cannot be used together with '{other}'; give one"
                    yield Problem(name, message)

    def schema(self) -> dict[str, Any]:
        return {"if": absent(*self.first), "else": absent(*self.second)}


def missing(operation: type[Parameters], name: str, when: str) -> Problem:
    """Return the problem of a missing parameter."""
    return Problem(name, operation._params[name].expected(operation.title), f"and is required {when}")


def given(*names: str) -> dict[str, Any]:
    """Return the schema of objects that have the parameters; null counts as absent."""
    return {"required": list(names), "properties": {name: {"not": {"type": "null"}} for name in names}}


def absent(*names: str) -> dict[str, Any]:
    """Return the schema of objects that have none of the parameters; null counts as absent."""
    return {"properties": {name: {"type": "null"} for name in names}}
