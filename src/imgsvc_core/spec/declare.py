"""Declare operations as immutable classes whose fields hold all facts of a parameter.

A parameter's type, range, unit, default, neutral value and meaning stand in its field and nowhere else. The
constructor, its error messages, docstrings, JSON Schema, command-line flags and documentation use them.

All classes share their methods. attrs would compile a constructor and others for each of them, which takes
more time than a small picture; `attrs.evolve`, `attrs.asdict` and `attrs.fields` take them nevertheless.
"""

import contextlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import (
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    overload,
)  # fmt: skip

import attrs
from attrs.exceptions import FrozenInstanceError

from imgsvc_core._runtime.docstrings import explain_arguments, own_docstring
from imgsvc_core._runtime.jsontext import SOMETHING, plain_number, shown
from imgsvc_core._runtime.records import frozen, values_getter
from imgsvc_core.errors import Problem, SpecError, invalid
from imgsvc_core.spec.kinds import Boolean, Choice, Kind
from imgsvc_core.spec.rules import Rule

REQUIRED: Any = attrs.NOTHING
_METADATA_KEY = "imgsvc"

Stored = TypeVar("Stored")
Given = TypeVar("Given", contravariant=True)
_T = TypeVar("_T")


class Accepts(Generic[Stored, Given]):
    """The type of a field that stores one type and whose constructor argument accepts others as well.

    Type checkers read this class as a descriptor. At run time, fields hold plain values.
    """

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Stored: ...
    def __get__(self, instance: object, owner: type) -> Any:
        raise NotImplementedError

    def __set__(self, instance: object, value: Given) -> None:
        raise NotImplementedError


@frozen(kw_only=True)
class Param:
    """The facts of one parameter.

    ``name`` is its name in requests, ``attribute`` its name in Python. ``neutral`` is the value that changes
    nothing. The value of a ``secret`` parameter never appears in a message. The value of a ``confidential``
    one appears only if it is a number, because a text may be a misplaced secret. Only code can give
    ``internal`` parameters: JSON, flags, schemas and docs do not know them. The constructor takes it by
    position unless it is ``kw_only``.
    """

    name: str
    attribute: str
    kind: Kind
    doc: str
    unit: str | None
    default: Any
    neutral: Any
    secret: bool
    internal: bool = False
    confidential: bool = False
    kw_only: bool = True

    @property
    def required(self) -> bool:
        """Return True if a request must give the parameter."""
        return self.default is REQUIRED

    def expected(self, title: str, value: object = None) -> str:
        """Return what the parameter must be, in a sentence about an operation with this title."""
        return f"{title} '{self.name}' parameter must be {self.kind.expectation_of(value)}"

    @property
    def facts(self) -> str:
        """Return the accepted values, the unit and the default, in a few words."""
        unit = f", in {self.unit}" if self.unit else ""
        usual = "" if self.default in (REQUIRED, None, ()) else f"; default {self.kind.unparse(self.default)}"
        return f"{self.kind.expectation}{unit}{usual}" + ("; required" if self.required else "")

    def parse(self, title: str, value: object, *, part: bool = False) -> Any:
        """Return a value in its Python form, or as a ``part`` of a request in its JSON form. `None` stands
        for the default.

        Raises:
            SpecError: the value is not acceptable, or it is `REQUIRED` because it is missing.
        """
        if value is None and not self.required:
            return self.default
        if value is REQUIRED:
            raise invalid("", self.expected(title), "and is required")
        value = plain_number(value)
        try:
            return self.kind.part(value) if part else self.kind.parse(value)
        except ValueError:
            hidden = self.secret or (self.confidential and not isinstance(value, int | float | None))
            got = SOMETHING if hidden else shown(value)
            raise invalid("", self.expected(title, value), f"got {got}") from None

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the parameter."""
        kind = self.kind.schema()
        unit = f" ({self.unit})" if self.unit else ""
        schema = {**(kind if self.required else or_null(kind)), "description": f"{self.doc}{unit}"}
        if self.default not in (REQUIRED, None, ()):
            schema["default"] = self.kind.unparse(self.default)
        if self.secret:
            schema |= {"writeOnly": True, "format": "password"}
        return schema


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that also allows null. Null is the same as no value."""
    if "type" not in schema:
        first, *others = schema["anyOf"]
        return {**schema, "anyOf": [or_null(first), *others]}
    if "oneOf" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    words = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **words}


def param(
    doc: str,
    kind: Kind | None = None,
    *,
    name: str = "",
    unit: str | None = None,
    default: Any = REQUIRED,
    neutral: Any = None,
    secret: bool = False,
    internal: bool = False,
    kw_only: bool = True,
) -> Any:
    """Declare a parameter as a field, with the facts of `Param`.

    Its name is by default that of the field. Annotations of `bool` or `Literal` need no kind. Without a
    default it is required. The only required parameter of an operation is not ``kw_only``.
    """
    return _Facts(
        doc=doc, kind=kind, name=name, unit=unit, default=default, neutral=neutral, secret=secret,
        internal=internal, kw_only=kw_only,
    )  # fmt: skip


