"""What a text costs with one thread, three layers beside sharp, and a card beside Satori with resvg.

Everything on one CPU, buffer to buffer. Times are those of the CPU, the least of the rounds. Beside them
stands the truth: SSIMULACRA2 of the other's result against ours, which has the same pictures at the same
places. ``python -m benchmarks.layers docs/performance.md`` also writes the table there.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

os.environ["VIPS_CONCURRENCY"] = "1"  # before libvips starts

import attrs
import numpy as np
import pyvips

from benchmarks.harness import (
    Bound,
    Series,
    Timing,
    compare,
    print_table,
    run_python,
    run_timed,
    running,
    stay_on_one_cpu,
    timed,
    verdict,
    write_table,
)
from benchmarks.installed import node_packages
from benchmarks.pictures import picture
from benchmarks.sharp import sharp_process
from benchmarks.truth import on_white, ssimulacra2
from imgsvc_core import parse, process
from imgsvc_core._runtime.worker_setup import prepare_worker
from imgsvc_core.pixels.layers.text import drawn_texts

_MOST_MS, _MOST_FIRST_MS = 4.0, 15.0
_TIMES_SATORI = 3.0
_ROUNDS = 15
_WITHOUT, _WITH = "without text", "with a text of 40 letters"
_WORDS = "Autumn in the mountains, and quick foxes"
_TEXT = {
    "text": {"text": _WORDS, "size": 32, "color": "ffffff"},
    "gravity": "bottom-left", "padding": 20,
}  # fmt: skip
_MEDIUM, _CARD = (720, 588), (1200, 630)
_TITLE, _SUBTITLE = "Autumn in the mountains", "What quick foxes do when the leaves fall"
_LAYERS = ((0, 0), (960, 40), (60, 400))  # left and top
_MARKS = ("<!-- layers -->", "<!-- /layers -->")
_COLUMNS = ("job", "by", "CPU ms", "bytes", "SSIMULACRA2 to imgsvc", "speed of imgsvc over it")

_WORKER = """
from imgsvc_core._runtime.worker_setup import preload
from imgsvc_core.fonts import name_fonts
preload()
name_fonts()
"""
_FIRST = """
import json, sys, time
import imgsvc_core as imgsvc
source, words = open(sys.argv[1], "rb").read(), {"layers": [json.loads(sys.argv[2])]}
plain = {"output": {"format": "jpg"}}
took = []
for request in (plain, plain, plain | words):
    started = time.process_time()
    imgsvc.process(source, request, threads=1).data
    took.append(time.process_time() - started)
print(json.dumps({"more": took[2] - took[1]}))
"""

Rows = list[tuple[str, ...]]


@attrs.frozen
class Files:
    """The pictures that are laid: paths of a JPEG of the card's size, and of three PNGs with alpha."""

    ground: Path
    layers: tuple[Path, ...]

    @classmethod
    def made(cls, folder: Path) -> Files:
        """Make them."""
        ground = folder / "ground.jpg"
        width, height = _CARD
        photo = pyvips.Image.thumbnail(str(picture("2mp.jpg")), width, height=height, crop="centre")
        photo.jpegsave(str(ground), Q=90)
        fade = np.zeros((height, width, 4), np.uint8)
        fade[..., 3] = np.linspace(0, 200, height).astype(np.uint8)[:, None]
        box = np.full((120, 700, 4), (255, 51, 0, 160), np.uint8)
        paths = (folder / "fade.png", picture("mark.png"), folder / "box.png")
        for path, pixels in ((paths[0], fade), (paths[2], box)):
            pyvips.Image.new_from_array(pixels, interpretation="srgb").pngsave(str(path))
        return cls(ground, paths)


def main(arguments: list[str]) -> int:
    """Print the times and ratios; 1 where a bound is missed."""
    with tempfile.TemporaryDirectory() as name:
        files = Files.made(Path(name))
        found = [_text(), _beside_sharp(files), _beside_satori(files)]
    rows = [row for some, _ in found for row in some]
    print_table(_COLUMNS, rows)
    for page in arguments:
        write_table(page, _MARKS, _COLUMNS, rows)
    return verdict([bound for _, some in found for bound in some])


def _text() -> tuple[Rows, list[Bound]]:
    """What a text costs on a picture that is encoded again, and on one that is reduced."""
    large = picture("6mp.jpg").read_bytes()
    width, height = _MEDIUM
    sides = {"resize": {"width": width, "height": height, "mode": "stretch"}}
    small = _made(large, sides)()
    jobs = {"JPEG of 720 x 588": (small, {}), "JPEG of 6 MP to 720 x 588": (large, sides)}
    rows: Rows = []
    bounds = []
    for title, (source, request) in jobs.items():
        plain, texted = _made(source, request), _made(source, {**request, "layers": [_TEXT]})
        contenders = {_WITHOUT: plain, _WITH: _anew(texted), "with the same text again": texted}
        series = compare({name: timed(run) for name, run in contenders.items()}, rounds=_ROUNDS)
        costs = {name: _least(one) for name, one in series.items()}
        results = {name: run() for name, run in contenders.items()}
        rows += [
            (
                f"{title}, {name}",
                "imgsvc",
                f"{cost:.2f}",
                f"{len(results[name]):,}",
                "",
                "",
            )
            for name, cost in costs.items()
        ]
        more = costs[_WITH] - costs[_WITHOUT]
        bounds.append(Bound(f"{title}: a text costs", more, _MOST_MS, unit=" ms"))
    path = Path(tempfile.gettempdir(), "imgsvc-benchmark-text.jpg")
    path.write_bytes(small)
    processes = {"a process": "", "a worker of the service or of a batch": _WORKER}
    for title, before in processes.items():
        first, imported = zip(*(_first(before, path) for _ in range(_ROUNDS)), strict=True)
        rows.append((f"first text of {title}", "imgsvc", f"{1e3 * min(first):.2f}", "", "", ""))
        bounds.append(Bound(f"the first text of {title} costs", 1e3 * min(first), _MOST_FIRST_MS, unit=" ms"))
    rows.append(("import of attrs and pyvips", "", f"{1e3 * min(imported):.2f}", "", "", ""))
    return rows, bounds


