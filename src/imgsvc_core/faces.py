"""Faces in a picture, by OpenCV, which is the extra ``[faces]``."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from imgsvc_core.errors import MissingDependency

if TYPE_CHECKING:
    import pyvips

_CASCADE = "haarcascade_frontalface_alt2.xml"
_LONGER_SIDE = 480  # pixels of the copy that is searched
_SMALLEST = 1 / 18  # of the shorter side of the picture: what is smaller is no face that one crops to
_SCALE_STEP = 1.1
_NEIGHBORS = 3


@attrs.frozen
class Face:
    """A face in a picture: its box in pixels, and how sure the detector is (higher is surer)."""

    left: int
    top: int
    width: int
    height: int
    score: float


def detect(image: pyvips.Image, *, model: Path | None = None) -> tuple[Face, ...]:
    """The faces of an upright picture in sRGB or grey, the largest first, in its pixels.

    Frontal faces up to some 20 degrees off the vertical are found. With ``model``, the file of a YuNet
    network, that is used instead of the cascade that comes with OpenCV.

    Raises:
        MissingDependency: OpenCV is not installed.
    """
    cv2 = _opencv()
    factor = max(1.0, max(image.width, image.height) / _LONGER_SIDE)
    small = _reduced(image, factor)
    found = _by_network(cv2, small, model) if model else _by_cascade(cv2, small)
    faces = (scaled(face, image.width / small.width, image.height / small.height) for face in found)
    return tuple(sorted(faces, key=_area, reverse=True))


def scaled(face: Face, across: float, down: float) -> Face:
    """The face in the same picture at another size."""
    return attrs.evolve(
        face,
        left=round(face.left * across),
        top=round(face.top * down),
        width=max(1, round(face.width * across)),
        height=max(1, round(face.height * down)),
    )


def face_region(
    faces: Sequence[Face], size: tuple[int, int], padding: float, which: str
) -> tuple[int, int, int, int]:
    """Left, top, width and height of the part of a picture that holds the largest or all faces.

    ``padding`` is the room on every side of a face in sizes of it; the part ends at the picture's edges.
    """
    chosen = _chosen(faces, which)
    left = min(face.left - face.width * padding for face in chosen)
    top = min(face.top - face.height * padding for face in chosen)
    right = max(face.left + face.width * (1 + padding) for face in chosen)
    bottom = max(face.top + face.height * (1 + padding) for face in chosen)
    x = min(max(math.floor(left), 0), size[0] - 1)
    y = min(max(math.floor(top), 0), size[1] - 1)
    return x, y, max(1, min(math.ceil(right), size[0]) - x), max(1, min(math.ceil(bottom), size[1]) - y)


def face_center(faces: Sequence[Face], which: str) -> tuple[float, float]:
    """The middle of the largest face, or of the box around all."""
    chosen = _chosen(faces, which)
    left, top = min(face.left for face in chosen), min(face.top for face in chosen)
    right = max(face.left + face.width for face in chosen)
    bottom = max(face.top + face.height for face in chosen)
    return (left + right) / 2, (top + bottom) / 2


def _chosen(faces: Sequence[Face], which: str) -> Sequence[Face]:
    return faces if which == "all" else [max(faces, key=_area)]


def _area(face: Face) -> int:
    return face.width * face.height


_importing = threading.Lock()
"""OpenCV imports itself twice: who imports it meanwhile would get half of it."""


def _opencv() -> Any:
    try:
        with _importing:
            import cv2
    except ImportError as error:
        raise MissingDependency(
            "Looking for faces needs OpenCV: install it with pip install 'imgsvc[faces]'."
        ) from error
    return cv2


_cascade_in_use = threading.Lock()
"""It keeps what it computes in itself, and in OpenCV that ends the process where two threads look at once."""


@functools.cache
def _cascade() -> Any:
    cv2 = _opencv()
    return cv2.CascadeClassifier(str(Path(cv2.data.haarcascades) / _CASCADE))


def _reduced(image: pyvips.Image, factor: float) -> pyvips.Image:
    if image.hasalpha():
        image = image.flatten(background=[255 << (8 if image.format == "ushort" else 0)])
    if factor > 1:
        image = image.shrink(min(factor, image.width), min(factor, image.height))
    if image.format == "ushort":
        image = image.colourspace("srgb" if image.bands == 3 else "b-w")
    return image.cast("uchar").copy_memory()


def _by_cascade(cv2: Any, small: pyvips.Image) -> list[Face]:
    gray = cv2.equalizeHist(small.colourspace("b-w").extract_band(0).numpy())
    smallest = max(20, round(min(small.width, small.height) * _SMALLEST))
    with _cascade_in_use:
        boxes, _, weights = _cascade().detectMultiScale3(
            gray,
            scaleFactor=_SCALE_STEP,
            minNeighbors=_NEIGHBORS,
            minSize=(smallest, smallest),
            outputRejectLevels=True,
        )
    return [
        Face(int(left), int(top), int(width), int(height), round(float(weight), 3))
        for (left, top, width, height), weight in zip(boxes, weights, strict=True)
    ]


def _by_network(cv2: Any, small: pyvips.Image, model: Path) -> list[Face]:
    detector = cv2.FaceDetectorYN.create(str(model), "", (small.width, small.height))
    pixels = small.colourspace("srgb").numpy()[:, :, ::-1].copy()
    _, rows = detector.detect(pixels)
    return [
        Face(max(0, int(row[0])), max(0, int(row[1])), int(row[2]), int(row[3]), round(float(row[-1]), 3))
        for row in (rows if rows is not None else ())
    ]
