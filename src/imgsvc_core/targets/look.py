"""The smallest file that keeps a promised look.

The look is SSIMULACRA2 of the decoded file. A format knows its typical look at each quality. On a logarithmic
scale of what a look lacks of 100, the curve of a picture is nearly that of its format, moved and stretched a
little. So one try tells how far it is moved, and two tell how much it is stretched.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

import attrs
import pyvips

from imgsvc_core._runtime.deadline import check_time
from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import BudgetUnreachable, LookUnreachable
from imgsvc_core.formats.content import FULL_COLOR_QUALITY
from imgsvc_core.formats.saving import Encoded, save
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.table import FORMATS, Format

_MOST_TRIES = 6
_CLOSE = (1.0, 1.0, 1.5, 2.0, 2.5)  # how much more than asked for is close enough after each try
_AIM = 0.4  # a try aims that much above the look, so that most do not fall short of it
_LEAST_GAP = 0.02
_HIGHEST = 100
_STRETCH = 0.5, 2.5
_LEAST_RUN = 0.05
# Of 144 JPEGs, those of looks from 75 on were smaller with color at full resolution, and the others if the
# first try looked that much worse than is typical.
_FULL_COLOR_LOOK = 75
_EVEN_LOOK, _WORSE_PER_LOOK, _LEAST_WORSE = 60, 0.7, -2.0

Score = Callable[[bytes], float]


@frozen
class Try:
    """A file, and how it looks. It ``is_full`` if color has its full resolution, or is sharp in WebP."""

    quality: int
    look: float
    encoded: Encoded
    is_full: bool = False


def save_with_look(
    image: pyvips.Image, settings: SaveSettings, score: Score, *, most: int | None = None
) -> Encoded | None:
    """Encode a picture in memory in the smallest file that has ``settings.look``. Its facts tell the look.

    Return None as soon as it is clear that the file has more bytes than ``most``.

    Raises `LookUnreachable` if no quality has the look, `BudgetUnreachable` if such files do not fit into
    ``max_bytes``, and what `save` raises.
    """
    row, look = FORMATS[settings.format], settings.look
    assert look is not None
    plain = attrs.evolve(settings, look=None, max_bytes=None)
    if row.quality is None or settings.lossless:
        encoded = save(image, plain)
        assert encoded.data is not None
        found = Try(_HIGHEST, 100.0 if is_exact(row, plain) else score(encoded.data), encoded)
        if found.look < look:
            raise _unreachable(row, look, found)
    else:
        may_fill = bool(row.subsamplings) and settings.subsampling is None and image.bands >= 3
        search = Search(row, look, settings.max_bytes, most, may_fill=may_fill)
        while (quality := search.next_quality()) is not None:
            check_time()
            subsampling = "444" if search.full_color else settings.subsampling
            encoded = save(image, attrs.evolve(plain, quality=quality, subsampling=subsampling))
            assert encoded.data is not None
            full = search.full_color or quality >= FULL_COLOR_QUALITY or encoded.info.subsample == "4:4:4"
            search.add(Try(quality, score(encoded.data), encoded, full))
        if search.hopeless:
            return None
        found = search.found()
    size, room = found.encoded.info.bytes, settings.max_bytes
    if room is not None and size > room:
        raise BudgetUnreachable(
            f"A look of {look:g} does not fit into {room} bytes: the smallest {row.title} that has it is "
            f"{size} bytes.",
            smallest=size,
        )
    return attrs.evolve(found.encoded, info=attrs.evolve(found.encoded.info, look=rounded_look(found.look)))


def rounded_look(look: float) -> float:
    """Return a look as results have it: rounded down to hundredths."""
    return math.floor(100 * look) / 100


def is_exact(row: type[Format], settings: SaveSettings) -> bool:
    """Return True if a file is known to have every pixel."""
    return settings.lossless or (row.lossless and row.quality is None and settings.colors is None)


def _unreachable(row: type[Format], look: float, best: Try) -> LookUnreachable:
    return LookUnreachable(
        f"A look of {look:g} cannot be reached: the best {row.title} of this picture has "
        f"{math.floor(10 * best.look) / 10:.1f}; ask for less, or for a format without loss.",
        best=best.look,
    )


@attrs.define
class Search:
    """The search for the smallest file that has a look.

    A file is taken if its look is close enough, and the closer the fewer tries there were. With ``max_bytes``
    it must also fit, as long as tries are left.

    Color starts at the resolution that the picture asks for. If it ``may_fill`` and half the resolution does
    not do, all further tries have ``full_color``.
    """

    row: type[Format]
    look: float
    max_bytes: int | None = None
    most: int | None = None
    may_fill: bool = False
    full_color: bool = False
    tries: list[Try] = attrs.field(factory=list)

    def add(self, one: Try) -> None:
        """Take the outcome of a try."""
        self.tries.append(one)

    def found(self) -> Try:
        """Return the smallest file that has the look.

        Raises:
            LookUnreachable: none has.
        """
        best = self._smallest()
        if best is None:
            raise _unreachable(self.row, self.look, max(self.tries, key=lambda one: one.look))
        return best

    @property
    def hopeless(self) -> bool:
        """True if a file that falls short has more bytes than there may be."""
        return self.most is not None and any(
            one.look < self.look and one.encoded.info.bytes > self.most for one in self.tries
        )

    def next_quality(self) -> int | None:
        """Return the quality to try next, or None if the search is over."""
        if self.tries and (len(self.tries) >= _MOST_TRIES or self._is_close() or self.hopeless):
            return None
        quality = self._next(self._comparable())
        if self.may_fill and not self.full_color and self._lacks_color(quality):
            self.full_color = True
            quality = self._next(self._comparable())
        left = _MOST_TRIES - len(self.tries)
        if self._smallest() is None and quality is not None and left <= 2:
            low, _ = self._bounds(self._comparable())
            return _HIGHEST if left == 1 else max(quality, (2 * low + _HIGHEST) // 3)
        return quality

    def _next(self, tries: Sequence[Try]) -> int | None:
        """Return the next quality between those that were tried, or None if there is none left."""
        low, high = self._bounds(tries)
        return min(max(self._guess(tries, low, high), low + 1), high - 1) if high - low > 1 else None

    def _comparable(self) -> list[Try]:
        """Return the tries that tell of the next ones."""
        return [one for one in self.tries if not self.full_color or one.is_full]

    def _lacks_color(self, quality: int | None) -> bool:
        """Return True if color at full resolution should make a smaller file.

        It does for high looks, and for pictures that look worse at a quality than is typical.
        """
        if not self.tries:
            return self.look >= _FULL_COLOR_LOOK
        first = self.tries[0]
        worse = 100 - math.exp(gaps(self.row.looks)[first.quality]) - first.look
        if not first.is_full and worse > max(_LEAST_WORSE, (_EVEN_LOOK - self.look) * _WORSE_PER_LOOK):
            return True
        return self._smallest() is None and (quality is None or quality >= FULL_COLOR_QUALITY)

    def _bounds(self, tries: Sequence[Try]) -> tuple[int, int]:
        """Return the highest quality that falls short, or 0, and the next one that has the look, or 101."""
        low = max((one.quality for one in tries if one.look < self.look), default=0)
        enough = (one.quality for one in tries if one.look >= self.look and one.quality > low)
        return low, min(enough, default=_HIGHEST + 1)

    def _smallest(self) -> Try | None:
        good = [one for one in self.tries if one.look >= self.look]
        return min(good, key=lambda one: one.encoded.info.bytes, default=None)

    def _is_close(self) -> bool:
        best = self._smallest()
        if best is None or (self.max_bytes is not None and best.encoded.info.bytes > self.max_bytes):
            return False
        return best.look - self.look <= _CLOSE[len(self.tries) - 1]

    def _guess(self, tries: Sequence[Try], low: int, high: int) -> int:
        """Return the lowest quality that should have the look, by the curve of the format and some tries."""
        curve = gaps(self.row.looks)
        short = 0 if high <= _HIGHEST else max(0, len(tries) - 1)
        wanted = gap(self.look + _AIM * 2**short)
        if not tries:
            return lowest_quality(curve, wanted)
        near = sorted(tries, key=lambda one: (one.quality not in (low, high), abs(one.look - self.look)))
        stretch = min(max(self._stretch(near[:2]), _STRETCH[0]), _STRETCH[1])
        return lowest_quality(curve, curve[near[0].quality] + (wanted - gap(near[0].look)) / stretch)

    def _stretch(self, tries: Sequence[Try]) -> float:
        """Return how much more the look depends on the quality than is typical, by two tries."""
        if len(tries) < 2:
            return 1.0
        curve, (first, second) = gaps(self.row.looks), tries
        run = curve[second.quality] - curve[first.quality]
        return (gap(second.look) - gap(first.look)) / run if abs(run) > _LEAST_RUN else 1.0


def gap(look: float) -> float:
    """Return the logarithm of what a look lacks of 100."""
    return math.log(max(100 - look, _LEAST_GAP))


def lowest_quality(curve: Sequence[float], wanted: float) -> int:
    """Return the lowest quality at which a curve of `gaps` is at most as wide as wanted, or 100."""
    return next((quality for quality in range(1, _HIGHEST) if curve[quality] <= wanted), _HIGHEST)


@functools.cache
def gaps(looks: tuple[float, ...]) -> tuple[float, ...]:
    """Return the gap at each quality from 0 to 100, by straight lines between those of the format."""
    width = _HIGHEST // (len(looks) - 1)
    ends = itertools.pairwise(looks)
    between = [low + (high - low) * step / width for low, high in ends for step in range(width)]
    return tuple(map(gap, (*between, looks[-1])))
