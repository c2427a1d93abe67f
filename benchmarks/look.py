"""What a promised look costs: encodings, CPU and bytes, and whether the promise holds by the package.

``python -m benchmarks.look docs/quality.md`` also writes the table there, and with a number behind it takes
only so many pictures of each kind, and ten times as many pairs. ``python -m benchmarks.look
curves`` prints the typical looks of each format instead, which are the ``looks`` of its row in the table.
Pictures are those of `benchmarks.kinds`, reduced. The last lines compare our scores with the package's over
200 pairs, and tell the CPU time of a score of one megapixel.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import attrs
import numpy as np
import pyvips
from tests.support import photos
from tests.support.decoded import decode
from tests.support.photos import Pixels

from benchmarks.harness import Bound, print_table, stay_on_one_cpu, verdict, write_table
from benchmarks.kinds import KINDS
from benchmarks.truth import ssimulacra2
from imgsvc_core import LookUnreachable, process
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.similarity.ssimulacra2 import Original
from imgsvc_core.targets import look as searching

LONGEST_SIDE = 480
FORMAT_NAMES = tuple(name for name, row in FORMATS.items() if row.writable and row.quality is not None)
LOOKS = (50, 70, 80, 90)
MARKS = ("<!-- looks -->", "<!-- end of looks -->")
MOST_ENCODINGS, MOST_ON_AVERAGE, MOST_COST = 6, 3, 4
MOST_APART = 0.5
_COLUMNS = ("format", "look", "encodings", "CPU", "kB", "look reached")


@attrs.frozen
class Found:
    """What a search took: encodings, CPU in default encodings with a score of each, bytes, and the look."""

    encodings: int
    cost: float
    size: int
    look: float
    of_the_package: float


def main(page: str | None = None, most: str = "20") -> int:
    """Print what looks cost in each format; 1 if a bound is missed."""
    rows, bounds = [], []
    for format in FORMAT_NAMES:
        by_look = {promised: list(_searches(format, promised, int(most))) for promised in LOOKS}
        rows += [_row(format, promised, found) for promised, found in by_look.items()]
        print_table(_COLUMNS, rows[-len(LOOKS) :])
        every = [one for found in by_look.values() for one in found]
        title = FORMATS[format].title
        bounds += [
            Bound(f"{title}: mean of encodings", _mean(every, "encodings"), MOST_ON_AVERAGE),
            Bound(f"{title}: most encodings", max(one.encodings for one in every), MOST_ENCODINGS),
            Bound(f"{title}: mean CPU in default encodings", _mean(every, "cost"), MOST_COST),
            *(
                Bound(f"{title}: look {promised}, by the package", min(broken), promised - MOST_APART, True)
                for promised, found in by_look.items()
                if (broken := [one.of_the_package for one in found])
            ),
        ]
    write_table(page, MARKS, _COLUMNS, rows)
    pairs = min(200, 10 * int(most))
    apart = [abs(Original.of(one).score(other) - ssimulacra2(one, other)) for one, other in _pairs(pairs)]
    return verdict(
        [*bounds, Bound(f"score less the package's, of {pairs} pairs", max(apart), MOST_APART), _speed()]
    )


def curves() -> int:
    """Print the median look of all pictures at each tenth quality, by format."""
    for format in FORMAT_NAMES:
        found: list[list[float]] = []
        for pixels in _pictures():
            original = Original.of(pixels)
            found.append([
                original.score(_decoded(format, _encoded(pixels, format, {"quality": max(1, quality)})))
                for quality in range(0, 101, 10)
            ])  # fmt: skip
        print(
            format,
            tuple(round(statistics.median(looks), 1) for looks in zip(*found, strict=True)),
            flush=True,
        )
        print([round(statistics.stdev(looks), 1) for looks in zip(*found, strict=True)], flush=True)
    return 0


def _pictures(most: int = 100) -> Iterator[Pixels]:
    for pictures in KINDS.values():
        for draw in islice(pictures.values(), most):
            yield photos.as_vips(draw()).thumbnail_image(LONGEST_SIDE).numpy()


def _searches(format: str, promised: int, most: int) -> Iterator[Found]:
    for pixels in _pictures(most):
        begun = time.process_time()
        data = _encoded(pixels, format, {})
        Original.of(pixels).score(_decoded(format, data))
        usual = time.process_time() - begun
        tries: list[searching.Try] = []
        with _Counted(tries):
            begun = time.process_time()
            try:
                data = _encoded(pixels, format, {"look": promised})
            except LookUnreachable:
                continue
            took = time.process_time() - begun
        truth = ssimulacra2(pixels, _decoded(format, data))
        reached = max(one.look for one in tries if one.encoded.data == data)
        yield Found(len(tries), took / usual, len(data), reached, truth)


class _Counted:
    """Collect the tries of searches meanwhile."""

    def __init__(self, tries: list[searching.Try]) -> None:
        self._tries, self._add = tries, searching.Search.add

    def __enter__(self) -> None:
        def add(search: searching.Search, one: searching.Try) -> None:
            self._tries.append(one)
            self._add(search, one)

        searching.Search.add = add  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        searching.Search.add = self._add  # type: ignore[method-assign]


def _encoded(pixels: Pixels, format: str, output: Mapping[str, object]) -> bytes:
    return process(pixels, {"output": {"format": format, **output}}, threads=1).data


def _decoded(format: str, data: bytes) -> Pixels:
    return np.ascontiguousarray(decode(format, data)[0][..., :3])


def _row(format: str, promised: int, found: Sequence[Found]) -> tuple[str, ...]:
    return (
        FORMATS[format].title,
        str(promised),
        f"{_mean(found, 'encodings'):.1f}, at most {max(one.encodings for one in found)}",
        f"{_mean(found, 'cost'):.1f}",
        f"{sum(one.size for one in found) / 1000:.0f}",
        f"{_mean(found, 'look'):.1f}",
    )


def _mean(found: Sequence[Found], name: str) -> float:
    return statistics.mean(getattr(one, name) for one in found)


def _pairs(count: int) -> Iterator[tuple[Pixels, Pixels]]:
    """Yield parts of all kinds of pictures, each with one of some loss."""
    random = np.random.default_rng(7)
    pictures = list(_pictures())
    for number in range(count):
        pixels = pictures[number % len(pictures)]
        side = int(random.integers(40, 240))
        top, left = (int(random.integers(0, max(1, length - side))) for length in pixels.shape[:2])
        part = np.ascontiguousarray(pixels[top : top + side, left : left + side])
        format = ("jpg", "webp")[number % 2]
        yield part, _decoded(format, _encoded(part, format, {"quality": int(random.integers(5, 100))}))


def _speed() -> Bound:
    """Return the least CPU milliseconds of a score of 1 MP, whose original is known."""
    pixels = photos.as_vips(photos.coffee()).thumbnail_image(1224, height=816, size="force").numpy()
    original, other = Original.of(pixels), pixels[:, ::-1].copy()
    took = []
    for _ in range(7):
        begun = time.process_time()
        original.score(other)
        took.append(time.process_time() - begun)
    return Bound("a score of 1 MP", 1000 * min(took), 100, unit=" ms")


if __name__ == "__main__":
    pyvips.cache_set_max(0)
    stay_on_one_cpu()
    sys.exit(curves() if sys.argv[1:] == ["curves"] else main(*sys.argv[1:]))
