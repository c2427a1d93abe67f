"""Batches over a folder of 2,000 photographs of mixed sizes, against other ways to do the same.

Every contender makes the same thumbnails from the same folder, on all cores unless it says otherwise. The
libraries decode at the size that is enough; ImageMagick does so only where a define tells it to, and runs
with and without it. What the cores of this machine are worth together is measured, too: no batch gains more.
Truth is the mean SSIMULACRA2 of results against Lanczos of their whole source, for one of each size.
``python -m benchmarks.batch docs/performance.md`` also writes the table there.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.harness import Bound, Series, Timing, options_of, print_table, verdict, write_table
from benchmarks.installed import node_packages
from benchmarks.pictures import FOLDER, picture
from benchmarks.truth import truth

_WIDTH = 320
_SPEC = {"resize": {"width": _WIDTH}, "output": {"format": "jpg", "quality": 80, "encoding": "baseline"}}
_VARIANTS = {
    "thumb": {**_SPEC, "resize": {"width": 160}},
    "card": _SPEC,
    "hero": {**_SPEC, "resize": {"width": 800}},
}
_SHARP = Path(__file__).with_name("sharp_batch.js")
_DECODE_SMALL = f"jpeg:size={_WIDTH * 2}x{_WIDTH * 2}"
_SIDES = (600, 900, 1200, 1600, 2000)
_VIPSTHUMBNAIL = "vipsthumbnail by xargs -P2"
_MANY_WORKERS = "imgsvc: 16 workers"
_TAR = "imgsvc: from a tar"
_FEW = 50
_MARKS = ("<!-- batch -->", "<!-- /batch -->")
_COLUMNS = ("by", "cores", "files a second", "CPU ms a file", "spread", "bytes a picture", "SSIMULACRA2")
_NOISE = random.Random(1).randbytes(10_000)


def main() -> int:
    options = options_of(__doc__, page=True, files=2000, rounds=3, tiny=100_000)
    source = photographs(options.files)
    contenders: dict[str, Callable[[Path], None]] = {
        "imgsvc: all cores": lambda target: imgsvc(source, target, {"": _SPEC}),
        "imgsvc: one core": lambda target: on_one_core(lambda: imgsvc(source, target, {"": _SPEC})),
        _MANY_WORKERS: lambda target: imgsvc(source, target, {"": _SPEC}, workers=16),
        _TAR: lambda target: imgsvc(f"tar://::{archive(source)}", target, {"": _SPEC}),
        "imgsvc: largest variant": lambda target: imgsvc(source, target, {"": _VARIANTS["hero"]}),
        "imgsvc: three variants": lambda target: imgsvc(source, target, _VARIANTS),
        "sharp, two at a time": lambda target: sharp(source, target),
        _VIPSTHUMBNAIL: lambda target: vipsthumbnail(source, target),
        "ImageMagick mogrify by xargs -P2": lambda target: mogrify(source, target),
        "mogrify, told to decode small": lambda target: mogrify(source, target, "-define", _DECODE_SMALL),
    }
    if shutil.which("vipsthumbnail") is None:
        print("vipsthumbnail is not installed: its row is left out.")
        del contenders[_VIPSTHUMBNAIL]
    dask = "imgsvc: dask, two workers"
    looks: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        rounds: dict[str, list[Timing]] = {name: [] for name in [*contenders, dask]}
        gains = []
        for _ in range(options.rounds):
            gains.append(gain_of_cores())
            for name, contender in contenders.items():
                timing, target = timed(contender, Path(folder), options.files)
                rounds[name].append(timing)
                looks[name] = looks.get(name) or look(source, target)
            with dask_cluster() as address:
                on_cluster = functools.partial(imgsvc, variants={"": _SPEC}, cluster=address)
                on_cluster(photographs(_FEW), Path(tempfile.mkdtemp(dir=folder)) / "out")  # as it is in use
                work = functools.partial(on_cluster, source)
                timing, target = timed(work, Path(folder), options.files)
                rounds[dask].append(timing)
                looks[dask] = looks.get(dask) or look(source, target)
    series = {name: Series(tuple(timings)) for name, timings in rounds.items()}
    rows = [
        (
            name,
            "1" if "one core" in name else "2",
            f"{1 / found.wall:.1f}",
            "–" if name == dask else f"{found.cpu * 1e3:.2f}",
            f"{found.spread:.0%}",
            f"{looks[name][0]:,.0f}",
            f"{looks[name][1]:.1f}",
        )
        for name, found in series.items()
    ]
    print_table(_COLUMNS, rows)
    write_table(options.page, _MARKS, _COLUMNS, rows)
    print(f"Processes that share nothing gain {statistics.median(gains):.2f} by the second core.\n")
    everywhere = series["imgsvc: all cores"]
    return verdict(
        [
            Bound(
                "two cores over one",
                everywhere.times_faster_than(series["imgsvc: one core"]),
                1.85,
                at_least=True,
            ),
            Bound(
                "16 workers over one a core",
                series[_MANY_WORKERS].times_faster_than(everywhere),
                0.95,
                at_least=True,
            ),
            Bound("tar over folder", series[_TAR].times_faster_than(everywhere), 0.8, at_least=True),
            Bound(
                "over sharp",
                everywhere.times_faster_than(series["sharp, two at a time"]),
                1.1,
                at_least=True,
            ),
            *(
                Bound("over vipsthumbnail", everywhere.times_faster_than(found), 1.3, at_least=True)
                for name, found in series.items()
                if name == _VIPSTHUMBNAIL
            ),
            Bound(
                "over mogrify",
                everywhere.times_faster_than(series["mogrify, told to decode small"]),
                3,
                at_least=True,
            ),
            Bound(
                "three variants over one",
                series["imgsvc: largest variant"].times_faster_than(series["imgsvc: three variants"]),
                1.6,
            ),
            Bound(
                "dask over local",
                series[dask].times_faster_than(everywhere),
                0.9,
                at_least=True,
            ),
            Bound(
                f"memory of the parent over {options.tiny:,} files",
                parent_memory(options.tiny),
                300,
                unit="MB",
            ),
        ]
    )


def timed(contender: Callable[[Path], None], folder: Path, files: int) -> tuple[Timing, Path]:
    """How long it takes, and where results are: they stay, as ext4 is slow where much was deleted."""
    target = Path(tempfile.mkdtemp(dir=folder)) / "out"
    os.sync()
    before, started = os.times(), time.perf_counter()
    contender(target)
    wall, after = time.perf_counter() - started, os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    return Timing(wall / files, cpu / files), target


def look(source: Path, target: Path) -> tuple[float, float]:
    """Mean bytes and truth of the results of one picture of each size."""
    pictures = sorted(source.iterdir())[: len(_SIDES)]
    results = [(path, result) for path in pictures for result in target.rglob(f"{path.stem}*.jpg")]
    assert results, target
    return (
        statistics.mean(result.stat().st_size for _, result in results),
        statistics.mean(truth(path, result.read_bytes()) for path, result in results),
    )


def archive(folder: Path) -> Path:
    """The files of a folder in a tar beside it."""
    file = folder.with_suffix(".tar")
    if not file.exists():
        with tarfile.open(file.with_suffix(".unfinished"), "w") as tar:
            tar.add(folder, ".")
        file.with_suffix(".unfinished").rename(file)
    return file


def imgsvc(
    source: Path | str, target: Path, variants: dict[str, dict[str, object]], **options: object
) -> None:
    import imgsvc_batch

    summary = imgsvc_batch.run(source, target, variants, **options)
    assert (summary.failed, summary.done) == (0, summary.total)


def on_one_core(work: Callable[[], None]) -> None:
    """Do it where this process, and those that it starts, have one core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        work()
    finally:
        os.sched_setaffinity(0, allowed)


