"""How operations are declared: attrs classes whose fields carry everything that is known of a parameter.

A parameter's type, range, unit, default, neutral value and documentation are given once, in the call of
`param`. Validation, error messages, JSON Schema, command-line flags and documentation read them from there.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeVar

import attrs

from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.spec.kinds import Kind
from imgsvc_core.spec.rules import Rule

REQUIRED: Any = attrs.NOTHING
_METADATA_KEY = "imgsvc"
_MOST_SHOWN = 60
_JSON = json.JSONEncoder(ensure_ascii=False, check_circular=False)
_REPR = reprlib.Repr()
_REPR.maxother = _REPR.maxstring = _MOST_SHOWN + 1


@attrs.frozen(kw_only=True)
class Param:
    """What is known of one parameter. ``neutral`` is the value that changes nothing, where there is one.

    ``attribute`` is its name in Python, where ``name`` is none there. A ``secret`` is never shown.
    """

    name: str = ""
    attribute: str = ""
    kind: Kind
    doc: str
    unit: str | None = None
    default: Any = REQUIRED
    neutral: Any = None
    secret: bool = False

    @property
    def required(self) -> bool:
        """Whether a request must give it."""
        return self.default is REQUIRED

    def parse(self, title: str, value: object) -> Any:
        """The value in its Python form, or `SpecError` with the interface's sentence."""
        if value is None and self.default is None:
            return None
        try:
            return self.kind.parse(value)
        except ValueError:
            raise SpecError([Problem(self.name, self._mismatch(title, value))]) from None

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the parameter."""
        unit = f" ({self.unit})" if self.unit else ""
        kind = self.kind.schema() if self.default is not None else or_null(self.kind.schema())
        schema = {**kind, "description": f"{self.doc}{unit}"}
        if not self.required and self.default is not None:
            schema["default"] = self.kind.unparse(self.default)
        if self.secret:
            schema |= {"writeOnly": True, "format": "password"}
        return schema

    def _mismatch(self, title: str, value: object) -> str:
        got = "something else" if self.secret else shown(value)
        return f"{title} '{self.name}' parameter must be {self.kind.expectation}, got {got}"


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that allows null as well, which is as if nothing was given."""
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    words = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **words}


def shown(value: object) -> str:
    """A value that came in a request, as JSON, short enough for a sentence; no more of it is looked at."""
    text = ""
    try:
        for piece in _JSON.iterencode(value):
            text += piece
            if len(text) > _MOST_SHOWN:
                break
    except ValueError:  # Python writes no more of them
        text += "an integer of thousands of digits"
    except TypeError:  # no JSON value
        text = _REPR.repr(value)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."


def param(
    kind: Kind,
    doc: str,
    *,
    name: str = "",
    unit: str | None = None,
    default: Any = REQUIRED,
    neutral: Any = None,
    secret: bool = False,
) -> Any:
    """Declare a parameter as a field of an `Operation`; required without a default.

    ``name`` is its name in requests where that is no name in Python.
    """
    declared = Param(
        name=name, kind=kind, doc=doc, unit=unit, default=default, neutral=neutral, secret=secret
    )
    converter = attrs.Converter(_convert, takes_self=True, takes_field=True)
    return attrs.field(
        default=default, converter=converter, repr=not secret, metadata={_METADATA_KEY: declared}
    )


def _convert(value: object, operation: attrs.AttrsInstance, field: attrs.Attribute[Any]) -> Any:
    assert isinstance(operation, Operation)
    declared: Param = field.metadata[_METADATA_KEY]
    return params(type(operation))[declared.name or field.name].parse(operation.title, value)


def _declared(field: attrs.Attribute[Any]) -> Param:
    declared: Param = field.metadata[_METADATA_KEY]
    return attrs.evolve(declared, name=declared.name or field.name, attribute=field.name)


@attrs.frozen(kw_only=True)
class Operation:
    """Base of everything that a request can ask for: immutable, compared and hashed by value."""

    key: ClassVar[str]
    title: ClassVar[str]
    rules: ClassVar[tuple[Rule, ...]] = ()

    def __attrs_post_init__(self) -> None:
        values = {name: getattr(self, param.attribute) for name, param in params(type(self)).items()}
        if problems := list(rule_problems(type(self), values)):
            raise SpecError(problems)

    @property
    def is_neutral(self) -> bool:
        """Whether the operation changes nothing: every parameter that has a neutral value is at it."""
        marked = [param for param in params(type(self)).values() if param.neutral is not None]
        return bool(marked) and all(getattr(self, param.attribute) == param.neutral for param in marked)


_O = TypeVar("_O", bound=Operation)
_PARAMS: dict[type, Mapping[str, Param]] = {}


def params(operation: type[Operation]) -> Mapping[str, Param]:
    """The declared parameters of an operation by name, in the order of declaration."""
    if operation not in _PARAMS:
        fields = attrs.fields(operation)
        declared = (_declared(field) for field in fields if _METADATA_KEY in field.metadata)
        _PARAMS[operation] = {param.name: param for param in declared}
    return _PARAMS[operation]


def rule_problems(operation: type[Operation], values: Mapping[str, Any]) -> Iterator[Problem]:
    """What the rules between parameters find wrong with values; defaults stand in for absent ones."""
    defaults = {name: param.default for name, param in params(operation).items() if not param.required}
    for rule in operation.rules:
        yield from rule.problems(operation.title, {**defaults, **values})


def doc(operation: type) -> str:
    """The first paragraph of a class's documentation, on one line."""
    return " ".join((operation.__doc__ or "").strip().split("\n\n")[0].split())
