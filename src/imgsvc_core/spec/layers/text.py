"""Words as a layer."""

import unicodedata
from typing import Any, ClassVar, Literal

from imgsvc_core.spec import kinds
from imgsvc_core.spec.color import BLACK, Color
from imgsvc_core.spec.declare import Accepts, Operation, declared, param
from imgsvc_core.spec.kinds import HexColor, Integer, Kind, Number
from imgsvc_core.spec.layers.effects import Box, Outline, Shadow
from imgsvc_core.spec.length import SIDE, Length, LengthKind
from imgsvc_core.spec.parts import Part, PartsKind, part
from imgsvc_core.spec.rules import AtLeastOne, NotTogether, Rule

MOST_LETTERS = 2000
_MOST_SPANS = 50
_REFUSED = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")

SIZE = LengthKind(1, 4096, 0, 1000)


class Content(Kind):
    """Text of limited length. Newlines are its only control characters."""

    expectation = (
        f"string of 1 to {MOST_LETTERS} characters, some of them visible, without control characters other "
        "than newlines, and without those that override directions"
    )

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or len(value) > MOST_LETTERS:
            raise ValueError(value)
        value.encode()  # a lone surrogate is a ValueError of its own
        kinds_of = {letter: unicodedata.category(letter) for letter in set(value)}
        if not any(is_visible(kind) for kind in kinds_of.values()) or not _REFUSED.isdisjoint(kinds_of):
            raise ValueError(value)
        if any(_is_no_letter(letter, kind) for letter, kind in kinds_of.items()):
            raise ValueError(value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "maxLength": MOST_LETTERS}


def is_visible(category: str) -> bool:
    """Return True if characters of a general category of Unicode leave a mark.

    Those that Python does not know, such as new emoji, may.
    """
    return category[0] not in "CZ" or category in ("Cn", "Co")


def _is_no_letter(letter: str, category: str) -> bool:
    """Return True for control characters, and for those that never become letters."""
    number = ord(letter)
    is_noncharacter = 0xFDD0 <= number <= 0xFDEF or number & 0xFFFE == 0xFFFE
    return (category == "Cc" and letter != "\n") or is_noncharacter


_CONTENT = Content()
_FONT = kinds.Text(100)


@declared
class Span(Operation):
    """A part of a text in a font or a color of its own."""

    text: str = param("Its letters.", _CONTENT)
    font: str | None = param("Its font; that of the text by default.", _FONT, default=None)
    color: Accepts[Color | None, Color | str | None] = param(
        "Its color; that of the text by default.", HexColor(), default=None
    )


Spans = Accepts[tuple[Span, ...], Any]


@declared
class Text(Operation):
    """Words in a font, broken into lines at the width of the layer. Markup is drawn as text.

    Without a width, its box is as wide as the visible part of its longest line. With a height, it is centered
    from top to bottom, and has only as many lines as fit.
    """

    rules: ClassVar[tuple[Rule, ...]] = (AtLeastOne(("text", "spans")), NotTogether(("text",), ("spans",)))

    text: str | None = param("The letters; a newline begins a line.", _CONTENT, default=None)
    spans: Spans = param(
        "Parts of the text in other fonts or colors, in place of text.",
        PartsKind(Span, _MOST_SPANS),
        default=None,
    )
    font: str | None = param(
        "Family, weight and style, such as Inter Semi-Bold Italic; a weight may be a number from 1 to 1000. "
        "Inter by default.",
        _FONT,
        default=None,
    )
    size: Accepts[Length, Length | int | str] = param(
        "Size of the letters; percent are of the picture's shorter side.", SIZE, unit="pixels"
    )
    color: Accepts[Color, Color | str] = param("Color of the letters.", HexColor(), default=BLACK)
    align: Literal["start", "left", "center", "right", "justify"] = param(
        "Where lines lie in the width; start is the left, or the right for scripts from right to left.",
        default="start",
    )
    direction: Literal["auto", "ltr", "rtl"] = param(
        "Base direction; by default that of the first letters of each paragraph.", default="auto"
    )
    line_height: float = param(
        "Distance between lines.", Number(0.5, 5), unit="sizes of the letters", default=1.2
    )
    letter_spacing: Accepts[Length, Length | int | str] = param(
        "Additional space between letters; percent are of their size. Those of Arabic stay joined.",
        LengthKind(-1000, 1000, -100, 1000),
        unit="pixels",
        default=Length(0),
    )
    width: Accepts[Length | None, Length | int | str | None] = param(
        "Width of its lines, in place of the layer's. Percent are of the picture's width.",
        SIDE,
        unit="pixels",
        default=None,
    )
    height: Accepts[Length | None, Length | int | str | None] = param(
        "Height of its box, in place of the layer's. Percent are of the picture's height.",
        SIDE,
        unit="pixels",
        default=None,
    )
    lines: int | None = param(
        "Most lines. The last one ends in an ellipsis if there is more text.", Integer(1, 1000), default=None
    )
    fit: bool = param(
        "Whether the letters become smaller until the text fits into the width and the height.", default=False
    )
    outline: Part[Outline] = part(Outline)
    shadow: Part[Shadow] = part(Shadow)
    background: Part[Box] = part(Box)
    missing: Literal["error", "box"] = param(
        "Whether letters that no font has are an error, or drawn as boxes.", default="error"
    )

    @property
    def parts(self) -> tuple[Span, ...]:
        """Return the parts of the text; without spans, the one that it is."""
        return self.spans or (Span(text=self.text or ""),)
