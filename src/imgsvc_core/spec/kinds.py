"""Kinds of parameters. Each checks values, describes them in words, and gives their JSON Schema."""

from __future__ import annotations

import abc
import re
from collections.abc import Mapping
from typing import Any

import attrs

from imgsvc_core._runtime.patterns import pattern
from imgsvc_core._runtime.records import frozen
from imgsvc_core.spec.color import Color

_MOST_VALUES = 1024  # of an array: weights of a convolution by 32 x 32


@frozen
class Kind:
    """The values that a parameter accepts."""

    @property
    def control(self) -> str:
        """Return the name of the kind whose values a form offers."""
        return type(self).__name__

    @property
    @abc.abstractmethod
    def expectation(self) -> str:
        """Return the words after "must be" in an error message."""

    def expectation_of(self, value: object) -> str:
        """Return these words for a value that is not acceptable."""
        return self.expectation

    @abc.abstractmethod
    def parse(self, value: object) -> Any:
        """Return the value in its Python form; raise `ValueError` if it is not acceptable."""

    def unparse(self, value: Any) -> Any:
        """Return the JSON form of a parsed value."""
        return list(value) if isinstance(value, tuple) else value

    def part(self, value: object) -> Any:
        """Return the JSON form of a value. Operations in it may lack required parameters."""
        return self.unparse(self.parse(value))

    @abc.abstractmethod
    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the accepted values."""


@frozen
class Integer(Kind):
    """A whole number in a range, both ends included."""

    minimum: int
    maximum: int

    @property
    def expectation(self) -> str:
        return f"integer within {self.minimum} to {self.maximum} range"

    def parse(self, value: object) -> int:
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole or not self.minimum <= value <= self.maximum:  # type: ignore[operator]
            raise ValueError(value)
        return int(value)  # type: ignore[call-overload, no-any-return]

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


@frozen
class Number(Kind):
    """A finite number in a range, both ends included."""

    minimum: float
    maximum: float

    @property
    def expectation(self) -> str:
        return f"float within {self.minimum:g} to {self.maximum:g} range"

    def parse(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(value)
        if not self.minimum <= value <= self.maximum:  # false for NaN as well
            raise ValueError(value)
        return float(value) + 0.0  # turns -0.0 into 0.0, so that equal requests have equal digests

    def schema(self) -> dict[str, Any]:
        return {"type": "number", "minimum": self.minimum, "maximum": self.maximum}


class _OrWord(Kind):
    """Values of another kind, or one of several words, each with the value that it stands for."""

    words: Mapping[str, Any]

    @property
    def control(self) -> str:
        return super().control.removesuffix("Or")

    @property
    def expectation(self) -> str:
        return f"{super().expectation} or {', '.join(self.words)}"  # type: ignore[safe-super]

    def expectation_of(self, value: object) -> str:
        word = isinstance(value, str) and value.isalpha()
        return self.expectation if word else super().expectation  # type: ignore[safe-super]

    def parse(self, value: object) -> Any:
        if isinstance(value, str) and value in self.words:
            return self.words[value]
        return super().parse(value)  # type: ignore[safe-super]

    def schema(self) -> dict[str, Any]:
        words = {"type": "string", "enum": [*self.words]}
        return {"anyOf": [super().schema(), words]}  # type: ignore[safe-super]


@frozen
class IntegerOr(_OrWord, Integer):
    """A whole number in a range, or one of several words."""

    words: Mapping[str, Any] = attrs.field(hash=False)


@frozen
class NumberOr(_OrWord, Number):
    """A finite number in a range, or one of several words."""

    words: Mapping[str, Any] = attrs.field(hash=False)


@frozen
class Several(Kind):
    """An array of values of one kind. ``count`` is their number, or None for at least one."""

    count: int | None
    kind: Kind

    @property
    def expectation(self) -> str:
        return f"array of {self.count or f'1 to {_MOST_VALUES}'} values, each {self.kind.expectation}"

    def parse(self, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or self.count not in (None, len(value)):
            raise ValueError(value)
        if not 0 < len(value) <= _MOST_VALUES:
            raise ValueError(value)
        return tuple(map(self.kind.parse, value))

    def unparse(self, value: tuple[Any, ...]) -> list[Any]:
        return list(map(self.kind.unparse, value))

    def schema(self) -> dict[str, Any]:
        least, most = self.count or 1, self.count or _MOST_VALUES
        return {"type": "array", "items": self.kind.schema(), "minItems": least, "maxItems": most}


class Boolean(Kind):
    """True or false."""

    expectation = "boolean, true or false"

    def parse(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError(value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@frozen
class Choice(Kind):
    """One of several words; ``aliases`` are other spellings of some of them."""

    options: tuple[str, ...]
    aliases: dict[str, str] = attrs.field(factory=dict, hash=False)

    @property
    def expectation(self) -> str:
        return "one of " + ", ".join(self.options)

    def parse(self, value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(value)
        word = self.aliases.get(value, value)
        if word not in self.options:
            raise ValueError(value)
        return word

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": [*self.options, *self.aliases]}


@frozen
class Words(Kind):
    """A set of words, as an array without order. An option gives them with commas between them."""

    options: tuple[str, ...]

    @property
    def expectation(self) -> str:
        return "array of words among " + ", ".join(self.options)

    def parse(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list | tuple | set | frozenset):
            raise ValueError(value)
        if not all(isinstance(word, str) and word in self.options for word in value):
            raise ValueError(value)
        return tuple(word for word in self.options if word in value)

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "enum": list(self.options)}}


@frozen
class Matching(Kind):
    """A string that matches a pattern, which ``words`` describe, or with ``optional`` the empty string."""

    pattern: str
    words: str
    optional: bool = False

    @property
    def expectation(self) -> str:
        return self.words + (" or empty" if self.optional else "")

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not (value or self.optional):
            raise ValueError(value)
        if value and not re.fullmatch(self.pattern, value):
            raise ValueError(value)
        value.encode()  # a lone surrogate is a ValueError of its own
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^(?:{self.pattern}){'?' if self.optional else ''}$"}


@frozen
class Text(Kind):
    """A string of limited length."""

    maximum: int
    minimum: int = 1

    @property
    def expectation(self) -> str:
        return f"string of {self.minimum} to {self.maximum} characters"

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not self.minimum <= len(value) <= self.maximum:
            raise ValueError(value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": self.minimum, "maxLength": self.maximum}


@frozen
class HexColor(Kind):
    """A color in hexadecimal notation, with or without alpha."""

    alpha: bool = True

    @property
    def expectation(self) -> str:
        return "hex color " + ("RGB, RRGGBB or AARRGGBB" if self.alpha else "RGB or RRGGBB")

    def parse(self, value: object) -> Color:
        color = value if isinstance(value, Color) else Color.parse(value) if isinstance(value, str) else None
        if color is None or (not self.alpha and _has_alpha(value, color)):
            raise ValueError(value)
        return color

    def unparse(self, value: Color) -> str:
        return str(value)

    def schema(self) -> dict[str, Any]:
        lengths = "{3}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8}" if self.alpha else "{3}|[0-9A-Fa-f]{6}"
        return {"type": "string", "pattern": f"^#?([0-9A-Fa-f]{lengths})$"}


def _has_alpha(value: object, color: Color) -> bool:
    return color.alpha != 255 or (isinstance(value, str) and len(value.removeprefix("#")) == 8)


# 20 decimals write all floats of the range exactly.
_RATIO_PART = r"(?=0*(\.0{0,3})?[1-9])[0-9]{1,5}(\.[0-9]{1,20})?"
_RATIO = pattern(f"{_RATIO_PART}:{_RATIO_PART}")
_SMALLEST_PART, _TOO_LARGE_PART = 0.0001, 100_000


class AspectRatio(Kind):
    """Width to height, written ``16:9``; each part is a number from .0001 to below 100,000."""

    expectation = "aspect ratio such as 16:9"

    def parse(self, value: object) -> tuple[float, float]:
        if isinstance(value, str) and _RATIO.fullmatch(value):
            width, height = map(float, value.split(":"))
        elif isinstance(value, tuple) and len(value) == 2:
            width, height = map(_ratio_part, value)
        else:
            raise ValueError(value)
        return width, height

    def unparse(self, value: tuple[float, float]) -> str:
        return ":".join(repr(part).removesuffix(".0") for part in value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{_RATIO.pattern}$"}


def _ratio_part(part: object) -> float:
    if isinstance(part, bool) or not isinstance(part, int | float):
        raise ValueError(part)
    if not _SMALLEST_PART <= part < _TOO_LARGE_PART:  # false for NaN as well
        raise ValueError(part)
    return float(part)
