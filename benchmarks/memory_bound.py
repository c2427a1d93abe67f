"""What a plan says that it needs of memory at most, against what it takes.

``python -m benchmarks.memory_bound docs/reference/memory.md`` also writes the table there. Each case runs in
a fresh process. The bound must not lie below the peak by more than a tenth. It is the most that is checked
for a request: with its watermark, the search for faces, or the picture that variants share.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyvips
import tifffile
from PIL import Image
from tests.support.photos import mosaic

import imgsvc_core as imgsvc
from benchmarks.harness import Bound, print_table, run_python, verdict, write_table

MEASURE = """
import json, sys
import imgsvc_core as imgsvc
import numpy, PIL.Image, imgsvc_core.processing, imgsvc_core.pixels.spatial.blur
source, request, mark = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
checked = []
for name, module in list(sys.modules.items()):
    if name.startswith("imgsvc_core") and hasattr(module, "check_memory"):
        module.check_memory = lambda needed, limits: checked.append(needed)
options = {"limits": imgsvc.Limits.none(), "watermarks": {"mark": mark}, "threads": 2}
small = numpy.zeros((64, 64, 3), numpy.uint8)
variants = request.pop("variants", {})
warm = {"output": {name: value for name, value in request.get("output", {}).items() if name != "transcode"}}
if request.get("crop", {}).get("mode") == "face":
    warm["crop"] = {"mode": "face"}
imgsvc.process(small, warm)
checked.clear()
before = peak_memory()
if variants:
    imgsvc.process_variants(source, variants, **options)
else:
    imgsvc.process(source, request, **options).data
