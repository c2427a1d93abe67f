"""Bytes and CPU of our encoders at equal SSIMULACRA2, beside the defaults of others.

``python -m benchmarks.encoders docs/quality.md`` also writes the table there, and with a number behind it
takes only so many pictures of each kind. Each picture of `benchmarks.corpus` is encoded at our default
quality, in some formats also with another effort. Others encode it at several qualities. Their bytes at our
score are interpolated, or left out where the score is far beyond theirs. Transparent pictures are laid on
white. PNG has no loss, so that only bytes and time count.
"""

from __future__ import annotations

import io
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import Any, TypeAlias

import attrs
import numpy as np
import pyvips
from PIL import Image
from tests.support import photos
from tests.support.decoded import decode
from tests.support.photos import Pixels

from benchmarks.corpus import CORPUS
from benchmarks.harness import Bound, print_table, stay_on_one_cpu, verdict, write_table
from benchmarks.pictures import on_one_thread
from imgsvc_core.formats.saving import save
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.similarity.ssimulacra2 import Original

ROUNDS = 3
ENOUGH = 0.1  # seconds of CPU in which rounds are not worth repeating
QUALITIES: Mapping[str, Sequence[int]] = {
    "jpg": range(60, 93, 8),
    "webp": range(60, 93, 8),
    "avif": range(44, 77, 8),
    "jxl": range(44, 77, 8),
    "png": (0,),
}
"""The qualities of the others: close to each other, as bytes grow faster than scores."""
EFFORTS: Mapping[str, tuple[Sequence[int], str]] = {"avif": ((2, 5), "sharp"), "png": ((8,), "oxipng")}
"""Efforts beside the default, and the other encoder that they are measured beside."""
MARKS = ("<!-- encoders -->", "<!-- end of encoders -->")
BEYOND = 10.0  # points of score that bytes are extrapolated by at most

Encode: TypeAlias = Callable[[int], bytes]
Row: TypeAlias = tuple[str, int | None, str]
"""A format, our effort (None for the default), and the other encoder."""


@attrs.frozen
class Ratio:
    """Our bytes and our time over those of another encoder, for one picture."""

    size: float
    seconds: float


def main(page: str | None = None, most: str = "100") -> int:
    """Print the medians of each kind of picture; 1 if a bound is missed. Write them into a page, if given."""
    found: dict[tuple[Row, str], list[Ratio]] = {}
    for kind, pictures in CORPUS.items():
        for draw in islice(pictures.values(), int(most)):
            pixels = _on_white(draw())
            for format in QUALITIES:
                for row, ratio in _measure(format, pixels).items():
                    found.setdefault((row, kind), []).append(ratio)
        print(kind, flush=True)
    counts = [f"{kind} ({min(int(most), len(pictures))})" for kind, pictures in CORPUS.items()]
    columns = ("format", "over the defaults of", *counts)
    table = [
        (_title(row), row[2], *(_cell(found.get((row, kind), [])) for kind in CORPUS))
        for row in dict.fromkeys(row for row, _ in found)
    ]
    print_table(columns, table)
    write_table(page, MARKS, columns, table)
    return verdict(_bounds(found))


def _title(row: Row) -> str:
    format, effort, _ = row
    return FORMATS[format].title + ("" if effort is None else f", `effort` {effort}")


def _measure(format: str, pixels: Pixels) -> dict[Row, Ratio]:
    """Return our bytes and time over those of each other encoder that reaches our score."""
    original = Original.of(_rgb(pixels)) if format != "png" else None
    image = on_one_thread(photos.as_vips(pixels))
    others = _others(format, pixels)
    efforts, beside = EFFORTS.get(format, ((), None))
    rows: list[Row] = [(format, None, name) for name in others]
    rows += [(format, effort, beside) for effort in efforts if beside in others]
    ours = {effort: _timed(partial(_by_imgsvc, image, format, effort=effort), 0) for _, effort, _ in rows}
    scores = {effort: _score(original, data) for effort, (data, _) in ours.items()}
    theirs = {
        name: [_timed(encode, quality) for quality in QUALITIES[format]] for name, encode in others.items()
    }
    points = {
        name: sorted((_score(original, data), len(data)) for data, _ in timed)
        for name, timed in theirs.items()
    }
    ratios = {}
    for row in rows:
        _, effort, name = row
        data, seconds = ours[effort]
        size = _size_at(scores[effort], points[name])
        if size is not None:
            _, taken = theirs[name][len(theirs[name]) // 2]
            ratios[row] = Ratio(len(data) / size, seconds / taken)
    return ratios


def _others(format: str, pixels: Pixels) -> dict[str, Encode]:
    image = on_one_thread(photos.as_vips(pixels))

    def by_libvips(saver: str, quality: int, **options: object) -> bytes:
        given = {"Q": quality} if quality else {}
        return bytes(pyvips.Operation.call(f"{saver}save_buffer", image, keep="none", **given, **options))

    vips = partial(partial, by_libvips)
    pillow = partial(partial, _by_pillow, Image.fromarray(pixels))
    mozjpeg = {
        "interlace": True, "optimize_coding": True, "trellis_quant": True, "overshoot_deringing": True,
        "optimize_scans": True, "quant_table": 3,
    }  # fmt: skip
    others: dict[str, dict[str, Encode]] = {
        "jpg": {
            "libvips": vips("jpeg"), "sharp": vips("jpeg", optimize_coding=True),
            "mozjpeg": vips("jpeg", **mozjpeg),
        },
        "webp": {"libvips, sharp": vips("webp"), "cwebp -sharp_yuv": vips("webp", smart_subsample=True)},
        "avif": {"sharp": vips("heif", compression="av1", subsample_mode="off"), "Pillow": pillow("AVIF")},
        "jxl": {"our AVIF": partial(_by_imgsvc, image, "avif")},
        "png": {"libvips, sharp": vips("png"), "Pillow": pillow("PNG"), **_oxipng(pixels)},
    }  # fmt: skip
    return others[format]


def _by_imgsvc(image: pyvips.Image, format: str, quality: int, effort: int | None = None) -> bytes:
    data = save(image, SaveSettings(format=format, quality=quality or None, effort=effort)).data
    assert data is not None
    return data


def _by_pillow(image: Image.Image, kind: str, quality: int) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **({"quality": quality} if quality else {}))
    return file.getvalue()


