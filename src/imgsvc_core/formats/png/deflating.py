"""How the lines of a PNG are stored and compressed, by libdeflate if it is installed, else by zlib."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from imgsvc_core._runtime.deadline import check_time
from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats import palette
from imgsvc_core.formats.png.lines import Area, Stored, filtered

SMALL = 64 * 64
"""Pixels of a picture that is stored in all ways, as that takes little time."""
_MOST_BY_STRATEGY = SMALL * 4 + 64  # bytes of their lines
_TRIED = 8  # the level at which ways are compared
_TRIED_WHOLE = 1 << 20  # pixels, if bytes count more than time

_FEW_GRAYS = 16  # more of them need as many bits as without a palette
_SAMPLED_PIXELS, _PARTS = 1 << 15, 4
_NOISE = 0.4  # the share of bytes that are left of differences, compressed fast: more only in photographs
OF_PHOTOGRAPHS = "avg"
"""The filter for photographs."""
THOROUGH = 7
"""The level of zlib from which on bytes count more than time."""
# Levels of libdeflate for those of zlib, which `format.DEFLATE` has for each effort.
_LEVELS = {1: 1, 2: 3, 4: 5, 5: 6, 6: 8, 7: 9, 8: 11, 9: 12}
# Levels, and the share of bytes that the next one has to save. It takes twice the time, and the one after
# level 6 takes five times as long to compress soft light.
_QUICKER = ((1, 0.04), (6, 0.2), (8, 0.0))
_QUICKER_OF_ZLIB = ((3, 0.04),)
_SPARSE = 1.02  # more bits than are needed have to save so much
_LONG_FILTER = 1.05  # choosing a filter for each line takes as long as compressing, and has to save so much


@functools.cache
def compressor() -> Callable[[Any, int], bytes | bytearray] | None:
    """Return libdeflate's function, or None if it is not installed."""
    try:
        from deflate import zlib_compress
    except ImportError:
        return None
    return zlib_compress


@frozen
class Way:
    """A way to store a picture: what its lines hold, their filter, and the level of the compressor.

    ``data`` is the compressed picture if it is known.
    """

    stored: Stored
    filter: str
    level: int
    data: bytes | None = None

    def deflated(self, area: Area | None = None) -> bytes:
        """Compress the lines of a picture, or of the part at left, top, width and height."""
        if area is None and self.data is not None:
            return self.data
        check_time()
        return _compressed(self.filtered(area), self.level, self.filter)

    def filtered(self, area: Area | None = None) -> Any:
        """Return the lines with their filters."""
        return filtered(self.stored.lines(area), self.stored.distance, self.filter)


def best_way(pixels: Any, level: int, *, photograph: bool = False) -> Way:
    """Return the way that makes a picture smallest, an array of (height, width, bands) of 8 or 16 bits.

    Differences make photographs a third smaller, but drawings and text a fifth larger. So parts of the
    picture are stored in all ways, except of what is known to be a photograph. ``level`` is one of zlib.
    """
    plain, thorough = Stored.plainly(pixels), level >= THOROUGH
    most, quick = _most(level), _quick(level)
    if photograph and not thorough:
        return Way(plain, OF_PHOTOGRAPHS, quick)
    small = pixels.shape[0] * pixels.shape[1] <= SMALL  # one filter for all lines never made these smaller
    kinds = [(plain, name) for name in (("none", "all") if small else ("none", "sub", "avg", "all"))]
    indexed = palette.index_exactly(pixels, palette.MOST_COLORS if pixels.shape[2] >= 2 else _FEW_GRAYS)
    if indexed is not None:
        kinds = [*_by_number(indexed), *kinds]
    elif not thorough and _is_noisy(plain, quick):
        return Way(plain, OF_PHOTOGRAPHS, quick)
    return _best(kinds, most, thorough=thorough)


def best_way_of(indexed: palette.Indexed, level: int) -> Way:
    """Return the way that makes the numbers of colors smallest."""
    return _best(_by_number(indexed), _most(level), thorough=level >= THOROUGH)


def _most(level: int) -> int:
    """Return the level of the compressor for one of zlib."""
    return level if compressor() is None else _LEVELS[level]


def _quick(level: int) -> int:
    """Return the level of the compressor that suits photographs, for one of zlib."""
    return min(_most(level), _quicker()[0][0])