class _Facts(dict[str, Any]):
    """The arguments of `param`, which the class statement completes by its own facts."""

    def completed(self, cls: type["Parameters"], attribute: str) -> Param:
        """Return the parameter. Attribute and annotation complete its name and its kind."""
        given = {
            "name": self["name"] or attribute,
            "kind": self["kind"] or _kind_of(_annotation(cls, attribute)),
        }
        return Param(**{**self, **given}, attribute=attribute, confidential=cls.confidential)


def _annotation(cls: type, attribute: str) -> Any:
    """Return the annotation of an attribute; for `Accepts`, what the constructor accepts."""
    annotation = next(
        found[attribute] for owner in cls.__mro__ if attribute in (found := inspect.get_annotations(owner))
    )
    return get_args(annotation)[1] if get_origin(annotation) is Accepts else annotation


def _kind_of(annotation: Any) -> Kind:
    """Return the kind of a parameter whose annotation determines it."""
    kind = annotation
    if get_origin(annotation) in (Union, UnionType):
        kind = next(item for item in get_args(annotation) if item is not type(None))
    if kind is bool:
        return Boolean()
    if get_origin(kind) is Literal:
        return Choice(get_args(kind))
    raise TypeError(f"a parameter of type {annotation} needs a kind")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(param,))
def declared(cls: type[_T]) -> type[_T]:
    """Make a class of declared parameters from its annotations, with a docstring that explains them."""
    assert issubclass(cls, Parameters)
    own = {name: facts for name, facts in vars(cls).items() if isinstance(facts, _Facts)}
    for attribute in own:
        delattr(cls, attribute)
    made = {item.attribute: item for item in cls._params.values()}
    made |= {attribute: facts.completed(cls, attribute) for attribute, facts in own.items()}
    cls._params = {item.name: item for item in made.values()}
    cls._values = values_getter([*made])
    cls._initial = {attribute: item.default for attribute, item in made.items()}
    cls._defaults = {name: None if item.required else item.default for name, item in cls._params.items()}
    cls._missing = {item.attribute: REQUIRED for item in made.values() if item.required}
    cls._public = {name: item for name, item in cls._params.items() if not item.internal}
    explain_arguments(
        cls, lambda: {item.attribute: f"{item.doc} [{item.facts}]" for item in params(cls).values()}
    )
    return cls


class _Made:
    """An attribute of a class that is made when it is read."""

    def __init__(self, make: Callable[[type["Parameters"]], Any]) -> None:
        self._make = make
        self._known: dict[type, Any] = {}

    def __get__(self, instance: object, owner: type["Parameters"]) -> Any:
        if owner not in self._known:
            self._known[owner] = self._make(owner)
        return self._known[owner]


def _attrs_fields(cls: type["Parameters"]) -> tuple[Any, ...]:
    """Return the parameters as attrs describes fields."""
    fields = {
        item.attribute: attrs.field(default=item.default, type=_annotation(cls, item.attribute))
        for item in cls._params.values()
    }
    found: tuple[Any, ...] = attrs.fields(attrs.make_class(cls.__name__, fields, kw_only=True))
    return found


def _signature(cls: type["Parameters"]) -> Any:
    return inspect.Signature(
        [
            inspect.Parameter(
                item.attribute,
                inspect.Parameter.KEYWORD_ONLY if item.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if item.required else item.default,
                annotation=_annotation(cls, item.attribute),
            )
            for item in cls._params.values()
        ]
    )