print(json.dumps({"bound": max(checked) / 1e6, "peak": peak_memory() - before}))
"""
TO_JPEG: dict[str, Any] = {"output": {"format": "jpg", "encoding": "baseline"}}
COLUMNS = ("source", "bound, MB", "peak, MB", "request")  # phones show the first ones
RULES = ("---", "---:", "---:", "---")
MARKS = ("<!-- memory -->", "<!-- end of memory -->")
SIDE, FRAMES = 3000, 16
SMALL_SIDE, MANY_FRAMES = 200, 150
OUTPUTS: list[dict[str, Any]] = [
    {"format": "jpg"},
    {"format": "jpg", "quality": 95},
    {"format": "jpg", "max_bytes": 500_000},
    {"format": "png"},
    {"format": "png", "colors": 64},
    {"format": "png", "encoding": "progressive"},
    {"format": "webp"},
    {"format": "webp", "lossless": True},
    {"format": "avif"},
    {"format": "avif", "lossless": True},
    {"format": "jxl"},
    {"format": "jxl", "lossless": True},
    {"format": "jxl", "look": "good"},
    *({"format": name} for name in ("gif", "heic", "jp2", "tiff", "apng", "auto")),
]
LOOKS: list[dict[str, Any]] = [
    {"crop": {"mode": "smart", "width": 2900, "height": 2900}},
    {"rotate": {"angle": 10}},
    {"auto": {"enhance": True}},
    {"adjust": {"sharpen": 50, "unsharp": 50}},
    *(
        {"filter": {"blur": {"mode": mode, "value": value}}}
        for mode in ("gaussian", "motion", "zoom")
        for value in (5, 100)
    ),
    {"filter": {"pixellate": {"value": 20}}},
    {"filter": {"vignette": {"value": 50, "radius": 10}, "halftone": {"value": 30}}},
    {"mask": {"shape": "ellipse"}, "border": {"size": 30, "radius": 100}},
    {"resize": {"width": 4500}},
    {"resize": {"width": 300}},
    {"crop": {"mode": "face"}},
    {"watermark": {"id": "mark"}},
    {"watermark": {"id": "mark", "scale": 0.1}},
    {"trim": {"threshold": 10}},
    {"canvas": {"ratio": "3:1"}},
    {"canvas": {"width": 5000, "height": 3500, "background": "#fff"}},
    {"resize": {"width": 300, "min_height": 2500}},
    {"rotate": {"angle": 10}, "filter": {"blur": {"mode": "gaussian", "value": 20}}},
    {"trim": {"threshold": 10}, "resize": {"width": 4000}, "rotate": {"angle": 45}},
]
VARIANTS: dict[str, Any] = {
    "variants": {
        "large": {"resize": {"width": 2000}, **TO_JPEG},
        "small": {"resize": {"width": 300}, "output": {"format": "webp"}},
        "square": {"crop": {"mode": "ratio", "ratio": "1:1"}, "output": {"format": "png"}},
    }
}
LAYERED_SIDE = 2500  # malloc keeps what it frees of up to 32 MB, such as layers of this size
_CIRCLE = '<circle cx="1500" cy="1200" r="900" {}/>'
_SQUARE = f'<rect width="{LAYERED_SIDE}" height="{LAYERED_SIDE}" {{}}/>'
_GROUPS = 20
DRAWINGS = {
    "filter.svg": (
        SIDE,
        '<filter id="f"><feGaussianBlur stdDeviation="10"/></filter>' + _CIRCLE.format('filter="url(#f)"'),
    ),
    "isolated.svg": (
        LAYERED_SIDE,
        '<g style="isolation:isolate">' * _GROUPS + _SQUARE.format("") + "</g>" * _GROUPS,
    ),
    "opacity.svg": (LAYERED_SIDE, '<g opacity=".9">' * _GROUPS + _SQUARE.format("") + "</g>" * _GROUPS),
    "masks.svg": (
        LAYERED_SIDE,
        f'<mask id="m">{_SQUARE.format("")}</mask>'
        + '<g mask="url(#m)">' * _GROUPS
        + _SQUARE.format("")
        + "</g>" * _GROUPS,
    ),
    "results.svg": (
        LAYERED_SIDE,
        '<filter id="f" x="0" y="0" width="1" height="1">'
        + "".join(f'<feFlood result="{number}"/>' for number in range(_GROUPS))
        + "</filter>"
        + _SQUARE.format('filter="url(#f)"'),
    ),
    "elements.svg": (SIDE, "<rect/>" * 20_000),
    "paths.svg": (SIDE, f'<path d="M0 0{"a9 9 0 1 1 1 1" * 50_000}"/>'),
    "text.svg": (SIDE, f'<text y="50">{"word " * 1500}</text>'),
}
WRAPPED = (("a.jpg", "jxl"), ("wrapped.jxl", "jpg"))
MOVING = ("moving.gif", "moving.webp", "moving.png")
FRAME_LOOKS: list[dict[str, Any]] = [
    *({"rotate": {"angle": angle}} for angle in (5, 90)),
    *({"resize": {"width": width}} for width in (180, 400)),
    {"crop": {"mode": "smart", "width": 100, "height": 100}},
    {"auto": {"enhance": True}},
    *({"adjust": {name: 50}} for name in ("sharpen", "unsharp")),
    *({"filter": {"blur": {"mode": mode, "value": 20}}} for mode in ("gaussian", "motion", "zoom")),
    {"filter": {"pixellate": {"value": 20}}},
    {"filter": {"vignette": {"value": 50, "radius": 5}}},
    {"filter": {"halftone": {"value": 40}}},
    {"mask": {"shape": "ellipse"}},
    {"padding": {"size": 10}},
    {"border": {"size": 5, "radius": 20}},
    {"trim": {"threshold": 10}},
    {"canvas": {"ratio": "3:1"}},
    {"resize": {"width": 50, "min_height": 150}},
    {"resize": {"width": 150}, "rotate": {"angle": 45}},
    {"rotate": {"angle": 45}, "filter": {"blur": {"mode": "zoom", "value": 50}}},
]
MOVING_LOOKS: list[dict[str, Any]] = [
    {"trim": {"threshold": 10}},
    {"resize": {"width": 500}, "rotate": {"angle": 5}},
    {"trim": {"threshold": 10}, "resize": {"width": 500}},
    {"trim": {"threshold": 10}, "resize": {"width": 500}, "rotate": {"angle": 5}},
    {"resize": {"width": 500}, "rotate": {"angle": 45}, "filter": {"blur": {"mode": "zoom", "value": 50}}},
    {"canvas": {"ratio": "3:1"}, "rotate": {"angle": 45}},
]


def main(page: str | None = None) -> int:
    rows, bounds = [], []
    with tempfile.TemporaryDirectory() as folder:
        sources = _sources(Path(folder))
        for source, request in _cases(sources):
            found = run_python(MEASURE, sources[source], json.dumps(request), sources["rgba.png"])
            ratio = found["bound"] / max(1.0, found["peak"])
            asked = "" if request == TO_JPEG else json.dumps(request)
            rows.append((source, f"{found['bound']:.0f}", f"{found['peak']:.0f}", asked))
            bounds.append(Bound(f"{source} {asked}", ratio, 0.9, at_least=True))
    print_table(COLUMNS, rows)
    write_table(page, MARKS, COLUMNS, rows, RULES)
    return verdict([min(bounds, key=lambda bound: bound.value)])


def _cases(sources: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return each reader, writer and step on its own, with the name of a source."""
    still = ("rgb.png", "rgba.png")
    yield from ((source, TO_JPEG) for source in sources)
    yield from ((source, {"rotate": {"angle": 90}, **TO_JPEG}) for source in ("rgb.png", "a.tiff"))
    yield ("rgba.png", {"output": {"format": "png", "flatten": True}})
    yield from ((source, {"output": output}) for output in OUTPUTS for source in still)
    yield from (("indexed.png", {"output": output}) for output in OUTPUTS if output["format"] == "png")
    yield from (
        (source, {"resize": {"width": 900}, "output": {"format": output}})
        for output in ("gif", "webp", "apng", "avif", "jxl")
        for source in MOVING
    )
    yield from ((source, {}) for source in (*MOVING, "restored.gif", "moving.avif", "moving.jxl"))
    yield from ((source, {"output": {"format": format, "transcode": True}}) for source, format in WRAPPED)
    yield from (
        (source, {**look, "output": {"format": output}})
        for look in MOVING_LOOKS
        for source, output in zip(MOVING, ("webp", "apng", "gif"), strict=True)
    )
    yield from ((source, {**look, **TO_JPEG}) for look in LOOKS for source in still)
    yield from (("frames.png", {**look, "output": {"format": "webp"}}) for look in FRAME_LOOKS)
    decoded = ("a.jpg", "deep.png", "a.webp", "a.avif", "a.tiff", "a.psd")
    yield from ((source, {"crop": {"mode": "face"}, **TO_JPEG}) for source in decoded)
    yield from ((source, VARIANTS) for source in (*still, *decoded))


