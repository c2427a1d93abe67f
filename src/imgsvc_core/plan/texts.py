"""What a text layer asks for in pixels, with fonts that are known and letters that they have."""

from __future__ import annotations

import functools
import math
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import MissingDependency, Problem, SpecError
from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Color
from imgsvc_core.spec.layers import Text
from imgsvc_core.spec.layers.text import is_visible

if TYPE_CHECKING:
    from imgsvc_core.fonts import Catalog, Font

_LARGEST = 4096
_EVEN = 144  # pixels: lines of letters of this size are as long as in browsers
_MOST_ZOOM = 6
_MOST_TOLD = 10
_MOST_NAMES = 50


@frozen
class Run:
    """Letters in one font and one color."""

    text: str
    font: Font
    color: Color


@frozen
class TextPlan:
    """A text with its lengths in pixels. Those that depend on the size of the letters are for ``size``."""

    asked: Text
    runs: tuple[Run, ...]
    size: float

    @property
    def zoom(self) -> int:
        """How many times larger letters of this size are drawn.

        Pango puts letters at whole pixels, which would leave uneven spaces between small ones, and lines that
        are too long or too short.
        """
        return max(1, min(math.ceil(_EVEN / self.size), _MOST_ZOOM))

    @property
    def only_color(self) -> Color | None:
        """The color of all letters, or None if there are several, or fonts with colors of their own."""
        from imgsvc_core.fonts import catalog

        colors = {run.color for run in self.runs}
        return colors.pop() if len(colors) == 1 and not catalog().colored else None

    @property
    def is_opaque(self) -> bool:
        """True if all letters are opaque."""
        return all(run.color.alpha == 255 for run in self.runs)

    @property
    def opaque(self) -> TextPlan:
        """The same with opaque letters."""
        runs = (attrs.evolve(run, color=attrs.evolve(run.color, alpha=255)) for run in self.runs)
        return attrs.evolve(self, runs=tuple(runs))

    @property
    def letters(self) -> str:
        """The whole text."""
        return "".join(run.text for run in self.runs)


def planned_text(text: Text, path: str, frame: Size, scale: float) -> TextPlan:
    """Return the plan of a text on a picture. ``path`` is where the request has it.

    Raises:
        MissingDependency: there are no fonts.
        SpecError: the size comes out wrong, a family is not known, or no font has a letter.
    """
    from imgsvc_core.fonts import catalog  # few requests have texts

    return _planned(text, path, frame, scale, catalog())


@functools.lru_cache(maxsize=64)
def _planned(text: Text, path: str, frame: Size, scale: float, known: Catalog) -> TextPlan:
    from imgsvc_core.fonts import Font

    if not known.families:
        raise MissingDependency(
            "Text needs fonts: install imgsvc[fonts], or name folders of fonts in IMGSVC_FONTS_FOLDERS."
        )
    size = text.size.of(min(frame)) * scale
    problems: list[Problem] = []
    if not 1 <= size <= _LARGEST:
        expected = f"Text 'size' parameter must come out as 1 to {_LARGEST} pixels"
        problems.append(Problem(f"{path}.size", expected, f"got {size:g} pixels"))
    runs: list[Run] = []
    base = Font.parse(text.font, known)
    if base is None:
        problems.append(_unknown(f"{path}.font", "Text", text.font, known))
    for place, span in enumerate(text.parts):
        own = f"{path}.spans[{place}]" if text.spans else path
        font = base if span.font is None else Font.parse(span.font, known)
        if font is None and base is not None:
            problems.append(_unknown(f"{own}.font", "Span", span.font, known))
        if text.missing == "error" and (lacking := _lacking(span.text, known)):
            title = "Span" if text.spans else "Text"
            expected = f"{title} 'text' parameter must have letters that a font has"
            problems.append(Problem(f"{own}.text", expected, f"got {', '.join(lacking)}"))
        if font is not None:
            for letters, family in _marked_in_one_font(span.text, font.family, known):
                run = Run(letters, font._replace(family=family), span.color or text.color)
                alike = runs and (runs[-1].font, runs[-1].color) == (run.font, run.color)
                # Letters of one run are shaped together.
                runs.append(Run(runs.pop().text + run.text, run.font, run.color) if alike else run)
    if problems:
        raise SpecError(problems)
    return TextPlan(text, tuple(runs), size)


def _marked_in_one_font(text: str, family: str, known: Catalog) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text, and the families whose fonts have their letters together with their marks.

    Pango would take only the marks from another font, and draw them beside their letters.
    """
    if text.isascii():
        yield text, family
        return
    kinds = map(unicodedata.category, text)
    starts = [place for place, kind in enumerate(kinds) if not place or kind[0] != "M"]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        letter = text[start:end]
        marked = "".join(part for part in letter if not _is_selector(part))
        if len(marked) > 1 and known.family_with(marked[0], [family]):
            marked = unicodedata.normalize("NFC", marked)
            yield marked, known.family_with(marked, [family, *known.families.values()]) or family
        else:
            yield letter, family


def _unknown(path: str, title: str, font: str | None, known: Catalog) -> Problem:
    families = _listed(sorted(known.families.values()))
    broken = f"; fonts that cannot be read: {_listed(known.broken)}" if known.broken else ""
    expected = f"{title} 'font' parameter must be a family, and words for weight and style, of {families}"
    return Problem(path, expected, f"got '{font}'{broken}")


def _listed(names: Sequence[str]) -> str:
    """Return names for a message. Folders of fonts may have thousands of families."""
    more = len(names) - _MOST_NAMES
    return ", ".join([*names[:_MOST_NAMES], *([f"{more} more"] if more > 0 else [])])


def _lacking(text: str, known: Catalog) -> list[str]:
    """Return the first letters of a text that no font has, for messages."""
    letters = [letter for letter in dict.fromkeys(text) if is_visible(unicodedata.category(letter))]
    lacking = [letter for letter in letters if not _is_selector(letter) and not known.has(letter)]
    shown = [f"'{letter}' (U+{ord(letter):04X})" for letter in lacking[:_MOST_TOLD]]
    return [*shown, "and more"] if len(lacking) > _MOST_TOLD else shown


def _is_selector(letter: str) -> bool:
    """Return True for characters that choose a form of the letter before them."""
    return "\ufe00" <= letter <= "\ufe0f" or "\U000e0100" <= letter <= "\U000e01ef"
