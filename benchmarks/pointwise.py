"""What folding saves: pointwise adjustments together against one of them, and against one after the other.

``python -m benchmarks.pointwise`` works on decoded photographs in memory with one libvips thread, without
reading or writing files, so that nothing dilutes the ratios.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import pyvips
from tests.support.colors import color_steps

from benchmarks.harness import Bound, compare, print_series, timed, verdict
from benchmarks.pictures import on_one_thread, picture
from imgsvc_core.pixels.pointwise import apply_blocks
from imgsvc_core.plan.color.steps import ColorStep
from imgsvc_core.plan.folding import fold
from imgsvc_core.spec import Adjust

CURVES = {
    "temperature": 20,
    "tint": 10,
    "exposure": 10,
    "shadow": 20,
    "highlight": -20,
    "brightness": 5,
    "contrast": 10,
    "gamma": 10,
}
TWELVE = {**CURVES, "vibrance": 30, "saturation": 20, "hue": 20, "invert": True}


def main() -> int:
    """Print times and ratios for a large and a small photograph; 1 where a bound is missed."""
    bounds = [bound for name in ("12mp.jpg", "2mp.jpg") for bound in _measure(name)]
    return verdict(bounds)


def _measure(name: str) -> list[Bound]:
    photo = on_one_thread(pyvips.Image.new_from_file(str(picture(name))).copy_memory())
    contenders: Mapping[str, Callable[[], object]] = {
        "nothing": lambda: photo.copy().write_to_memory(),
        "contrast": _folded(photo, contrast=10),
        "eight curves": _folded(photo, **CURVES),
        "saturation": _folded(photo, saturation=20),
        "vibrance": _folded(photo, vibrance=30),
        "all twelve": _folded(photo, **TWELVE),
        "all twelve, one by one": _one_by_one(photo, **TWELVE),
    }
    print(name)
    # Tables take so little time that they need many repeats.
    tables = {what: timed(run) for what, run in contenders.items() if what in ("contrast", "eight curves")}
    others = {what: timed(run) for what, run in contenders.items() if what not in tables}
    series = compare(others, rounds=9, repeats=3) | compare(tables, rounds=25, repeats=10)
    print_series(series)

    def ratio(what: str, reference: str) -> float:
        return series[reference].times_faster_than(series[what])

    return [
        Bound(f"{name}: eight curves / contrast", ratio("eight curves", "contrast"), 1.1),
        Bound(f"{name}: twelve / vibrance", ratio("all twelve", "vibrance"), 1.25),
        Bound(f"{name}: twelve / one by one", ratio("all twelve", "all twelve, one by one"), 0.7),
    ]


def _folded(photo: pyvips.Image, **adjust: float) -> Callable[[], object]:
    steps = _steps(**adjust)
    return lambda: apply_blocks(photo, fold(steps)).write_to_memory()


def _one_by_one(photo: pyvips.Image, **adjust: float) -> Callable[[], object]:
    """Every step by itself with an 8-bit result, in one libvips pipeline."""
    steps = _steps(**adjust)

    def run() -> object:
        image = photo
        for step in steps:
            image = apply_blocks(image, fold([step]))
        return image.write_to_memory()

    return run


def _steps(**adjust: float) -> tuple[ColorStep, ...]:
    return tuple(color_steps(Adjust(**adjust)))  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main())
