"""All facts of pixels together, beyond decoding and encoding, in a worker with one thread.

The results are the photographs of the tests within 800 x 600 pixels, and one of 12 megapixels, which has no
bound. The source is a JPEG of 12 megapixels, which is compared with decoding it at the same scale.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pyvips
from PIL import Image, ImageOps
from tests.support.photos import COLOR, photo

import imgsvc_core as imgsvc
from benchmarks.harness import Bound, compare, print_series, stay_on_one_cpu, timed, verdict
from benchmarks.pictures import picture
from imgsvc_core._runtime.worker_setup import prepare_worker
from imgsvc_core.formats.vips import from_array
from imgsvc_core.pixels.facts import measure
from imgsvc_core.spec import FACTS
from imgsvc_core.spec.color import WHITE

MOST_MS = 6.0
SIZE = (800, 600)
LARGE = (4000, 3000)


def main() -> int:
    """Print the times; 1 where the facts of a picture take more than 6 ms."""
    large = picture("12mp.jpg").read_bytes()
    series = compare(
        {
            **{name: timed(_measuring(name, SIZE)) for name in COLOR},
            "result of 12 MP": timed(_measuring("astronaut", LARGE)),
            "decode 12 MP": timed(lambda: pyvips.Image.jpegload_buffer(large, shrink=8).copy_memory()),
            "facts of 12 MP": timed(lambda: imgsvc.inspect(large, facts=list(FACTS))),
        },
        repeats=10,
    )
    print_series(series)
    cpu = {name: min(timing.cpu for timing in one.rounds) for name, one in series.items()}  # undisturbed
    slowest = max(cpu[name] for name in COLOR)
    source = cpu["facts of 12 MP"] - cpu["decode 12 MP"]
    return verdict(
        [
            Bound("facts of a result, slowest photograph", 1e3 * slowest, MOST_MS, unit=" ms"),
            Bound("facts of a source, beyond decoding", 1e3 * source, MOST_MS, unit=" ms"),
        ]
    )


def _measuring(name: str, size: tuple[int, int]) -> Callable[[], object]:
    image = from_array(np.asarray(ImageOps.contain(Image.fromarray(photo(name)), size)))
    return lambda: measure(image, FACTS, WHITE)


if __name__ == "__main__":
    prepare_worker(None)
    stay_on_one_cpu()
    sys.exit(main())
