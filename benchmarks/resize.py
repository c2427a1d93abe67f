"""The main path: a 2725 x 2225 JPEG to 720 x 588 at quality 80, baseline, 4:2:0, buffer to buffer.

Everything on one CPU. sharp runs twice: as it comes, with optimized Huffman tables, and without them, as
this project writes baseline files. Nearness to the picture is the perceptual distance to the full decode
reduced by Lanczos, before any JPEG of the result.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyvips
from PIL import Image
from tests.support.perceptual import distance

from benchmarks.harness import (
    Bound,
    Contender,
    Timing,
    compare,
    print_series,
    stay_on_one_cpu,
    timed,
    verdict,
)
from benchmarks.pictures import on_one_thread, picture
from benchmarks.sharp import Sharp, sharp_process
from imgsvc_core import parse, process

WIDTH, HEIGHT, QUALITY = 720, 588, 80
SHRINK = 2
REQUEST = parse(
    {
        "resize": {"width": WIDTH, "height": HEIGHT},
        "output": {"format": "jpg", "quality": QUALITY, "encoding": "baseline"},
    }
)


def main() -> int:
    path = picture("6mp.jpg")
    source = path.read_bytes()
    ours: dict[str, Callable[[], bytes]] = {
        "imgsvc": partial(imgsvc, source),
        "libvips: decode and encode alone": decode_and_encode(source),
        "libvips: shortest chain": partial(shortest_chain, source),
        "pyvips: thumbnail_buffer": partial(thumbnail, source),
        "Pillow: draft and resize": partial(pillow, source),
    }
    kept = path.with_name("sharp-result.jpg")
    with sharp_process() as sharp:
        contenders: dict[str, Contender] = {name: timed(operation) for name, operation in ours.items()}
        contenders["sharp"] = partial(sharp_resize, sharp, path, {})
        contenders["sharp: no optimized coding"] = partial(
            sharp_resize, sharp, path, {"optimiseCoding": False}
        )
        series = compare(contenders, rounds=25)
        results = {name: operation() for name, operation in ours.items()}
        sharp_resize(sharp, path, {}, 1, keep=kept)
        results["sharp"] = kept.read_bytes()
    reference = full_decode(source)
    nearness = {
        name: distance(pyvips.Image.new_from_buffer(data, ""), reference) for name, data in results.items()
    }
    print_series(
        series,
        {name: f"{len(data) / 1e3:5.1f} kB  distance {nearness[name]:.4f}" for name, data in results.items()},
    )
    found = series["imgsvc"]
    return verdict(
        [
            Bound(
                "operations per second over sharp's",
                found.times_faster_than(series["sharp"]),
                1.1,
                at_least=True,
            ),
            Bound(
                "time over decoding and encoding alone",
                1 / found.times_faster_than(series["libvips: decode and encode alone"]),
                1.2,
            ),
            Bound("distance over sharp's", nearness["imgsvc"] / nearness["sharp"], 1.0),
        ]
    )


def imgsvc(source: bytes) -> bytes:
    return process(source, REQUEST, threads=1).data


def shortest_chain(source: bytes) -> bytes:
    """Decode at half size, reduce by what is left, encode.

    The factors are of the true size: the decoder rounds the half size down, and factors of the rounded size
    would stretch the picture. Two lobes of Lanczos are enough for what is left after decoding at half size:
    three take 4 % more of the time of the whole and come no nearer that anyone could see.
    """
    header = pyvips.Image.jpegload_buffer(source)
    across, down = header.width / SHRINK / WIDTH, header.height / SHRINK / HEIGHT
    image = on_one_thread(pyvips.Image.jpegload_buffer(source, shrink=SHRINK, access="sequential"))
    return encoded(image.reduce(across, down, kernel="lanczos2"))


def decode_and_encode(source: bytes) -> Callable[[], bytes]:
    """The part of the work that no chain of libvips goes without: decode at half size, encode the result."""
    small = on_one_thread(full_decode(source).copy_memory())

    def run() -> bytes:
        image = pyvips.Image.jpegload_buffer(source, shrink=SHRINK, access="sequential")
        on_one_thread(image).write_to_memory()
        return encoded(small)

    return run


def thumbnail(source: bytes) -> bytes:
    return encoded(on_one_thread(pyvips.Image.thumbnail_buffer(source, WIDTH, height=HEIGHT, size="force")))


def pillow(source: bytes) -> bytes:
    image = Image.open(io.BytesIO(source))
    image.draft("RGB", (WIDTH, HEIGHT))
    target = io.BytesIO()
    image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).save(target, "JPEG", quality=QUALITY)
    return target.getvalue()


def full_decode(source: bytes) -> pyvips.Image:
    """The picture as it should be: all pixels decoded, then reduced by Lanczos."""
    image = pyvips.Image.jpegload_buffer(source)
    return image.reduce(image.width / WIDTH, image.height / HEIGHT, kernel="lanczos3")


def sharp_resize(
    sharp: Sharp, path: Path, save: dict[str, bool], repeats: int, *, keep: Path | None = None
) -> Timing:
    return sharp.timing(
        repeats,
        input=str(path),
        buffered=True,
        resize={"width": WIDTH, "height": HEIGHT},
        format="jpeg",
        save={"quality": QUALITY, **save},
        keep=str(keep) if keep else None,
    )


def encoded(image: pyvips.Image) -> bytes:
    data: bytes = image.jpegsave_buffer(Q=QUALITY, keep="none")
    return data


if __name__ == "__main__":
    pyvips.cache_set_max(0)
    stay_on_one_cpu()
    sys.exit(main())