@contextlib.contextmanager
def dask_cluster() -> Iterator[str]:
    """The address of a scheduler with two workers on this machine.

    They are there for as long as they are needed: idle, they take a tenth of a core from all others.
    """
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        yield cluster.scheduler_address


def sharp(source: Path, target: Path) -> None:
    environment = os.environ | {"NODE_PATH": str(node_packages())}
    subprocess.run(["node", _SHARP, source, target, str(_WIDTH)], env=environment, check=True)


def vipsthumbnail(source: Path, target: Path) -> None:
    target.mkdir()
    output = f"{target}/%s.jpg[Q=80,strip]"
    _each(source, ["vipsthumbnail", "--size", f"{_WIDTH}x", "--output", output], {"VIPS_CONCURRENCY": "1"})


def mogrify(source: Path, target: Path, *options: str) -> None:
    target.mkdir()
    encode = ["-path", str(target), "-strip", "-quality", "80", "-resize", f"{_WIDTH}x"]
    _each(source, ["mogrify", *options, *encode], {"MAGICK_THREAD_LIMIT": "1"})


def _each(source: Path, command: list[str], environment: dict[str, str]) -> None:
    """Two processes at a time, each with fifty files, so that starting them costs next to nothing."""
    files = "\n".join(str(path) for path in sorted(source.iterdir()))
    call = ["xargs", "-P2", "-n50", *command]
    subprocess.run(call, input=files, text=True, check=True, env=os.environ | environment)


def gain_of_cores(seconds: float = 2) -> float:
    """How much more two processes compute, each by itself, than one."""
    with multiprocessing.Pool(2) as pool:
        pool.map(_count_for, [0.1, 0.1], chunksize=1)
        alone = pool.apply(_count_for, [seconds])
        return sum(pool.map(_count_for, [seconds, seconds], chunksize=1)) / alone


def _count_for(seconds: float) -> int:
    end, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        count += len(zlib.compress(_NOISE))
    return count


def photographs(count: int) -> Path:
    """A folder of JPEG photographs, cut from a large one in five sizes."""
    folder = FOLDER / f"batch-{count}"
    if folder.exists():
        return folder
    import pyvips

    whole = pyvips.Image.new_from_file(str(picture("12mp.jpg"))).copy_memory()
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for number in range(count):
        width = _SIDES[number % len(_SIDES)]
        height = width * 3 // 4
        left, top = number * 37 % (whole.width - width), number * 53 % (whole.height - height)
        whole.crop(left, top, width, height).jpegsave(str(unfinished / f"photo{number:05}.jpg"), Q=90)
    unfinished.rename(folder)
    return folder


def parent_memory(count: int) -> float:
    """Peak megabytes of a parent that works through tiny files."""
    code = (
        "import resource, sys\n"
        "import imgsvc_batch\n"
        "if __name__ == '__main__':\n"
        "    summary = imgsvc_batch.run(sys.argv[1], sys.argv[2], {'': {'output': {'format': 'png'}}})\n"
        "    assert summary.done == int(sys.argv[3]), summary\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "in", Path(folder) / "measure.py"
        program.write_text(code)
        tiny = _tiny_png()
        for number in range(count):
            path = source / f"{number // 1000:04}" / f"{number:07}.png"
            if number % 1000 == 0:
                path.parent.mkdir(parents=True)
            path.write_bytes(tiny)
        command = [sys.executable, str(program), str(source), str(Path(folder) / "out"), str(count)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _tiny_png() -> bytes:
    import pyvips

    data: bytes = pyvips.Image.black(2, 2).copy(interpretation="b-w").pngsave_buffer()
    return data


if __name__ == "__main__":
    sys.exit(main())
