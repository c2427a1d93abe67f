"""What processing takes of memory stays below the bound of its plan."""

from __future__ import annotations

import base64
import functools
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import imagecodecs
import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.spec.thumbor_filters import Mark
from tests.support import forked_python
from tests.support.photos import mosaic

MEASURE = """
import json, sys
import numpy
import imgsvc_core as imgsvc
from imgsvc_core.spec import restore

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))

source, request = sys.argv[1], restore(json.loads(sys.argv[2]))
assert imgsvc.process(numpy.zeros((8, 8, 3), numpy.uint8), {"output": {"format": "webp"}}).data
before = peak()
if target := sys.argv[3]:
    imgsvc.process(source, {"resize": {"width": 64}, "output": request.output}, target)
    before = peak()
    result = imgsvc.process(source, request, target, limits=imgsvc.Limits.none(), threads=4)
else:
    result = imgsvc.process(source, request, limits=imgsvc.Limits.none(), threads=4)
    assert result.data
print(json.dumps([peak() - before, result.plan.memory]))
"""


def peak_and_bound(
    source: Path, request: imgsvc.Spec | dict[str, Any], target: Path | str = ""
) -> tuple[int, int]:
    document = imgsvc.unparse(request if isinstance(request, imgsvc.Spec) else imgsvc.parse(request))
    done = forked_python.run("-c", MEASURE, str(source), json.dumps(document), str(target))
    assert done.returncode == 0, done.stderr
    peak, bound = json.loads(done.stdout)
    return peak, bound


@pytest.fixture(scope="module")
def photograph(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int, str], Path]:
    """Return the path of a picture of a width and a height in a format."""
    folder = tmp_path_factory.mktemp("photographs")

    @functools.cache
    def write(width: int, height: int, suffix: str) -> Path:
        path = folder / f"{width}x{height}.{suffix}"
        Image.fromarray(mosaic(width, height)).save(path, compress_level=1)
        return path

    return write