def _first(before: str, path: Path) -> tuple[float, float]:
    """Return what a text costs in a fresh process, and what a process that only imports costs."""
    more: float = run_python(before + _FIRST, path, json.dumps(_TEXT))["more"]
    return more, run_timed([sys.executable, "-c", "import attrs, pyvips"])(1).cpu


def _beside_sharp(files: Files) -> tuple[Rows, list[Bound]]:
    """Three pictures with alpha on one, of which all are decoded each time."""
    marks = {path.stem: path.read_bytes() for path in files.layers}
    layers = [
        {"picture": {"id": path.stem}, "x": left, "y": top}
        for path, (left, top) in zip(files.layers, _LAYERS, strict=True)
    ]
    ours = _made(files.ground.read_bytes(), {"layers": layers}, marks)
    theirs: dict[str, Any] = {
        "input": str(files.ground), "buffered": True, "format": "jpeg", "save": {"quality": 80},
        "layers": [
            {"input": str(path), "left": left, "top": top}
            for path, (left, top) in zip(files.layers, _LAYERS, strict=True)
        ],
    }  # fmt: skip
    with sharp_process() as sharp:
        series = compare({"imgsvc": timed(ours), "sharp": partial(sharp.timing, **theirs)}, rounds=_ROUNDS)
        kept = files.ground.with_name("sharp.jpg")
        sharp.run(**theirs, keep=str(kept))
    return _compared("three layers on 1200 x 630", series, ours(), kept.read_bytes(), 1.0)


def _beside_satori(files: Files) -> tuple[Rows, list[Bound]]:
    """A card with a photograph, a logo and two texts, as PNG."""
    white = {"color": "ffffff"}
    layers = [
        {"picture": {"id": "mark"}, "x": 960, "y": 40},
        {"text": {"text": _TITLE, "font": "Inter Bold", "size": 64, **white}, "x": 60, "y": 440},
        {"text": {"text": _SUBTITLE, "size": 32, **white}, "x": 60, "y": 530},
    ]
    marks = {"mark": picture("mark.png").read_bytes()}
    request = {"layers": layers, "output": {"format": "png"}}
    ours = _anew(_made(files.ground.read_bytes(), request, marks))
    with _satori(files.ground, picture("mark.png")) as cards:
        series = compare({"imgsvc": timed(ours), "Satori and resvg": cards}, rounds=7, repeats=2)
        kept = files.ground.with_name("satori.png")
        cards(1, keep=str(kept))
    return _compared("card of 1200 x 630", series, ours(), kept.read_bytes(), _TIMES_SATORI)


def _compared(
    title: str, series: dict[str, Series], ours: bytes, theirs: bytes, times: float
) -> tuple[Rows, list[Bound]]:
    [_, other] = series
    costs = {name: _least(one) for name, one in series.items()}
    ratio = costs[other] / costs["imgsvc"]
    alike = ssimulacra2(on_white(ours), on_white(theirs))
    return [
        (title, "imgsvc", f"{costs['imgsvc']:.2f}", f"{len(ours):,}", "", ""),
        (title, other, f"{costs[other]:.2f}", f"{len(theirs):,}", f"{alike:.1f}", f"{ratio:.2f}"),
    ], [Bound(f"{title}: speed over {other}", ratio, times, at_least=True)]


def _least(series: Series) -> float:
    """The least CPU time in milliseconds, which other programs disturb least."""
    return 1e3 * min(timing.cpu for timing in series.rounds)


def _made(source: bytes, request: dict[str, Any], marks: Any = None) -> Callable[[], bytes]:
    jpeg = {"format": "jpg", "quality": 80, "encoding": "baseline"}
    spec = parse({"output": jpeg, **request})

    def run() -> bytes:
        return process(source, spec, watermarks=marks, threads=1).data

    return run


def _anew(run: Callable[[], bytes]) -> Callable[[], bytes]:
    """Let a request draw its texts, as if no picture before it had them."""

    def run_anew() -> bytes:
        drawn_texts.clear()
        return run()

    return run_anew


@contextmanager
def _satori(photo: Path, logo: Path) -> Iterator[Callable[..., Timing]]:
    """A node process that draws cards."""
    environment = os.environ | {"NODE_PATH": str(node_packages())}
    command = ["node", Path(__file__).with_name("cards.js"), photo, logo]
    width, height = _CARD
    with running(command, environment) as node:
        yield partial(node.timing, width=width, height=height, title=_TITLE, subtitle=_SUBTITLE)


if __name__ == "__main__":
    prepare_worker(None)
    stay_on_one_cpu()
    sys.exit(main(sys.argv[1:]))
