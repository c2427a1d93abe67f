"""What it costs to begin: importing the library, the first result of a process, a command, ten files.

CPU is told with the start and the end of each process. vipsthumbnail and a script for pyvips make the same
thumbnail in the same rounds.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import (
    Bound,
    Series,
    Timing,
    compare,
    print_series,
    print_table,
    run_python,
    run_timed,
    verdict,
)
from benchmarks.pictures import picture

HEAVY = (
    *("numpy", "PIL", "cv2", "pillow_heif", "psd_tools", "imagecodecs", "scipy"),
    *("aiohttp", "cryptography", "s3fs", "gcsfs", "adlfs", "ossfs", "distributed", "botocore"),
    *("rich", "click", "jsonschema"),
)
REPEATS = 5
FILES = 10

LOADED = """
import json, sys
import imgsvc_core
imgsvc_core.process(sys.argv[1], {"resize": {"width": 200}})
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

BY_PYVIPS = "import sys, attrs, pyvips; pyvips.Image.thumbnail(sys.argv[1], 200).write_to_file(sys.argv[2])"
BY_LIBRARY = (
    "import sys, imgsvc_core; imgsvc_core.process(sys.argv[1], {'resize': {'width': 200}}, sys.argv[2])"
)


def main() -> int:
    python = sys.executable
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        photo, result = folder / "photo.jpg", str(folder / "result.jpg")
        shutil.copy(picture("vga.jpg"), photo)
        several, target = folder / "several", folder / "target"
        several.mkdir()
        for number in range(FILES):
            shutil.copy(photo, several / f"{number}.jpg")
        imgsvc = str(Path(sysconfig.get_path("scripts")) / "imgsvc")
        contenders = {
            "python": run_timed([python, "-c", "pass"]),
            "import attrs, pyvips": run_timed([python, "-c", "import attrs, pyvips"]),
            "import imgsvc_core": run_timed([python, "-c", "import imgsvc_core"]),
            "first thumbnail by pyvips": run_timed([python, "-c", BY_PYVIPS, str(photo), result]),
            "first thumbnail by imgsvc_core": run_timed([python, "-c", BY_LIBRARY, str(photo), result]),
            "imgsvc process": run_timed([imgsvc, "process", str(photo), "-o", result, "--resize", "200x"]),
            f"imgsvc batch of {FILES}": _into_new(
                target, [imgsvc, "batch", str(several), str(target), "--resize", "200x", "--quiet"]
            ),
            "imgsvc --help": run_timed([imgsvc, "--help"]),
        }
        if (vipsthumbnail := shutil.which("vipsthumbnail")) is not None:
            contenders["vipsthumbnail"] = run_timed([vipsthumbnail, str(photo), "-s", "200", "-o", result])
        series = compare(contenders, rounds=9, repeats=1)
        heavy = {module.partition(".")[0] for module in run_python(LOADED, photo)["modules"]} & set(HEAVY)
    print_series(series)
    print("Heavy modules that the first thumbnail loads:", ", ".join(sorted(heavy)) or "none", end="\n\n")
    warm, large = picture("2mp.jpg"), picture("100mp.jpg")
    answers = [run_python(INSPECT, warm, large) for _ in range(REPEATS)]
    wall = statistics.median(answer["wall"] for answer in answers) * 1e3
    memory = statistics.median(answer["memory"] for answer in answers)
    print_table(("inspect", "wall ms", "MB"), [("100mp.jpg", f"{wall:.2f}", f"{memory:.1f}")])
    return verdict(
        [
            Bound(
                "first thumbnail over pyvips with attrs, CPU",
                _over(series["first thumbnail by imgsvc_core"], series["first thumbnail by pyvips"]),
                60,
                unit=" ms",
            ),
            Bound("heavy modules loaded by the first thumbnail", len(heavy), 0),
            Bound("imgsvc process of a thumbnail, CPU", series["imgsvc process"].cpu * 1e3, 120, unit=" ms"),
            Bound(
                f"imgsvc batch of {FILES}, CPU", series[f"imgsvc batch of {FILES}"].cpu * 1e3, 300, unit=" ms"
            ),
            Bound("imgsvc --help", series["imgsvc --help"].wall * 1e3, 300, unit=" ms"),
            Bound("inspect of a 100 megapixel JPEG", wall, 5, unit=" ms"),
            Bound("memory that inspecting adds", memory, 20, unit=" MB"),
        ]
    )


def _into_new(target: Path, command: list[str]) -> Callable[[int], Timing]:
    """A contender whose target is removed before each start."""
    start = run_timed(command)

    def run(repeats: int) -> Timing:
        assert repeats == 1
        shutil.rmtree(target, ignore_errors=True)
        return start(1)

    return run


def _over(one: Series, other: Series) -> float:
    """Return how much CPU one takes more than the other, in milliseconds."""
    pairs = zip(one.rounds, other.rounds, strict=True)
    return statistics.median(ours.cpu - theirs.cpu for ours, theirs in pairs) * 1e3


if __name__ == "__main__":
    sys.exit(main())
