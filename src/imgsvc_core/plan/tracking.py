"""The places of faces after a step."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from imgsvc_core.plan import geometry
from imgsvc_core.plan.faces import Face
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.steps import Step


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
