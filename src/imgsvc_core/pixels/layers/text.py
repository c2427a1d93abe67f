"""Draw words: laid out by Pango in libvips, and measured where libvips has no answer of its own."""

from __future__ import annotations

import functools
import itertools
import math
import unicodedata
from collections.abc import Hashable, Iterator
from typing import Any

import attrs
import pyvips

from imgsvc_core._runtime.libvips import check_text_not_forked
from imgsvc_core._runtime.patterns import pattern
from imgsvc_core._runtime.records import frozen
from imgsvc_core._runtime.vipsimage import limit_threads, size_of
from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.fonts import allowed_fonts, catalog
from imgsvc_core.fonts.markup import escape
from imgsvc_core.pixels.blending import flat
from imgsvc_core.pixels.layers.drawn import Drawn
from imgsvc_core.pixels.layers.effects import outlined, shadow_of
from imgsvc_core.pixels.layers.letters import Letters, in_memory_if_small, is_small
from imgsvc_core.pixels.shapes import apply_mask
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.layers import Laid
from imgsvc_core.plan.texts import Run, TextPlan
from imgsvc_core.spec.layers import Text

_UNIT = 1024  # units of Pango in a pixel
_SPREAD = 16  # pixels more between lines tell how many there are
_TRANSPARENT = 1  # of 65,535: for Pango, an alpha of 0 is none
_MARKER = "x"
_ELLIPSIS = "…"
_SOFT_HYPHEN = "\u00ad"
_HYPHENATED = f'<span insert_hyphens="true">{_SOFT_HYPHEN}</span>'
_MARKS = {"ltr": "\u200e", "rtl": "\u200f"}
_LONGEST = 32_000  # pixels that Cairo draws, and some room
_JOINER = "\u200d"
_NON_JOINER = "\u200c"
_JOINED_SCRIPTS = (
    "ARABIC",
    "EXTENDED ARABIC",
    "HANIFI ROHINGYA",
    "MANDAIC",
    "MONGOLIAN",
    "NKO",
    "PHAGS-PA",
    "SYRIAC",
)
_VIRAMA = 9
_OPENING = pattern("[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\u1100-\u115f\u200d\ua960-\ua97c]")
"""What the next character belongs to: signs around numbers, first parts of syllables, joiners."""

_PART = pattern(
    "[\u0e33\u0eb3\u1160-\u11ff\u200c\u200d\ud7b0-\ud7fb\uff9e\uff9f"
    "\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
)
"""What belongs to the character before it although it is no mark: vowels, later parts of syllables, joiners,
marks of half width, and what follows emoji.
"""

_MOST_KEPT = 16
_OTHER_SIDE = {"low": "high", "high": "low", "centre": "centre"}


drawn_texts: dict[Hashable, Drawn] = {}
"""The texts drawn last, by what was asked. Many pictures often get the same one."""


def draw_text(laid: Laid) -> Drawn:
    """Return a text with alpha. Small ones are kept in memory for the next picture."""
    check_text_not_forked()
    key = (laid.text_plan, laid.sides, min(laid.frame), catalog())
    if (known := drawn_texts.get(key)) is not None:
        return known
    drawn = _drawn_anew(laid)
    if is_small(drawn.image):
        if len(drawn_texts) >= _MOST_KEPT:
            drawn_texts.clear()
        drawn_texts[key] = drawn
    return drawn


def _drawn_anew(laid: Laid) -> Drawn:
    plan, (width, height) = laid.text_plan, laid.sides
    try:
        with allowed_fonts():
            layout = _Layout(plan, plan.size, width)
            if plan.asked.fit:
                layout = _fitted(layout, height)
            return _drawn(*layout.limited(height), height, min(laid.frame))
    except pyvips.Error as error:
        if "too big" in str(error):
            expected = "be drawn within 32,767 pixels: ask for fewer or smaller letters"
        elif "no text to render" in str(error):
            expected = "have letters that leave a mark"
        else:
            raise
        problem = Problem(f"{laid.path}.text.text", f"Text 'text' parameter must {expected}")
        raise SpecError([problem]) from error


