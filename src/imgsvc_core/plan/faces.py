"""Boxes of faces, and the parts of a picture around them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs


@attrs.frozen
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


def _chosen(faces: Sequence[Face], which: str) -> Sequence[Face]:
    return faces if which == "all" else [max(faces, key=_area)]


def _area(face: Face) -> int:
    return face.width * face.height
