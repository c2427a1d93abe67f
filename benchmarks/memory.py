"""Peak memory: 100 megapixels to 800 pixels, from file to file, each in a fresh process."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import Bound, print_table, run_python, verdict
from benchmarks.pictures import picture
from benchmarks.sharp import sharp_process

WIDTH, HEIGHT = 800, 600
REPEATS = 3

OURS = """
import json, sys, time
from imgsvc_core import Limits, process
source, target = sys.argv[1:]
output = {"format": "jpg", "quality": 80, "encoding": "baseline"}
request = {"resize": {"width": 800, "height": 600}, "output": output}
started = time.perf_counter()
process(source, request, target, limits=Limits.none())
print(json.dumps({"wall": time.perf_counter() - started, "peak_memory": peak_memory()}))
"""


def main() -> int:
    rows, bounds = [], []
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "out.jpg"
        for name in ("100mp.jpg", "100mp.png"):
            source = picture(name)
            ours, theirs = [], []
            for _ in range(REPEATS):
                ours.append(run_python(OURS, source, target))
                theirs.append(_sharp(source, target))
            for who, answers in (("imgsvc", ours), ("sharp", theirs)):
                peak = _median(answers, "peak_memory")
                rows.append((f"{who}, {name}", f"{peak:.0f}", f"{_median(answers, 'wall'):.2f}"))
            ratio = _median(ours, "peak_memory") / _median(theirs, "peak_memory")
            bounds.append(Bound(f"peak memory over sharp's, {name}", ratio, 1.0))
    print_table(("", "peak MB", "wall s"), rows)
    return verdict(bounds)


def _sharp(source: Path, target: Path) -> dict[str, float]:
    with sharp_process() as sharp:
        return sharp.run(
            input=str(source),
            output=str(target),
            resize={"width": WIDTH, "height": HEIGHT},
            format="jpeg",
            save={"quality": 80},
        )


def _median(answers: list[dict[str, float]], key: str) -> float:
    return statistics.median(answer[key] for answer in answers)


if __name__ == "__main__":
    sys.exit(main())
