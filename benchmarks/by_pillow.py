"""Runs Pillow, or Pillow-SIMD, for `benchmarks.suites`: see `benchmarks.harness.Program`.

It needs nothing but Pillow. A job has ``input``, a path, ``buffered`` to read it only once, ``border``, the
pixels to cut off all sides, ``turn`` by 90 degrees, ``size``, ``kernel``, ``blur`` as a standard deviation,
``convolve`` with weights and a ``scale``, ``format`` and its ``save`` options, ``output``, a path, or nothing
for a buffer, and ``keep``, a path to write the buffer to.
"""

from __future__ import annotations

import functools
import io
import json
import sys
import time
from pathlib import Path
from typing import Any

from PIL import Image, ImageFilter

Image.MAX_IMAGE_PIXELS = None


@functools.cache
def _content(path: str) -> bytes:
    return Path(path).read_bytes()


def _work(job: dict[str, Any]) -> bytes:
    image: Image.Image = Image.open(io.BytesIO(_content(job["input"])) if job["buffered"] else job["input"])
    if border := job["border"]:
        image = image.crop((border, border, image.width - border, image.height - border))
    if job["turn"]:
        image = image.transpose(Image.Transpose.ROTATE_270)
    if job["size"]:
        image = image.resize(tuple(job["size"]), Image.Resampling[job["kernel"]])
    if job["blur"]:
        image = image.filter(ImageFilter.GaussianBlur(job["blur"]))
    if job["convolve"]:
        image = image.filter(ImageFilter.Kernel((3, 3), job["convolve"], job["scale"]))
    target = job["output"] or io.BytesIO()
    image.save(target, job["format"], **job["save"])
    return target.getvalue() if isinstance(target, io.BytesIO) else b""


def run() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(job["repeats"]):
            data = _work(job)
        taken = time.perf_counter() - wall, time.process_time() - cpu
        if job["keep"]:
            Path(job["keep"]).write_bytes(data)
        print(json.dumps({"wall": taken[0] / job["repeats"], "cpu": taken[1] / job["repeats"]}), flush=True)


if __name__ == "__main__":
    run()
