"""The first result of a process comes without what takes longer to load than the work takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.photos import as_vips, coffee

MAKE = """
import json, sys
if sys.argv[1] == "numpy":
    import numpy
import imgsvc_core as imgsvc

results = []
for source, spec in json.loads(sys.argv[2]):
    result = imgsvc.process(source, spec)
    results.append((result.output.to_dict(), result.data.hex()))
loaded = [name for name in json.loads(sys.argv[3]) if name in sys.modules]
print(json.dumps({"loaded": loaded, "results": results}))
"""


SLOW = ["numpy", "PIL", "asyncio", "cattrs", "email", "hashlib", "http", "ssl", "tempfile", "xml"]
"""Packages that take longer to load than the modules of the library that a thumbnail needs."""

RARE = ["imgsvc_core.plan.filter_works", "imgsvc_core.spec.internal", "imgsvc_core.spec.thumbor_filters"]
"""Modules of filters that few requests ask for, with dozens of classes."""

OF_LAYERS = ["imgsvc_core.plan.works", "imgsvc_core.spec.layers"]


def made(first: str, jobs: list[tuple[str, Any]]) -> dict[str, Any]:
    command = [sys.executable, "-c", MAKE, first, json.dumps(jobs), json.dumps(SLOW + RARE + OF_LAYERS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("first") / "photo.jpg"
    as_vips(coffee()).jpegsave(str(path), Q=90)
    return str(path)


@pytest.mark.parametrize("format", ["jpg", "webp", "avif"])
def test_a_thumbnail_needs_no_slow_package_and_is_the_same_with_numpy(photo: str, format: str) -> None:
    spec = {"resize": {"width": 200}, "output": {"format": format}}
    alone, beside = made("nothing", [(photo, spec)]), made("numpy", [(photo, spec)])
    assert alone["loaded"] == (["PIL"] if format == "avif" else [])  # whose encoder makes the fewest bytes
    assert alone["results"] == beside["results"]


@pytest.mark.parametrize("rotate", [{}, {"rotate": {"angle": 20}}])
def test_a_png_of_a_photograph_needs_no_slow_package_and_is_the_same_with_numpy(
    tmp_path: Path, rotate: dict[str, Any]
) -> None:
    photo = tmp_path / "photo.jpg"
    as_vips(coffee()).jpegsave(str(photo), subsample_mode="on")  # as only photographs are stored
    spec = {"resize": {"width": 200}, **rotate, "output": {"format": "png"}}
    alone, beside = made("nothing", [(str(photo), spec)]), made("numpy", [(str(photo), spec)])
    assert alone["loaded"] == []
    assert alone["results"] == beside["results"]


@pytest.mark.parametrize("size", [(1, 40), (40, 1)])
def test_a_png_of_one_line_is_the_same_with_numpy(tmp_path: Path, size: tuple[int, int]) -> None:
    """libpng has no filters for such pictures."""
    photo = tmp_path / "photo.jpg"
    as_vips(coffee()).jpegsave(str(photo), subsample_mode="on")  # as only photographs are stored
    resize = {"width": size[0], "height": size[1], "mode": "stretch"}
    jobs = [(str(photo), {"resize": resize, "output": {"format": "png"}})]
    assert made("nothing", jobs)["results"] == made("numpy", jobs)["results"]


INKS = """
import sys
import imgsvc_core as imgsvc
imgsvc.process(sys.argv[1], {"resize": {"width": 50}}, sys.argv[2])
assert "numpy" not in sys.modules
"""


def test_inks_are_read_once_without_numpy(tmp_path: Path) -> None:
    """libvips delivers them line by line, so a second reading fails."""
    source, target = tmp_path / "inks.jpg", tmp_path / "result.jpg"
    Image.linear_gradient("L").resize((512, 400)).convert("RGB").convert("CMYK").save(source)
    subprocess.run([sys.executable, "-c", INKS, source, target], check=True)
    with Image.open(target) as result:
        assert (result.mode, result.size) == ("RGB", (50, 39))


def test_a_dot_of_inks_is_the_same_with_numpy(tmp_path: Path) -> None:
    """libvips makes no picture of less than a pixel."""
    source = tmp_path / "dot.jpg"
    Image.new("CMYK", (3, 7), (90, 20, 60, 10)).save(source)
    jobs = [(str(source), {"output": {"format": "png"}})]
    assert made("nothing", jobs)["results"] == made("numpy", jobs)["results"]


def test_a_text_needs_no_slow_package_and_no_filters(photo: str) -> None:
    pytest.importorskip("fontpkg_inter")
    text = {"text": {"text": "Autumn & more", "size": 20, "color": "ffffff"}, "gravity": "bottom-left"}
    spec = {"resize": {"width": 200}, "layers": [text]}
    made("nothing", [(photo, spec)])  # a user's first text also makes a folder that shows the fonts
    assert made("nothing", [(photo, spec)])["loaded"] == OF_LAYERS


def test_many_pictures_are_worth_loading_numpy(photo: str, tmp_path: Path) -> None:
    jobs = [(photo, {"resize": {"width": width}}) for width in range(20, 80)]
    many = made("nothing", jobs)
    assert "numpy" in many["loaded"]
    assert many["results"] == made("numpy", jobs)["results"]


OLD = """
import pyvips
pyvips.version = lambda part: (8, 14, 1)[part]
import imgsvc_core as imgsvc
assert imgsvc.Resize(width=3)
try:
    imgsvc.process(b"")
except imgsvc.MissingDependency as error:
    print(error)
"""


def test_an_old_libvips_of_the_system_is_named() -> None:
    """pip builds pyvips with the headers that it finds, and it then takes the place of pyvips-binary."""
    done = subprocess.run([sys.executable, "-c", OLD], capture_output=True, text=True, check=True)
    assert "libvips 8.16 or newer is needed, got 8.14" in done.stdout
    assert "pip install --force-reinstall --no-deps pyvips-binary" in done.stdout