@frozen
class _Layout:
    """The text at a size, in lines of a width.

    ``end`` letters of it are kept, before an ellipsis. With ``whole``, only newlines break lines.
    """

    plan: TextPlan
    size: float
    width: int | None
    end: int | None = None
    whole: bool = False

    @property
    def pitch(self) -> float:
        """The distance of lines."""
        return self.plan.asked.line_height * self.size

    @property
    def zoom(self) -> int:
        """How many times larger the letters are drawn, as far as Cairo can."""
        possible = int(_LONGEST / (self.size * len(self.plan.letters) + (self.width or 0)))
        return max(1, min(possible, attrs.evolve(self.plan, size=self.size).zoom))

    def set(self) -> Letters:
        """Draw it, and measure its height by a transparent line below it."""
        if self.width is None and "\n" not in self._kept():
            image, height = self._image(), round(self.pitch)
        else:
            marked = self._image(marker=True)
            height = round((_bottom(marked) - _depth(self._marker(-1), self._font)) / self.zoom)
            image = self._image() if self.width is None else marked
        left, top = image.get("xoffset"), image.get("yoffset")
        if self._room:
            side = {"left": 0, "right": 2, "center": 1}.get(self.plan.asked.align)
            if side is None:
                side = 2 if _is_rtl(self.plan.asked, self.plan.letters) else 0
            left -= side * self._room * self.zoom // 2
        if self.zoom > 1:  # the first line stands on whole pixels, as in browsers
            top -= _depth(self._marker(0), self._font) % self.zoom
        if self.width is not None:
            image = _without_rows_below(image, height * self.zoom - top, self.zoom)
        return Letters(image, left, top, self.zoom, height)

    @property
    def _room(self) -> int:
        """Return pixels beside a whole line: its ink fits into the width, but not what is around letters."""
        spacing = self.plan.asked.letter_spacing.of(self.size)
        return 2 * math.ceil(self.size + max(spacing, 0)) if self.whole and self.width is not None else 0

    def _image(self, *, marker: bool = False, spread: int = 0) -> pyvips.Image:
        """Return what libvips draws. ``marker`` adds a line of one letter, which has no descender."""
        asked = self.plan.asked
        side = {"left": "low", "right": "high", "center": "centre"}.get(asked.align, "low")
        # Pango's sides are those of text from left to right.
        if asked.align in ("left", "right") and _is_rtl(asked, self.plan.letters):
            side = _OTHER_SIDE[side]
        options: dict[str, Any] = {"align": side, **({"spacing": spread} if spread else {})}
        if self.width is not None:
            width = (self.width + self._room) * self.zoom
            options |= {"width": width, "justify": asked.align == "justify"}
            options["wrap"] = "word" if asked.fit else "word-char"
        text = self._markup() + (f"\n{self._marker(-1)}" if marker else "")
        return _drawn_by_libvips(text, self._font, rgba=self.plan.only_color is None, **options)

    def _marker(self, run: int) -> str:
        return self._in_font(_MARKER, self.plan.runs[run], alpha=_TRANSPARENT)

    @property
    def _font(self) -> str:
        return f"{self.size * self.zoom:.3f}px"

    def has_at_most(self, lines: int, height: int | None = None) -> bool:
        """Return True if it has at most so many lines. ``height`` is its height, if known."""
        if self.width is None:
            return self._kept().count("\n") < lines
        if lines == 1:
            free = _Layout(self.plan, self.size, None, self.end)
            return "\n" not in self._kept() and free.set().right <= self.width
        if (self.set().height if height is None else height) < (lines + 0.5) * self.pitch:
            return True
        # Lines with letters of other fonts may be higher than others.
        marked, spread = (self._image(marker=True, spread=spread) for spread in (0, _SPREAD))
        return _bottom(spread) - _bottom(marked) <= lines * _SPREAD

    def limited(self, height: int | None) -> tuple[_Layout, Letters]:
        """Return the layout with an ellipsis where the most lines end, and what it looks like."""
        most = self.plan.asked.lines
        if most is None and height is not None:
            most = max(1, int(height / self.pitch))
        layout = _Layout(self.plan, self.size, self.width, whole=most == 1)
        found = layout.set()
        if most is None or layout.has_at_most(most, found.height):
            return layout, found
        ends = _ends(self.plan.letters)
        low, high = 0, len(ends) - 1  # the first end fits, the last one does not
        while high - low > 1:
            middle = (low + high) // 2
            if attrs.evolve(layout, end=ends[middle]).has_at_most(most):
                low = middle
            else:
                high = middle
        layout = attrs.evolve(layout, end=ends[low])
        return layout, layout.set()

    def _kept(self) -> str:
        letters = self.plan.letters
        return letters if self.end is None else letters[: self.end].rstrip()

    def _markup(self) -> str:
        """Return the text as markup of Pango. The letters are escaped, so they are never markup."""
        left = len(self._kept())
        parts = []
        last = self.plan.runs[0]
        for run in self.plan.runs:
            if left > 0:
                parts.append(self._in_font(run.text[:left], run))
                last = run
            left -= len(run.text)
        if self.end is not None:
            parts.append(self._in_font(_ELLIPSIS, last))
        mark = _MARKS.get(self.plan.asked.direction, "")
        return mark + "".join(parts).replace("\n", f"\n{mark}")

    def _in_font(self, text: str, run: Run, alpha: int | None = None) -> str:
        asked, font, color = self.plan.asked, run.font, run.color
        if not color.alpha:
            alpha = _TRANSPARENT
        spacing = round(asked.letter_spacing.of(self.size) * self.zoom * _UNIT)
        styles = {
            # The optical size is that of what is shown, which is smaller than what is drawn.
            "font_desc": f"{font.family}, @opsz={self.size:g}",
            "weight": str(font.weight),
            "style": "italic" if font.italic else "normal",
            "insert_hyphens": "false",
            "line_height": str(max(_UNIT + 1, round(self.pitch * self.zoom * _UNIT))),
            "foreground": f"#{color.red:02x}{color.green:02x}{color.blue:02x}{color.alpha:02x}",
            **({"alpha": str(alpha)} if alpha else {}),
        }
        listed = " ".join(f'{name}="{escape(value)}"' for name, value in styles.items())
        parts = _by_joining(text) if spacing else [(True, text)]
        spaced = f'<span letter_spacing="{spacing}" font_features="calt=0">'
        letters = "".join(
            escape(part) if is_joined else f"{spaced}{escape(part)}</span>" for is_joined, part in parts
        )
        return f"<span {listed}>{letters.replace(_SOFT_HYPHEN, _HYPHENATED)}</span>"


