"""Defaults of all lossy and indexed formats: size, quality and time, beside sharp, libvips and Pillow.

``python -m benchmarks.encoding docs/quality.md`` also writes the table there. Quality is SSIMULACRA2,
see `benchmarks.truth`. Times are of the CPU, with one thread, and include decoding a PNG that is hardly
compressed.
"""

from __future__ import annotations

import io
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import attrs
import numpy as np
import pillow_heif
import pyvips
from PIL import Image, ImageSequence
from tests.support import photos
from tests.support.decoded import decode
from tests.support.photos import Pixels

from benchmarks.harness import (
    Bound,
    Timing,
    compare,
    print_table,
    stay_on_one_cpu,
    timed,
    verdict,
    write_table,
)
from benchmarks.kinds import KINDS, poster
from benchmarks.sharp import Sharp, sharp_process
from benchmarks.truth import ssimulacra2
from imgsvc_core import process
from imgsvc_core.formats.table import FORMATS

LONGEST_SIDE = 800
ROUNDS = 3
FORMAT_NAMES = ("jpg", "webp", "avif", "heic", "png", "gif")
ANIMATED_NAMES = ("webp", "avif", "gif")
FRAMES = 12
CONTENDERS = ("imgsvc", "sharp", "libvips", "Pillow")
SHARP_NAMES = {"jpg": "jpeg"}
PILLOW_NAMES = {"jpg": "JPEG", "heic": "HEIF"}
MARKS = ("<!-- encodings -->", "<!-- end of encodings -->")

Encode = Callable[[], bytes]


@attrs.frozen
class Found:
    """What one contender made of one picture, or of several."""

    size: float
    score: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.size / 1000:.0f} kB, {self.score:.0f}, {1000 * self.seconds:.0f} ms"


@attrs.frozen
class Picture:
    """A picture in a file, with a page height if it is a strip of frames."""

    path: Path
    pixels: Pixels
    page_height: int | None = None


def main(page: str | None = None) -> int:
    """Print what each contender makes of each kind of picture; 1 if a bound is missed.

    If a page is given, the table is written into it.
    """
    pillow_heif.register_heif_opener()
    rows: dict[tuple[str, str], dict[str, Found]] = {}
    with tempfile.TemporaryDirectory() as folder, sharp_process() as sharp:
        for kind, pictures in _pictures(Path(folder)).items():
            for format in ANIMATED_NAMES if kind == "animations" else FORMAT_NAMES:
                results = [_measure(picture, format, sharp) for picture in pictures]
                rows[format, kind] = _summed(results)
                print(format, kind, {name: str(one) for name, one in rows[format, kind].items()}, flush=True)
    table = [
        (FORMATS[format].title, kind, *(str(rows[format, kind].get(name, "–")) for name in CONTENDERS))
        for format in FORMAT_NAMES
        for kind in (*KINDS, "animations")
        if (format, kind) in rows
    ]
    columns = ("format", "pictures", *CONTENDERS)
    print_table(columns, table)
    write_table(page, MARKS, columns, table)
    return verdict(_bounds(rows))


def _pictures(folder: Path) -> Mapping[str, Sequence[Picture]]:
    stills = {
        kind: [_still(folder / f"{name}.png", draw()) for name, draw in pictures.items()]
        for kind, pictures in KINDS.items()
    }
    ball = [Image.fromarray(poster(320, 320)) for _ in range(FRAMES)]
    for index, frame in enumerate(ball):
        frame.paste((255, 255, 255), (20 + 22 * index, 150, 60 + 22 * index, 190))
    moving = photos.moving_frames(FRAMES, 240, 180)
    animations = [
        _animation(folder / "moving.webp", moving),
        _animation(folder / "drawn.webp", [np.asarray(frame) for frame in ball]),
    ]
    return {**stills, "animations": animations}


def _still(path: Path, pixels: Pixels) -> Picture:
    image = photos.as_vips(pixels)
    if max(image.width, image.height) > LONGEST_SIDE and image.width != 1000:
        image = image.thumbnail_image(LONGEST_SIDE)
    image.pngsave(str(path), compression=1)
    return Picture(path, photos.as_pixels(image))


def _animation(path: Path, frames: Sequence[Pixels]) -> Picture:
    """Frames in a lossless WebP, so that no contender has a palette to begin with."""
    strip = photos.as_vips(np.concatenate(frames)).copy()
    strip.set_type(pyvips.GValue.gint_type, "page-height", frames[0].shape[0])
    strip.set_type(pyvips.GValue.array_int_type, "delay", [80] * len(frames))
    strip.webpsave(str(path), lossless=True, effort=0)
    return Picture(path, photos.as_pixels(strip), frames[0].shape[0])