class Parameters:
    """Base of all classes with declared parameters: immutable, compared and hashed by value.

    ``confidential`` is True if texts given in its place may be or hold secrets.
    """

    __attrs_attrs__: ClassVar[Any] = _Made(_attrs_fields)
    __signature__: ClassVar[Any] = _Made(_signature)
    title: ClassVar[str]
    confidential: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = ()
    _params: ClassVar[Mapping[str, Param]] = {}
    _public: ClassVar[Mapping[str, Param]] = {}
    _defaults: ClassVar[dict[str, Any]] = {}
    _initial: ClassVar[dict[str, Any]] = {}
    _missing: ClassVar[dict[str, Any]] = {}
    _values: ClassVar[Any] = values_getter(())

    def __init__(self, *unnamed: Any, **given: Any) -> None:
        if unnamed:
            given = self._named(unnamed, given)
        values = vars(self)
        values.update(self._initial)
        for name, value in given.items():
            if name not in values:
                called = f"{type(self).__name__}.__init__()"
                raise TypeError(f"{called} got an unexpected keyword argument '{name}'")
            values[name] = value
        self.__attrs_post_init__()

    @classmethod
    def _named(cls, unnamed: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments by name.

        Raises:
            TypeError: there are more without a name than the class takes, or one is given twice.
        """
        names = [item.attribute for item in cls._params.values() if not item.kw_only]
        found = dict(zip(names, unnamed, strict=False))
        if len(unnamed) == len(found) and not found.keys() & given.keys():
            return found | given
        hidden = cls.confidential or any(item.secret for item in cls._params.values())
        got = SOMETHING if hidden else ", ".join(map(shown, unnamed))
        called = ", ".join(f"{name}={_in_code(value)}" for name, value in cls._accepting(unnamed))
        takes = f"only '{names[0]}' without its name, and once" if names else "its parameters by name"
        example = "" if names or hidden or not called else f", such as {cls.__name__}({called})"
        raise TypeError(f"{cls.__name__} takes {takes}{example}, got {got}.")

    @classmethod
    def _accepting(cls, values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
        """Yield the names of the first parameters, in their order, that accept the values."""
        left = iter(cls._public.values())
        for value in values:
            for item in left:
                with contextlib.suppress(SpecError):
                    item.parse(cls.title, value)
                    yield item.attribute, value
                    break

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError

    def __eq__(self, other: object) -> bool:
        return self._values(self) == self._values(other) if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._values(self)))

    def __repr__(self) -> str:
        shown = [
            f"{item.attribute}={getattr(self, item.attribute)!r}"
            for item in self._params.values()
            if not item.secret and not self.confidential
        ]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    @classmethod
    def subject(cls, name: str) -> str:
        """Return the subject of sentences about a parameter."""
        return f"{cls.title} '{name}' parameter"

    def __attrs_post_init__(self) -> None:
        given, values = vars(self), dict(self._defaults)
        problems: list[Problem] = []
        for name, param in self._params.items():
            value = given[param.attribute]
            if value is param.default and value is not REQUIRED:
                continue
            values[name] = value
            try:
                values[name] = parsed = param.parse(self.title, value)
            except SpecError as error:
                problems += below(name, error.problems)
                continue
            if parsed is not value:
                object.__setattr__(self, param.attribute, parsed)
        for rule in self.rules:
            problems += rule.problems(type(self), values)
        if problems:
            raise SpecError(problems)


@declared
class Operation(Parameters):
    """Base of everything that a request can ask for.

    ``key`` is its name in requests, and ``title`` in messages. By default both are the words of the class's
    name: ``SharpEdge`` has the key ``sharp_edge`` and the title ``Sharp edge``.
    """

    key: ClassVar[str]

    def __init_subclass__(cls) -> None:
        words = re.findall("[A-Z][a-z]*", cls.__name__)
        if "key" not in vars(cls):
            cls.key = "_".join(words).lower()
        if "title" not in vars(cls):
            cls.title = " ".join(words).capitalize()

    @property
    def is_neutral(self) -> bool:
        """Return True if all parameters that have a neutral value have it, so that nothing changes."""
        marked = [param for param in self._params.values() if param.neutral is not None]
        return bool(marked) and all(getattr(self, param.attribute) == param.neutral for param in marked)


def params(operation: type[Parameters]) -> Mapping[str, Param]:
    """Return the declared parameters of an operation by name, in their order, without internal ones."""
    return operation._public


def all_params(operation: type[Parameters]) -> Mapping[str, Param]:
    """Return the declared parameters of an operation by name, in their order, and also internal ones."""
    return operation._params


def collected(
    values: Mapping[str, Any], read: Callable[[str, Any], _T], problems: Iterable[Problem] = ()
) -> dict[str, _T]:
    """Return the results of a function for each path and value, by path.

    Raises:
        SpecError: with all problems of the values, each below its path, followed by those given.
    """
    found: dict[str, _T] = {}
    wrong: list[Problem] = []
    for path, value in values.items():
        try:
            found[path] = read(path, value)
        except SpecError as error:
            wrong += below(path, error.problems)
    if wrong := [*wrong, *problems]:
        raise SpecError(wrong)
    return found


def below(path: str, problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems with a path put before their own."""
    return [attrs.evolve(problem, path=_joined(path, problem.path)) for problem in problems]


def doc(cls: type) -> str:
    """Return the first paragraph of a class's docstring, on one line."""
    return " ".join(own_docstring(cls).strip().split("\n\n")[0].split())


def _in_code(value: object) -> str:
    """Return a value as Python code, or dots if it is long."""
    code = repr(plain_number(value))
    return code if len(code) <= 60 else "..."


def _joined(path: str, inner: str) -> str:
    return path + (inner if not path or not inner or inner.startswith("[") else f".{inner}")


def operation_schema(operation: type[Parameters]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of an operation's object."""
    declared = params(operation)
    schema: dict[str, Any] = {
        "type": "object",
        "title": operation.title,
        "description": doc(operation),
        "properties": {name: param.schema() for name, param in declared.items()},
        "additionalProperties": False,
    }
    if required := [name for name, param in declared.items() if param.required]:
        schema["required"] = required
    if operation.rules:
        schema["allOf"] = [rule.schema() for rule in operation.rules]
    return schema
