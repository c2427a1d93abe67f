"""How alike two pictures look, against scikit-image and the package ssimulacra2."""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import pyvips
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from skimage.metrics import structural_similarity

import imgsvc_core as imgsvc
from imgsvc_core.errors import CorruptImage, UnsupportedOperation
from imgsvc_core.similarity.ssimulacra2 import Original
from imgsvc_core.similarity.structure import ssim
from tests.support import encoded, requires
from tests.support.photos import Pixels, as_vips, astronaut, coffee

benchmarks = pytest.importorskip("benchmarks.truth")


def written(pixels: Pixels, quality: int) -> Pixels:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


@settings(max_examples=30)
@given(
    place=st.tuples(st.integers(0, 150), st.integers(0, 150)),
    size=st.tuples(st.integers(8, 150), st.integers(8, 150)),
    quality=st.integers(2, 99),
)
def test_scores_are_those_of_the_package(place: tuple[int, int], size: tuple[int, int], quality: int) -> None:
    (top, left), (height, width) = place, size
    original = np.ascontiguousarray(astronaut()[top : top + height, left : left + width])
    shown = written(original, quality)
    assert abs(Original.of(original).score(shown) - benchmarks.ssimulacra2(original, shown)) < 0.1


def test_scores_are_the_same_without_opencv(monkeypatch: pytest.MonkeyPatch) -> None:
    requires.module("cv2")
    importlib.import_module("cv2")
    photo = np.ascontiguousarray(coffee()[:90, :120])
    shown = written(photo, 30)
    score = imgsvc.compare(photo, shown).ssimulacra2
    monkeypatch.setitem(sys.modules, "cv2", None)  # as if it was not installed
    assert imgsvc.compare(photo, shown).ssimulacra2 == pytest.approx(score, abs=0.01)


@pytest.mark.parametrize("shape", [(7, 7), (9, 30), (64, 41)])
def test_ssim_is_that_of_scikit_image(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(1)
    first = random.integers(0, 256, shape).astype(np.uint8)
    second = np.clip(first + random.normal(0, 25, shape), 0, 255).astype(np.uint8)
    expected = structural_similarity(first, second, data_range=255)
    assert ssim(first, second) == pytest.approx(expected, abs=1e-9)


def test_equal_pictures_are_equal() -> None:
    data = encoded.jpeg().data
    found = imgsvc.compare(data, data)
    assert found.to_dict() == {"ssim": 1.0, "dssim": 0.0, "ssimulacra2": 100.0}
    dot = as_vips(np.full((1, 1, 3), 200, np.uint8)).pngsave_buffer()
    assert imgsvc.compare(dot, dot).ssimulacra2 == 100
    other = as_vips(np.full((1, 1, 3), 20, np.uint8)).pngsave_buffer()
    assert imgsvc.compare(dot, other).ssimulacra2 < 90


def test_worse_pictures_score_less() -> None:
    photo = np.ascontiguousarray(coffee()[:160, :200])
    found = [imgsvc.compare(photo, written(photo, quality)) for quality in (95, 80, 50, 10)]
    assert [item.ssimulacra2 for item in found] == sorted((i.ssimulacra2 for i in found), reverse=True)
    assert [item.ssim for item in found] == sorted((item.ssim for item in found), reverse=True)
    mirrored = imgsvc.compare(photo, np.ascontiguousarray(photo[:, ::-1]))
    assert mirrored.ssimulacra2 < found[-1].ssimulacra2


def test_what_alpha_hides_counts_on_one_of_two_grounds() -> None:
    photo = coffee()[:40, :60]
    clear, opaque = (np.dstack([photo, np.full((40, 60), alpha, np.uint8)]) for alpha in (0, 255))
    assert imgsvc.compare(clear, opaque).dssim > 0.1
    white = np.full((40, 60, 3), 255, np.uint8)
    assert imgsvc.compare(white, np.dstack([white, np.zeros((40, 60), np.uint8)])).dssim == 99


def test_depth_and_orientation_do_not_count() -> None:
    gray = as_vips(coffee()).colourspace("b-w")
    deep = gray.colourspace("grey16")
    assert imgsvc.compare(gray.pngsave_buffer(), deep.pngsave_buffer()).dssim < 0.001
    turned = as_vips(coffee()).rot270().copy()
    turned.set_type(pyvips.GValue.gint_type, "orientation", 6)
    assert imgsvc.compare(as_vips(coffee()).pngsave_buffer(), turned.tiffsave_buffer()).ssimulacra2 == 100


def test_pictures_of_other_sizes_are_refused() -> None:
    with pytest.raises(UnsupportedOperation, match="the same size to be compared, got 60x40 and 59x40"):
        imgsvc.compare(np.ascontiguousarray(coffee()[:40, :60]), np.ascontiguousarray(coffee()[:40, :59]))
    with pytest.raises(UnsupportedOperation, match="the same size to be compared, got 1x1 and 8x8"):
        imgsvc.compare(np.zeros((1, 1, 3), "uint8"), np.zeros((8, 8, 3), "uint8"))
    data = encoded.jpeg().data
    with pytest.raises(CorruptImage, match="The other picture"):
        imgsvc.compare(data, data[: len(data) // 2])


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(encoded.jpeg().data)
    command = [sys.executable, "-m", "imgsvc_cli", "compare", "a.jpg"]
    done = subprocess.run([*command, "a.jpg"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "SSIMULACRA2 100.00, SSIM 1.0000, DSSIM 0.0000\n"
    missing = subprocess.run([*command, "b.jpg"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (missing.returncode, missing.stdout) == (3, "")
    assert "b.jpg" in missing.stderr
