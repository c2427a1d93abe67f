"""Parameters that are operations themselves, alone or in an array."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import invalid
from imgsvc_core.spec.declare import Accepts, Operation, collected, doc, operation_schema, param
from imgsvc_core.spec.kinds import Kind
from imgsvc_core.spec.parsing import parse_operation, parse_part, unparse_operation

_O = TypeVar("_O", bound=Operation)
Part = Accepts[_O | None, _O | Mapping[str, Any] | None]
"""The type of a field that holds an operation or nothing."""


@frozen
class PartKind(Kind):
    """The kind of a parameter that is an operation."""

    operation: type[Operation]
    expectation = "object of parameters"

    def parse(self, value: object) -> Operation:
        return parse_operation(self.operation, value)

    def part(self, value: object) -> Any:
        return parse_part(self.operation, value)

    def unparse(self, value: Operation) -> dict[str, Any]:
        return unparse_operation(value)

    def schema(self) -> dict[str, Any]:
        return operation_schema(self.operation)


@frozen
class PartsKind(Kind):
    """The kind of a parameter that is an array of operations of one class.

    ``asked`` is the class, or its name as ``module:class`` of `imgsvc_core.spec` if few requests need it.
    """

    asked: type[Operation] | str
    most: int

    @property
    def operation(self) -> type[Operation]:
        """The class."""
        if not isinstance(self.asked, str):
            return self.asked
        module, name = self.asked.split(":")
        found: type[Operation] = getattr(import_module(f"imgsvc_core.spec.{module}"), name)
        return found

    @property
    def expectation(self) -> str:
        return f"array of at most {self.most} objects"

    def parse(self, value: object) -> tuple[Operation, ...]:
        if not isinstance(value, list | tuple) or len(value) > self.most:
            got = f"{len(value):,}" if isinstance(value, list | tuple) else shown(value)
            raise invalid("", f"{self.operation.title} list must be an {self.expectation}", f"got {got}")
        places = {f"[{index}]": item for index, item in enumerate(value)}
        return tuple(collected(places, lambda _, item: parse_operation(self.operation, item)).values())

    def unparse(self, value: tuple[Operation, ...]) -> list[dict[str, Any]]:
        return [unparse_operation(item) for item in value]

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": operation_schema(self.operation), "maxItems": self.most}


def part(operation: type[Operation], *, internal: bool = False) -> Any:
    """Declare a parameter that is an operation, and explained by it."""
    return param(doc(operation), PartKind(operation), default=None, internal=internal)