def _sources(folder: Path) -> Mapping[str, Path]:
    """Write images of nine megapixels in all formats that are read."""
    image = pyvips.Image.new_from_array(mosaic(SIDE, SIDE)).copy(interpretation="srgb").copy_memory()
    glass = image.bandjoin((image[0] / 2 + 100).cast("uchar")).copy_memory()
    deep = (image * 257).cast("ushort").copy(interpretation="rgb16")
    picture = Image.fromarray(image.numpy())
    views = [Image.fromarray(np.roll(mosaic(1000, 1000), 37 * shift, axis=1)) for shift in range(FRAMES)]
    moving = {"save_all": True, "append_images": views[1:], "duration": 50}
    small = [view.resize((SMALL_SIDE, SMALL_SIDE)) for view in views]
    many = [small[number % FRAMES] for number in range(MANY_FRAMES)]
    writers: dict[str, Callable[[str], object]] = {
        "a.jpg": lambda path: image.jpegsave(path),
        "progressive.jpg": lambda path: image.jpegsave(path, interlace=True, subsample_mode="off"),
        "rgb.png": lambda path: image.pngsave(path, compression=1),
        "rgba.png": lambda path: glass.pngsave(path, compression=1),
        "deep.png": lambda path: deep.pngsave(path, compression=1),
        "indexed.png": lambda path: image.pngsave(path, compression=1, palette=True, bitdepth=4),
        "interlaced.png": lambda path: image.pngsave(path, compression=1, interlace=True),
        "a.webp": lambda path: image.webpsave(path, effort=0),
        "rgba.webp": lambda path: glass.webpsave(path, effort=0),
        "lossless.webp": lambda path: image.webpsave(path, effort=0, lossless=True),
        "a.gif": lambda path: image.gifsave(path, effort=1),
        "a.avif": lambda path: image.heifsave(path, compression="av1", effort=0),
        "rgba.avif": lambda path: glass.heifsave(path, compression="av1", effort=0),
        "deep.avif": lambda path: deep.heifsave(path, compression="av1", effort=0, bitdepth=10),
        "a.jxl": lambda path: _write(image, "jxl", path),
        "rgba.jxl": lambda path: _write(glass, "jxl", path),
        "deep.jxl": lambda path: _write(deep, "jxl", path),
        "lossless.jxl": lambda path: _write(image, "jxl", path, lossless=True),
        "wrapped.jxl": lambda path: imgsvc.process(
            image.jpegsave_buffer(), {"output": {"format": "jxl", "transcode": True}}, path
        ),
        "a.heic": lambda path: _write(image, "heic", path),
        "a.jp2": lambda path: picture.save(path),
        "deep.jp2": lambda path: imgsvc.process(deep, {"output": {"format": "jp2"}}, path),
        "a.tiff": lambda path: image.tiffsave(path),
        "strip.tiff": lambda path: picture.save(path, compression="tiff_deflate", tiffinfo={278: SIDE}),
        "float.tiff": lambda path: (image / 255).cast("float").tiffsave(path),
        "double.tiff": lambda path: tifffile.imwrite(path, image.numpy() / 255, photometric="rgb"),
        "long.tiff": lambda path: tifffile.imwrite(
            path, image.numpy().astype(np.uint64) << 56, photometric="rgb", planarconfig="separate"
        ),
        "a.bmp": lambda path: picture.save(path),
        "a.psd": lambda path: Path(path).write_bytes(_psd(np.asarray(picture))),
        "deep.psd": lambda path: Path(path).write_bytes(_psd(np.asarray(picture).astype(">u2") * 257)),
        "float.psd": lambda path: Path(path).write_bytes(_psd((np.asarray(picture) / 255).astype(">f4"))),
        **{name: partial(_write_drawing, *drawing) for name, drawing in DRAWINGS.items()},
        "inlined.svg": lambda path: _write_drawing(SIDE, _inlined(image), path),
        "moving.gif": lambda path: views[0].save(path, **moving),
        "restored.gif": lambda path: views[0].save(path, disposal=3, **moving),
        "moving.webp": lambda path: views[0].save(path, quality=60, method=0, **moving),
        "moving.png": lambda path: views[0].save(path, **moving),
        "moving.avif": lambda path: views[0].save(path, speed=9, **moving),
        "moving.jxl": lambda path: _write(folder / "moving.png", "jxl", path),
        "frames.png": lambda path: many[0].save(path, save_all=True, append_images=many[1:], duration=50),
    }
    for name, write in writers.items():
        write(str(folder / name))
    return {name: folder / name for name in writers}


def _write(source: Any, format: str, path: str, **output: Any) -> None:
    request = {"output": {"format": format, "effort": 0, **output}}
    imgsvc.process(source, request, path, limits=imgsvc.Limits.none())


def _write_drawing(side: int, content: str, path: str) -> None:
    start = f'<svg xmlns="http://www.w3.org/2000/svg" width="{side}" height="{side}">'
    Path(path).write_text(f"{start}{content}</svg>")


def _inlined(image: pyvips.Image) -> str:
    data = base64.b64encode(image.jpegsave_buffer(Q=50)).decode()
    return f'<image width="{SIDE}" height="{SIDE}" href="data:image/jpeg;base64,{data}"/>'


def _psd(pixels: np.ndarray[Any, Any]) -> bytes:
    """Return an uncompressed RGB document."""
    height, width, channels = pixels.shape
    file = io.BytesIO()
    file.write(b"8BPS\0\1" + bytes(6) + channels.to_bytes(2) + height.to_bytes(4) + width.to_bytes(4))
    file.write((8 * pixels.itemsize).to_bytes(2) + (3).to_bytes(2) + bytes(12) + bytes(2))
    file.write(np.moveaxis(pixels, -1, 0).tobytes())
    return file.getvalue()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