def _measure(picture: Picture, format: str, sharp: Sharp) -> dict[str, Found]:
    """What each contender that can write the format makes of a picture."""
    source = picture.path.read_bytes()
    kept = picture.path.with_suffix(".sharp")
    encoders: dict[str, Encode] = {
        "imgsvc": partial(_by_imgsvc, source, format),
        "libvips": partial(_by_libvips, source, format),
        "Pillow": partial(_by_pillow, source, format),
    }
    contenders = {name: timed(encode) for name, encode in encoders.items()}
    contenders["sharp"] = partial(_by_sharp, sharp, picture, format, kept)
    if format == "heic" or (format == "avif" and picture.page_height):  # neither has an encoder for it
        del contenders["libvips"], contenders["sharp"]
    series = compare(contenders, rounds=ROUNDS, repeats=1)
    found = {}
    for name, one in series.items():
        data = kept.read_bytes() if name == "sharp" else encoders[name]()
        found[name] = Found(len(data), _score(format, data, picture), one.cpu)
    return found


def _by_imgsvc(source: bytes, format: str) -> bytes:
    return process(source, {"output": {"format": format}}, threads=1).data


def _by_libvips(source: bytes, format: str) -> bytes:
    options = "n=-1" if source[:4] == b"RIFF" else ""
    image = pyvips.Image.new_from_buffer(source, options)
    data: bytes = image.write_to_buffer(f".{format}")
    return data


def _by_pillow(source: bytes, format: str) -> bytes:
    image = Image.open(io.BytesIO(source))
    frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(image)]
    options = {"save_all": True, "append_images": frames[1:], "duration": 80} if len(frames) > 1 else {}
    encoded = io.BytesIO()
    frames[0].save(encoded, PILLOW_NAMES.get(format, format.upper()), **options)
    return encoded.getvalue()


def _by_sharp(sharp: Sharp, picture: Picture, format: str, kept: Path, repeats: int) -> Timing:
    height, width = picture.pixels.shape[:2]
    return sharp.timing(
        repeats,
        input=str(picture.path),
        buffered=True,
        options={"animated": picture.page_height is not None},
        resize={"width": width, "height": picture.page_height or height},
        format=SHARP_NAMES.get(format, format),
        save={},
        keep=str(kept),
    )


def _score(format: str, data: bytes, picture: Picture) -> float:
    """SSIMULACRA2 of a result; of an animation the mean of some frames, as encoders may drop equal ones."""
    shown = decode(format, data)[0][..., :3]
    height = picture.page_height
    if height is None:
        return ssimulacra2(picture.pixels, shown)
    originals = picture.pixels.reshape(-1, height, *picture.pixels.shape[1:])
    assert len(shown) == len(originals)
    return statistics.mean(ssimulacra2(originals[i], shown[i]) for i in (0, FRAMES // 2, FRAMES - 1))


def _summed(results: Sequence[Mapping[str, Found]]) -> dict[str, Found]:
    """The sizes and times of several pictures together, and their mean quality."""
    return {
        name: Found(
            sum(result[name].size for result in results),
            statistics.mean(result[name].score for result in results),
            sum(result[name].seconds for result in results),
        )
        for name in results[0]
    }


def _bounds(rows: Mapping[tuple[str, str], Mapping[str, Found]]) -> list[Bound]:
    def size_over(format: str, kind: str, other: str, limit: float) -> Bound:
        title = f"{FORMATS[format].title} of {kind}: size over {other}'s"
        ours, theirs = rows[format, kind]["imgsvc"], rows[format, kind][other]
        return Bound(title, ours.size / theirs.size, limit)

    def quality_less(format: str, kind: str, other: str) -> Bound:
        title = f"{FORMATS[format].title} of {kind}: quality less {other}'s"
        ours, theirs = rows[format, kind]["imgsvc"], rows[format, kind][other]
        return Bound(title, ours.score - theirs.score, -1, at_least=True)

    heic, jpeg = (rows[format, "photographs"]["imgsvc"] for format in ("heic", "jpg"))
    return [
        *(size_over("png", kind, other, 1.02) for kind in KINDS for other in ("sharp", "libvips")),
        size_over("png", "screenshots", "sharp", 0.95),
        *(size_over("gif", kind, "sharp", 1.02) for kind in KINDS),
        size_over("webp", "animations", "sharp", 1.05),
        *(quality_less(format, kind, "sharp") for format in ("avif", "gif") for kind in KINDS),
        quality_less("webp", "animations", "sharp"),
        Bound("HEIC of photographs: size over our JPEG's", heic.size / jpeg.size, 0.85),
        Bound("HEIC of photographs: quality less our JPEG's", heic.score - jpeg.score, -2, at_least=True),
    ]


if __name__ == "__main__":
    pyvips.cache_set_max(0)
    stay_on_one_cpu()
    sys.exit(main(*sys.argv[1:]))
