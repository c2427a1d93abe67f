"""Looking for faces in a decoded photograph of 12 megapixels."""

from __future__ import annotations

import sys

import pyvips

from benchmarks.harness import Bound, compare, print_series, timed, verdict
from benchmarks.pictures import picture
from imgsvc_core.pixels.face_search import detect


def main() -> int:
    """Print the time; 1 where it takes more than 80 ms."""
    photo = pyvips.Image.new_from_file(str(picture("12mp.jpg"))).copy_memory()
    series = compare({"12mp.jpg": timed(lambda: detect(photo))}, rounds=15, repeats=1)
    print_series(series, {"12mp.jpg": f"{len(detect(photo))} faces"})
    return verdict([Bound("detection on 12 megapixels", series["12mp.jpg"].wall * 1e3, 80, unit=" ms")])


if __name__ == "__main__":
    sys.exit(main())
