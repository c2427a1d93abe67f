"""Several formats in, several requests, several formats out: ``python -m examples.demo [folder]``.

Writes the results, a contact sheet and a page that shows each result beside its source and its request.
"""

from __future__ import annotations

import html
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import attrs

import imgsvc_core as imgsvc
from examples.sheets import Cell, cover, save, sheet

PICTURES = Path(__file__).parent / "pictures"
WATERMARKS = {"logo": PICTURES / "logo.svg"}
_BROWSERS_SHOW = {".jpg", ".png", ".apng", ".gif", ".webp", ".avif", ".svg"}


@attrs.frozen
class Work:
    """One picture, one request."""

    title: str
    source: str
    request: dict[str, Any]

    @property
    def target(self) -> str:
        return f"{self.title.replace(' ', '-')}.{self.request['output']['format']}"


WORKS = (
    Work("upright", "portrait.jpg", {"output": {"format": "png"}}),
    Work(
        "face",
        "portrait.jpg",
        {
            "crop": {"mode": "face", "padding": 0.6},
            "resize": {"width": 400, "height": 400, "mode": "fit", "gravity": "face"},
            "mask": {"shape": "ellipse"},
            "output": {"format": "webp"},
        },
    ),
    Work(
        "warm",
        "portrait.jpg",
        {
            "adjust": {"temperature": 70, "contrast": 12, "vibrance": 30},
            "filter": {"vignette": {"value": 70, "radius": 35}},
            "output": {"format": "jpg"},
        },
    ),
    Work(
        "duotone",
        "portrait.jpg",
        {"filter": {"duotone": {"light": "ffe2b8", "dark": "120a52"}}, "output": {"format": "jpg"}},
    ),
    Work("as taken", "coffee.heic", {"output": {"format": "jpg"}}),
    Work(
        "only the red",
        "coffee.heic",
        {"filter": {"isolate": {"color": "b5322a", "threshold": 0.08}}, "output": {"format": "avif"}},
    ),
    Work(
        "printed",
        "coffee.heic",
        {"adjust": {"contrast": 15}, "filter": {"halftone": {"value": 55}}, "output": {"format": "png"}},
    ),
    Work(
        "branded",
        "coffee.heic",
        {
            "watermark": {"id": "logo", "gravity": "bottom-right", "padding": 16, "width": 110},
            "border": {"size": 10, "color": "2a2440", "radius": 28},
            "output": {"format": "webp"},
        },
    ),
    Work("vector", "logo.svg", {"resize": {"width": 400}, "output": {"format": "png"}}),
    Work(
        "turned",
        "emblem.png",
        {"rotate": {"angle": 20}, "resize": {"width": 400}, "output": {"format": "jp2", "lossless": True}},
    ),
    Work("animated", "day.gif", {"adjust": {"saturation": 35}, "output": {"format": "webp"}}),
    Work(
        "evening",
        "day.gif",
        {
            "filter": {"duotone": {"light": "ffb199", "dark": "13113c"}},
            "mask": {"shape": "rounded", "radius": 24},
            "output": {"format": "apng"},
        },
    ),
)

COVER = ("face", "duotone", "only the red", "printed", "branded", "evening")
"""Titles of the works on the cover of README."""
PROMISES = (
    "Resize, crop, correct, filter,",
    "watermark and convert pictures.",
    "In Python, in a shell, over HTTPS.",
)


def main(folder: str = "build/demo") -> int:
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    results = []
    for work in WORKS:
        result = imgsvc.process(
            PICTURES / work.source, work.request, target / work.target, watermarks=WATERMARKS
        )
        results.append(result)
        milliseconds = sum(attrs.astuple(result.timing))
        print(f"{work.source:13}-> {work.target:18}{result.output.bytes:8,} bytes{milliseconds:7.0f} ms")
    cells = [cell(target, work) for work in WORKS]
    rows = [cells[start : start + 4] for start in range(0, len(cells), 4)]
    save(sheet(rows, width=340, height=300, font=20), target / "sheet.jpg")
    shown = [cell(target, work) for work in WORKS if work.title in COVER]
    logo = (PICTURES / "logo.svg").read_bytes()
    save(cover(shown, logo, "imgsvc", PROMISES), target / "cover.jpg", max_bytes=140_000)
    page = target / "index.html"
    page.write_text(_page(target, results), encoding="utf-8")
    print(f"\nLook at {page.resolve()}")
    return 0


def cell(folder: Path, work: Work) -> Cell:
    """A result with its source, and the operations that made it."""
    return Cell((folder / work.target).read_bytes(), f"{work.source} to {work.target}", _short(work.request))


def _short(request: dict[str, Any]) -> str:
    """Names of the operations, with adjustments and filters by name."""
    names = [
        name
        for key, part in request.items()
        if key != "output"
        for name in (part if key in ("adjust", "filter") else (key,))
    ]
    return ", ".join(names) or "converted"


def _page(folder: Path, results: list[imgsvc.Result]) -> str:
    rows = "\n".join(_row(folder, work, result) for work, result in zip(WORKS, results, strict=True))
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>imgsvc: what requests do</title>
<style>
  body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem }}
  section {{ display: grid; grid-template-columns: 1fr 1fr 1fr; gap: 1.5rem; padding: 1.5rem 0;
            border-top: 1px solid #ddd }}
  img {{ max-width: 100%; max-height: 340px }} pre {{ overflow: auto; font-size: 13px }}
</style>
<h1>What requests do</h1>
{rows}
</html>
"""


def _row(folder: Path, work: Work, result: imgsvc.Result) -> str:
    request = html.escape(json.dumps(work.request, indent=2))
    return f"""<section>
  {_figure(PICTURES / work.source, result.input, folder)}
  <pre>{request}</pre>
  {_figure(folder / work.target, result.output, folder)}
</section>"""


def _figure(picture: Path, info: imgsvc.ImageInfo, folder: Path) -> str:
    caption = f"{picture.name}, {_facts(info)}"
    return (
        f'<figure><img src="{_viewable(picture, folder)}" alt=""><figcaption>{caption}</figcaption></figure>'
    )


def _viewable(picture: Path, folder: Path) -> str:
    """Name in the folder of the picture, or of a PNG of it where browsers do not show its format."""
    if picture.suffix in _BROWSERS_SHOW:
        if picture.parent != folder:
            shutil.copy(picture, folder)
        return picture.name
    preview = folder / f"{picture.name}.png"
    imgsvc.process(picture, {"output": {"format": "png"}}, preview)
    return preview.name


def _facts(info: imgsvc.ImageInfo) -> str:
    width, height = info.upright_size
    frames = f", {info.frames} frames" if info.animated else ""
    return f"{width} x {height}{frames}, {info.bytes / 1000:.0f} kB"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