def _by_joining(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a text, and whether each is of scripts whose letters are joined.

    As in browsers, such a part gets no space between its letters, and other parts get no ligatures.
    """
    joined: list[bool] = []
    for letter in text:
        follows = unicodedata.category(letter)[0] == "M" or letter in (_JOINER, _NON_JOINER)
        before = bool(joined) and joined[-1]
        joined.append(before if follows else unicodedata.name(letter, "").startswith(_JOINED_SCRIPTS))
    for is_joined, part in itertools.groupby(zip(joined, text, strict=True), key=lambda each: each[0]):
        yield is_joined, "".join(letter for _, letter in part)


def _drawn_by_libvips(markup: str, font: str, **options: Any) -> pyvips.Image:
    image = pyvips.Image.text(markup, font=font, dpi=72, **options)
    limit_threads(image, 1)  # letters are few pixels
    return image


@functools.lru_cache(maxsize=256)
def _depth(markup: str, font: str) -> int:
    """Return how far the first line of a text reaches down, in the pixels that are drawn."""
    return _bottom(_drawn_by_libvips(markup, font))


def _without_rows_below(image: pyvips.Image, rows: int, step: int) -> pyvips.Image:
    """Leave out the empty rows at the end, below the first ones or somewhat more, in steps that grow."""
    width, height = size_of(image)
    rows = max(rows, 1)
    while rows < height:
        if not image.crop(0, rows, width, height - rows).max():
            return image.crop(0, 0, width, rows)
        rows, step = rows + step, 2 * step
    return image


def _fitted(layout: _Layout, height: int | None) -> _Layout:
    """Return the layout with the largest letters that fit into the width and the height."""

    def fits(size: int) -> bool:
        tried = _Layout(layout.plan, size, layout.width)
        most = layout.plan.asked.lines
        found = tried.set()
        return (
            (layout.width is None or found.right <= layout.width)
            and (height is None or found.height <= height)
            and (most is None or tried.has_at_most(most, found.height))
        )

    low, high = 1, math.ceil(layout.size)
    if fits(high):
        return layout
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return _Layout(layout.plan, low, layout.width)


def _drawn(layout: _Layout, drawn: Letters, height: int | None, side: int) -> Drawn:
    """Return the letters with what lies behind them. Percent of shadows are of a side."""
    asked, color, logical = layout.plan.asked, layout.plan.only_color, drawn.height
    color = color and attrs.evolve(color, alpha=255)  # the letters have its alpha
    ink, left, top = drawn.size, drawn.left // drawn.zoom, drawn.top // drawn.zoom
    width, left = (ink.width, 0) if layout.width is None else (layout.width, left)
    if height is not None:
        top += (height - logical) // 2
    box = asked.background
    padding = box.padding.pixels(layout.size) if box else 0
    across, down = width + 2 * padding, (logical if height is None else height) + 2 * padding
    left, top = left + padding, top + padding
    if not (asked.shadow or asked.outline or box):
        margin = max(0, -left, -top, left + ink.width - across, top + ink.height - down)
        inside = Box(left + margin, top + margin, across + 2 * margin, down + 2 * margin)
        return drawn.placed(inside, margin, color)
    image = drawn.placed(Box(0, 0, *ink), 0, color).image
    thick = asked.outline.width.of(layout.size) if asked.outline else 0.0
    border = math.ceil(thick)
    sides = image.width + 2 * border, image.height + 2 * border
    letters = image.embed(border, border, *sides) if border else image
    left, top = left - border, top - border
    below = []
    if asked.shadow is not None or asked.outline is not None:
        alpha = letters if color else letters.extract_band(3)
        if not layout.plan.is_opaque:  # what lies below has the color that it is asked for
            alpha = _opaque(layout, ink).embed(border, border, *sides)
        solid = outlined(alpha, thick) if thick else alpha
        below += [shadow_of(solid, asked.shadow, side)] if asked.shadow else []
        line = solid if layout.plan.is_opaque else (solid - alpha).cast("uchar")
        below += [(flat(line, asked.outline.color), 0, 0)] if asked.outline else []
    layers = [(picture, left + x, top + y) for picture, x, y in (*below, (letters, 0, 0))]
    margin = max(
        0,
        *(-x for _, x, _ in layers),
        *(-y for _, _, y in layers),
        *(x + picture.width - across for picture, x, _ in layers),
        *(y + picture.height - down for picture, _, y in layers),
    )
    if color:
        layers[-1] = (flat(letters, color), *layers[-1][1:])
    canvas = pyvips.Image.black(across, down, bands=4).copy(interpretation="srgb")
    if box is not None:
        canvas = flat(canvas.extract_band(0) + 255, box.color)
        if radius := box.radius.pixels(layout.size):
            canvas = apply_mask(canvas, "rounded", radius, None)
    canvas = canvas.embed(margin, margin, across + 2 * margin, down + 2 * margin)
    for picture, x, y in layers:
        canvas = canvas.composite2(picture, "over", x=x + margin, y=y + margin)
    return Drawn(in_memory_if_small(canvas.cast("uchar").copy(interpretation="srgb")), margin)


def _opaque(layout: _Layout, ink: Size) -> pyvips.Image:
    """Return the alpha of the letters as if they were opaque."""
    opaque = attrs.evolve(layout, plan=layout.plan.opaque)
    color = opaque.plan.only_color
    image = opaque.set().placed(Box(0, 0, *ink), 0, color).image
    return image if color else image.extract_band(3)


def _bottom(image: pyvips.Image) -> int:
    return int(image.get("yoffset") + image.height)


def _is_rtl(asked: Text, letters: str) -> bool:
    """Return True if the first paragraph is from right to left."""
    if asked.direction != "auto":
        return asked.direction == "rtl"
    strong = (unicodedata.bidirectional(letter) for letter in letters)
    return next((kind in ("R", "AL") for kind in strong if kind in ("L", "R", "AL")), False)


def _ends(text: str) -> list[int]:
    """Return where a text may end: after whole letters, with all marks and parts that belong to them."""
    return [0, *(place for place in range(1, len(text)) if _is_between(text, place)), len(text)]


def _is_between(text: str, place: int) -> bool:
    """Return True if a new letter begins at a place of a text."""
    before, after = text[place - 1], text[place]
    if unicodedata.category(after)[0] == "M" or _PART.match(after):
        return False
    if unicodedata.combining(before) == _VIRAMA or _OPENING.match(before):
        return False
    if _is_flag(before) and _is_flag(after):
        flags = next((n for n, letter in enumerate(text[place - 1 :: -1]) if not _is_flag(letter)), place)
        return flags % 2 == 0
    return True


def _is_flag(letter: str) -> bool:
    return "\U0001f1e6" <= letter <= "\U0001f1ff"