def deflated_photograph(lines: bytes, level: int) -> bytes:
    """Compress the lines of a photograph that have the filter for photographs. ``level`` is one of zlib."""
    return _compressed(lines, _quick(level), OF_PHOTOGRAPHS)


def _is_noisy(stored: Stored, level: int) -> bool:
    """Return True if even differences hardly repeat, as those of photographs."""
    height, width, _ = stored.pixels.shape
    if height * width <= SMALL:
        return False
    way = Way(stored, "sub", level)
    lines = b"".join(_lines_of(way, part) for part in _parts(width, height))
    return len(_compressed(lines, level)) > _NOISE * len(lines)


def _by_number(indexed: palette.Indexed) -> list[tuple[Stored, str]]:
    """Return ways to store numbers of colors. Differences are worth a try if near numbers are near colors."""
    if indexed.are_levels:
        return [(Stored.by_number(indexed, indexed.bits), "none")]
    ordered = indexed.by_frequency()
    ways = [(Stored.by_number(ordered, indexed.bits), "none")]
    if indexed.bits == 4:  # dithered pictures repeat only in whole bytes
        ways.append((Stored.by_number(ordered, 8), "none"))
    if indexed.bits == 8 and indexed.are_gray:
        ways.append((Stored.by_number(indexed, 8), "all"))
    return ways


def _best(kinds: Sequence[tuple[Stored, str]], most: int, *, thorough: bool) -> Way:
    height, width, _ = kinds[0][0].pixels.shape
    small = height * width <= SMALL
    whole = small or (thorough and height * width <= _TRIED_WHOLE)
    parts = [None] if whole else _parts(width, height)
    fewest_bits = min(stored.bits for stored, _ in kinds)
    shown = sum(part[3] if part else height for part in parts) / height
    in_depth = whole or any(stored.indexed for stored, _ in kinds)
    tried = most if small else min(most, _TRIED if in_depth else _quicker()[0][0])
    found: list[tuple[float, Way, bytes]] = []
    for stored, name in kinds:
        way = Way(stored, name, most)
        lines = b"".join(_lines_of(way, part) for part in parts)
        data = _compressed(lines, tried, name)
        size = len(data) / shown + stored.palette_bytes
        if name == "all" and not whole:
            size *= _LONG_FILTER
        if stored.bits > fewest_bits:
            size *= _SPARSE
        found.append((size, Way(stored, name, most, data if small else None), lines))
    _, way, lines = min(found, key=lambda one: one[0])
    if whole or thorough or way.filter == "none":
        return way
    return Way(way.stored, way.filter, _level(lines, most))


def _lines_of(way: Way, part: Area | None) -> bytes:
    """Return filtered lines of a part, which are compared with those above it."""
    if part is None or part[1] == 0:
        return bytes(way.filtered(part).tobytes())
    left, top, width, height = part
    return bytes(way.filtered((left, top - 1, width, height + 1))[1:].tobytes())


def _level(lines: bytes, most: int) -> int:
    """Return the quickest level beyond which little is saved: differences of photographs hardly repeat."""
    sizes = functools.cache(lambda level: len(_compressed(lines, level)))
    steps = [*(step for step in _quicker() if step[0] < most), (most, 0.0)]
    for (quicker, worth), (slower, _) in pairwise(steps):
        if sizes(slower) > (1 - worth) * sizes(quicker):
            return quicker
    return most


def _quicker() -> tuple[tuple[int, float], ...]:
    return _QUICKER_OF_ZLIB if compressor() is None else _QUICKER


def _parts(width: int, height: int) -> list[Area | None]:
    """Return bands of lines, evenly from top to bottom."""
    rows = max(2, _SAMPLED_PIXELS // _PARTS // width)
    if rows * _PARTS >= height:
        return [None]
    step = (height - rows) // (_PARTS - 1)
    return [(0, number * step, width, rows) for number in range(_PARTS)]


def _compressed(lines: Any, level: int, filter: str = "none") -> bytes:
    """Compress lines. Those of small pictures with filters have fewest bytes by zlib's strategy for them."""
    compress, differences = compressor(), filter != "none"
    if compress is not None and not (differences and memoryview(lines).nbytes <= _MOST_BY_STRATEGY):
        return bytes(compress(lines, level))
    strategy = zlib.Z_FILTERED if differences else zlib.Z_DEFAULT_STRATEGY
    compressing = zlib.compressobj(min(level, 9), strategy=strategy)
    return compressing.compress(lines) + compressing.flush()
