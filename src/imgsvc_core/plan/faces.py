"""Boxes of faces, the parts of a picture around them, and their places after a step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.plan import geometry
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.steps import Step


@frozen
class Face:
    """A face in a picture: its box in pixels, and the confidence of the detector, from 0.8 to 1."""

    left: int
    top: int
    width: int
    height: int
    score: float


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


def tracked(faces: Iterable[Face], step: Step, before: Size, after: Size) -> tuple[Face, ...]:
    """Return the faces that are left after a step, cut at the edges of the frame.

    A face stays as long as its center is in the frame.
    """
    moved = ((face, step.box_after(box_of(face), before)) for face in faces)
    inside = ((face, geometry.clipped(after, *box)) for face, box in moved if _center_is_in(after, box))
    return tuple(attrs.evolve(face, **box._asdict()) for face, box in inside if box)


def box_of(face: Face) -> Box:
    """Return the box of a face."""
    return Box(face.left, face.top, face.width, face.height)


def _center_is_in(frame: Size, box: Box) -> bool:
    across, down = box.left + box.width / 2, box.top + box.height / 2
    return 0 <= across <= frame.width and 0 <= down <= frame.height


def _chosen(faces: Sequence[Face], which: str) -> Sequence[Face]:
    return faces if which == "all" else [max(faces, key=lambda face: face.width * face.height)]