def _oxipng(pixels: Pixels) -> dict[str, Encode]:
    try:
        import oxipng
    except ImportError:
        return {}
    plain = _by_pillow(Image.fromarray(pixels), "PNG", 0)
    return {"oxipng": lambda _: oxipng.optimize_from_memory(plain)}


def _score(original: Original | None, data: bytes) -> float:
    if original is None:
        return 100.0
    return float(original.score(_rgb(_decoded(data))))


def _decoded(data: bytes) -> Pixels:
    if data.startswith((b"\xff\x0a", b"\0\0\0\x0cJXL ")):
        return decode("jxl", data)[0]
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image)


def _size_at(score: float, points: Sequence[tuple[float, int]]) -> float | None:
    """Return the bytes at a score, between points whose logarithms are joined by lines."""
    if len(points) == 1:
        return points[0][1]
    if not points[0][0] - BEYOND <= score <= points[-1][0] + BEYOND:
        return None
    pairs = list(pairwise(points))
    (low, small), (high, large) = next((pair for pair in pairs if score <= pair[1][0]), pairs[-1])
    slope = np.log(large / small) / (high - low) if high > low else 0.0
    return float(small * np.exp(slope * (score - low)))


def _timed(encode: Encode, quality: int) -> tuple[bytes, float]:
    """Return a file, and the least CPU time of several rounds, which other programs disturb least."""
    data, taken = b"", []
    for _ in range(ROUNDS):
        started = time.process_time()
        data = encode(quality)
        taken.append(time.process_time() - started)
        if sum(taken) > ENOUGH:
            break
    return data, min(taken)


def _on_white(pixels: Pixels) -> Pixels:
    if pixels.ndim == 2 or pixels.shape[2] == 3:
        return np.ascontiguousarray(pixels)
    alpha = pixels[..., 3:] / 255
    return np.rint(pixels[..., :3] * alpha + 255 * (1 - alpha)).astype(np.uint8)


def _rgb(pixels: Pixels) -> Pixels:
    return pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=2)


def _cell(ratios: Sequence[Ratio]) -> str:
    if not ratios:
        return "–"
    size, seconds = (statistics.median(getattr(one, name) for one in ratios) for name in ("size", "seconds"))
    return f"{size:.2f}, {seconds:.1f}"


def _bounds(found: Mapping[tuple[Row, str], Sequence[Ratio]]) -> list[Bound]:
    def bytes_over(row: Row, kind: str, limit: float) -> Bound:
        value = statistics.median(ratio.size for ratio in found[row, kind])
        return Bound(f"{_title(row)} of {kind}: bytes over {row[2]}", value, limit)

    jpeg: list[Any] = [ratio.seconds for ratio in found[("jpg", None, "sharp"), "photographs"]]
    return [
        bytes_over(("jpg", None, "sharp"), "photographs", 0.94),
        Bound("JPEG of photographs: CPU over sharp's encoder", statistics.median(jpeg), 1.0),
        bytes_over(("avif", None, "sharp"), "photographs", 0.97),
        bytes_over(("avif", 5, "sharp"), "photographs", 0.97),
        bytes_over(("avif", None, "sharp"), "screenshots", 0.5),
        bytes_over(("webp", None, "libvips, sharp"), "photographs", 0.97),
    ]


if __name__ == "__main__":
    pyvips.cache_set_max(0)
    stay_on_one_cpu()
    sys.exit(main(*sys.argv[1:]))
