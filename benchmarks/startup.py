"""What it costs to begin: importing the library, `imgsvc --help`, inspecting a header."""

from __future__ import annotations

import statistics
import sys
import sysconfig
from pathlib import Path

from benchmarks.harness import Bound, compare, print_series, print_table, run_python, run_timed, verdict
from benchmarks.pictures import picture

HEAVY = (
    *("numpy", "PIL", "cv2", "pillow_heif", "psd_tools", "imagecodecs", "scipy"),
    *("aiohttp", "cryptography", "s3fs", "gcsfs", "adlfs", "ossfs", "distributed", "botocore"),
    *("rich", "click", "jsonschema"),
)
REPEATS = 5

LOADED = """
import json, sys
import imgsvc_core
print(json.dumps({"modules": sorted(sys.modules)}))
"""

INSPECT = """
import json, sys, time
import imgsvc_core
memory = peak_memory()
imgsvc_core.inspect(sys.argv[1])
started = time.perf_counter()
imgsvc_core.inspect(sys.argv[2])
print(json.dumps({"wall": time.perf_counter() - started, "memory": peak_memory() - memory}))
"""


def main() -> int:
    python = sys.executable
    series = compare(
        {
            "python": run_timed([python, "-c", "pass"]),
            "import pyvips": run_timed([python, "-c", "import pyvips"]),
            "import imgsvc_core": run_timed([python, "-c", "import imgsvc_core"]),
            "imgsvc --help": run_timed([str(Path(sysconfig.get_path("scripts")) / "imgsvc"), "--help"]),
        },
        rounds=9,
        repeats=1,
    )
    print_series(series)
    heavy = sorted({name.partition(".")[0] for name in run_python(LOADED)["modules"]} & set(HEAVY))
    print("Heavy modules that the import loads:", ", ".join(heavy) or "none", end="\n\n")
    warm, large = picture("2mp.jpg"), picture("100mp.jpg")
    answers = [run_python(INSPECT, warm, large) for _ in range(REPEATS)]
    wall = statistics.median(answer["wall"] for answer in answers) * 1e3
    memory = statistics.median(answer["memory"] for answer in answers)
    print_table(("inspect", "wall ms", "MB"), [("100mp.jpg", f"{wall:.2f}", f"{memory:.1f}")])
    over_pyvips = (series["import imgsvc_core"].wall - series["import pyvips"].wall) * 1e3
    return verdict(
        [
            Bound("import imgsvc_core over import pyvips", over_pyvips, 150, unit=" ms"),
            Bound("heavy modules loaded by the import", len(heavy), 0),
            Bound("imgsvc --help", series["imgsvc --help"].wall * 1e3, 300, unit=" ms"),
            Bound("inspect of a 100 megapixel JPEG", wall, 5, unit=" ms"),
            Bound("memory that inspecting adds", memory, 20, unit=" MB"),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