@pytest.fixture(scope="module")
def animation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of an APNG of 80 small frames."""
    pixels = np.random.default_rng(0).integers(0, 256, (1, 1, 80, 3), np.uint8)
    first, *others = (Image.fromarray(np.tile(pixels[:, :, frame], (160, 160, 1))) for frame in range(80))
    file = io.BytesIO()
    first.save(file, "PNG", save_all=True, append_images=others, duration=50)
    path = tmp_path_factory.mktemp("animation") / "a.apng"
    path.write_bytes(file.getvalue())
    return path


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
@pytest.mark.parametrize(
    "request_",
    [{"filter": {"halftone": {"value": 40}}}, {"adjust": {"unsharp": 50}}],
    ids=["halftone", "unsharp"],
)
def test_the_steps_of_animations_stay_below_the_bound(animation: Path, request_: dict[str, Any]) -> None:
    peak, bound = peak_and_bound(animation, {**request_, "output": {"format": "webp"}})
    assert peak < bound


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
@pytest.mark.parametrize("amount", [0, 3, 60])
def test_backgrounds_stay_below_the_bound(photograph: Callable[[int, int, str], Path], amount: int) -> None:
    path = photograph(1500, 1000, "png")
    background = {"kind": "blur", "amount": amount}
    request = {
        "canvas": {"width": 3000, "height": 2500},
        "background": background,
        "output": {"format": "jpg"},
    }
    peak, bound = peak_and_bound(path, request)
    assert peak < bound


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
def test_baseline_photographs_stay_below_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    Image.fromarray(mosaic(4000, 3900)).save(path, quality=90)
    request = {"output": {"format": "jpg", "encoding": "baseline"}}
    peak, bound = peak_and_bound(path, request, tmp_path / "b.jpg")
    assert peak < bound


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
@pytest.mark.parametrize(("suffix", "height"), [("jpg", 6000), ("png", 2000), ("webp", 2000), ("avif", 2000)])
def test_files_whose_pixels_stay_need_memory_for_their_bytes_alone(
    tmp_path: Path, suffix: str, height: int
) -> None:
    path = tmp_path / f"a.{suffix}"
    noise = np.random.default_rng(0).integers(0, 256, (height, 3000, 3), np.uint8)
    Image.fromarray(noise).save(path, quality=100, speed=10, method=0, compress_level=1)
    peak, bound = peak_and_bound(path, {"output": {"keep_pixels": True}})
    assert peak < bound
    large = attrs.evolve(imgsvc.inspect(path), width=12_000, height=8_000)
    plan = imgsvc.explain({"output": {"keep_pixels": True}}, large)
    assert plan.memory == bound


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
def test_pictures_that_are_laid_over_are_not_held_together(tmp_path: Path) -> None:
    path, number = tmp_path / "a.png", 24
    Image.new("RGB", (20, 20)).save(path)
    area = 'width="3000" height="2000"'
    drawings = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {area}><rect {area} fill="#{color:03}8"/></svg>'
        for color in range(number)
    ]
    mark = Mark(watermark=imgsvc.Watermark(id="w"), request=imgsvc.Spec())
    marks = [attrs.evolve(mark, drawing=drawing) for drawing in drawings]
    peak, _ = peak_and_bound(path, imgsvc.Spec(filter=marks))
    assert peak < number * 3000 * 2000 * 4 * 2 / 3


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
@pytest.mark.parametrize(("format", "orientation"), [("WebP", 1), ("JPEG", 6)])
def test_looking_for_a_border_stays_below_the_bound(tmp_path: Path, format: str, orientation: int) -> None:
    ramp = np.tile(np.arange(3000, dtype=np.uint32) // 12, (3000, 1)).astype(np.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "a"
    Image.fromarray(np.dstack([ramp, ramp.T, ramp])).save(path, format, exif=exif, method=0)
    request = {"trim": {"threshold": 5}, "resize": {"width": 100}, "output": {"format": "jpg"}}
    peak, bound = peak_and_bound(path, request)
    assert peak < bound


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
def test_lines_that_end_within_a_pixel_stay_below_the_bound(tmp_path: Path) -> None:
    """libvips decodes CMYK line by line, and the last of the pixels at a scale covers less than others."""
    path = tmp_path / "a.jpg"
    Image.fromarray(mosaic(4001, 2003)).convert("CMYK").save(path, quality=90)
    peak, bound = peak_and_bound(path, {"resize": {"width": 1000}, "output": {"format": "jpg"}})
    assert peak < bound


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
def test_jpeg_2000_stays_below_the_bound(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 1 << 16, (1400, 1400, 3)).astype(np.uint16)
    path = tmp_path / "a.jp2"
    path.write_bytes(
        imagecodecs.jpeg2k_encode(pixels, level=0, reversible=True, bitspersample=16, codecformat="jp2")
    )
    peak, bound = peak_and_bound(path, {"output": {"format": "jp2", "lossless": True}})
    assert peak < bound


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
def test_looking_for_the_border_of_an_animation_stays_below_the_bound(tmp_path: Path) -> None:
    frames = [Image.fromarray(np.roll(mosaic(800, 800), 37 * shift, axis=1)) for shift in range(16)]
    path = tmp_path / "a.webp"
    frames[0].save(path, save_all=True, append_images=frames[1:], quality=60, method=0, duration=50)
    request = {"trim": {"threshold": 10}, "resize": {"width": 500}, "output": {"format": "apng"}}
    peak, bound = peak_and_bound(path, request)
    assert peak < bound


def test_the_bound_of_an_animation_grows_with_its_result(animation: Path) -> None:
    info = imgsvc.inspect(animation)
    plan = imgsvc.explain({"resize": {"width": 640}, "output": {"format": "webp"}}, info)
    assert plan.memory > 2 * 80 * 640 * 640 * 3  # its frames, and the copy that an encoder makes of them


def inlined(side: int) -> str:
    file = io.BytesIO()
    Image.new("RGB", (side, side)).save(file, "PNG")
    return f'<image href="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"/>'


DRAWINGS = {
    "isolation": '<g style="isolation:isolate">' * 30 + "{}" + "</g>" * 30,
    "opacity": ('<g opacity=".9">' + "{}") * 20 + "</g>" * 20,
    "results": '<filter id="f" x="0" y="0" width="1" height="1">'
    + "".join(f'<feFlood result="r{number}"/>' for number in range(60))
    + '</filter><g filter="url(#f)">{}</g>',
    "inlined": "{inlined}",
    "elements": "<rect/>" * 30_000,
    "dashes": f'<path stroke="red" stroke-dasharray="1" d="M0 0{"h2000v9h-2000v9" * 110}"/>',
}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
@pytest.mark.parametrize("content", DRAWINGS.values(), ids=DRAWINGS)
def test_drawings_stay_below_the_bound(tmp_path: Path, content: str) -> None:
    content = content.replace("{}", '<rect width="6000" height="6000"/>')
    if "{inlined}" in content:
        content = inlined(5000)
    path = tmp_path / "a.svg"
    side = 2100 if "isolation" in content or "dasharray" in content else 1500
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{side}" height="{side}">{content}</svg>')
    peak, bound = peak_and_bound(path, {"output": {"format": "png"}})
    assert peak < bound


LAYERS: dict[str, list[dict[str, Any]]] = {
    "gradients": [{"gradient": {"from": "80ff0000", "to": "800000ff", "angle": 33}}] * 6,
    "mixed and turned": [{"shape": {"kind": "ellipse", "color": "f00"}, "rotation": 33, "blend": "hue"}] * 3,
    "shadows": [{"gradient": {"from": "f00", "to": "00f", "angle": 33}, "shadow": {"blur": 140}}] * 2,
    "text": [{"text": {"text": "Lorem ipsum " * 99, "size": 60, "outline": {"width": 6, "color": "f00"},
                       "shadow": {"blur": 40}}, "width": 2800}],
    "small text": [{"text": {"text": "Lorem ipsum " * 99, "size": 12, "lines": 9}, "width": 800}],
    "large text": [{"text": {"text": "Big", "size": 1500}}],
}  # fmt: skip


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
@pytest.mark.parametrize("blend", ["multiply", "saturation"])
def test_mixed_layers_of_small_pictures_stay_below_the_bound(blend: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    Image.fromarray(mosaic(600, 400)).save(path)
    layer = {"shape": {"kind": "ellipse", "color": "f00"}, "rotation": 33, "blend": blend}
    peak, bound = peak_and_bound(path, {"layers": [layer] * 2})
    assert peak < bound


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
@pytest.mark.parametrize("kind", LAYERS)
def test_layers_stay_below_the_bound(kind: str, photograph: Callable[[int, int, str], Path]) -> None:
    pytest.importorskip("fontpkg_inter")
    size = {"mixed and turned": (1400, 900), "shadows": (2000, 1300)}.get(kind, (3000, 2000))
    peak, bound = peak_and_bound(photograph(*size, "jpg"), {"layers": LAYERS[kind]})
    assert peak < bound


_BOX = {"x": "5%", "y": "5%", "width": "90%", "height": "90%"}
REDACTED: dict[str, dict[str, Any]] = {
    "boxes of all kinds": {"redact": [{**_BOX, "mode": mode} for mode in ("color", "pixels", "blur") * 10]},
    "a border after boxes": {"redact": [{**_BOX, "color": "f00"}], "trim": {"threshold": 10}},
    "faces, in a turned picture": {
        "redact": [{"faces": True, "if_found": True}, {**_BOX, "mode": "blur"}],
        "rotate": {"angle": 90},
    },
}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
@pytest.mark.parametrize("kind", REDACTED)
@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_redaction_stays_below_the_bound(
    kind: str, suffix: str, photograph: Callable[[int, int, str], Path]
) -> None:
    if "faces" in kind:
        pytest.importorskip("cv2")
    path = photograph(3000, 2000, suffix)
    peak, bound = peak_and_bound(path, {**REDACTED[kind], "output": {"format": "jpg"}})
    assert peak < bound
