"""The boxes that a request redacts, in pixels of the upright picture."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import Problem, SpecError, invalid
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.plan import turns
from imgsvc_core.plan.faces import Face
from imgsvc_core.plan.geometry import Box, Size, clipped
from imgsvc_core.spec import Color, Length, Redact
from imgsvc_core.spec.color import BLACK
from imgsvc_core.spec.redact import Cover

_AROUND_FACES = 0.2  # sizes of a face on every side; the detector leaves out hair and ears


@frozen
class Covered:
    """A box and what covers it."""

    box: Box
    mode: Cover
    color: Color


@frozen
class Redaction:
    """All boxes of a picture, in the order of covering."""

    covered: tuple[Covered, ...]

    @property
    def text(self) -> str:
        """What is done, in a few words."""
        if not self.covered:
            return "redact faces, if there are any"
        counts = Counter(item.mode for item in self.covered)
        return f"redact boxes: {', '.join(f'{count} in {mode}' for mode, count in counts.items())}"


NOTHING_REDACTED = Redaction(())


def redaction_of(asked: Sequence[Redact], info: ImageInfo, faces: Iterable[Face] | None) -> Redaction:
    """Return the boxes of a request for a source.

    Args:
        asked: the entries of the request.
        info: the facts of the source.
        faces: the faces of the upright source in any of its frames, or None if nobody has looked for them.

    Raises:
        SpecError: a box lies outside of the picture or has no pixels, or there are no faces.
    """
    covered: list[Covered] = []
    problems: list[Problem] = []
    size = Size(*info.upright_size)
    for place, item in enumerate(asked):
        path = f"redact[{place}]"
        try:
            boxes = _face_boxes(item, path, faces) if item.faces else [_box(item, path, size)]
        except SpecError as error:
            problems += error.problems
            continue
        whole = (_with_traces(box, info) for box in boxes)
        covered += (Covered(box, item.mode, item.color or BLACK) for box in whole if box is not None)
    if problems:
        raise SpecError(problems)
    return Redaction(tuple(covered))


def _box(item: Redact, path: str, size: Size) -> Box:
    """Return all pixels that the box of an entry touches, also those outside of the picture."""
    left, width = _span(item, path, "x", "width", size.width)
    top, height = _span(item, path, "y", "height", size.height)
    return Box(left, top, width, height)


def _span(item: Redact, path: str, place: str, side: str, whole: int) -> tuple[int, int]:
    start: Length = getattr(item, place)
    length: Length = getattr(item, side)
    begin, end = start.of(whole), start.of(whole) + length.of(whole)
    if begin == end:
        expected = f"Redact '{side}' parameter must come out as more than 0 pixels"
        raise invalid(f"{path}.{side}", expected, f"got {length} of {whole:,}")
    if end <= 0 or begin >= whole:
        expected = f"Redact '{place}' parameter must lead to a box that reaches into the picture"
        got = f"got {begin:g} to {end:g} in a picture of {whole:,} pixels"
        raise invalid(f"{path}.{place}", expected, got)
    return math.floor(begin), math.ceil(end) - math.floor(begin)


def _face_boxes(item: Redact, path: str, faces: Iterable[Face] | None) -> list[Box]:
    boxes = [_around(face) for face in faces or ()]
    if faces is not None and not boxes and not item.if_found:
        expected = "Redact 'faces' parameter needs a face in the picture"
        raise invalid(f"{path}.faces", expected, "found none; 'if_found' lets such pictures pass")
    return _merged(boxes)


def _around(face: Face) -> Box:
    across, down = face.width * _AROUND_FACES, face.height * _AROUND_FACES
    left, top = math.floor(face.left - across), math.floor(face.top - down)
    right, bottom = math.ceil(face.left + face.width + across), math.ceil(face.top + face.height + down)
    return Box(left, top, right - left, bottom - top)


def _merged(boxes: Iterable[Box]) -> list[Box]:
    """Return boxes that cover all of these, without overlaps."""
    found: list[Box] = []
    for box in boxes:
        while other := next((other for other in found if clipped_to(box, other)), None):
            found.remove(other)
            left, top = min(box.left, other.left), min(box.top, other.top)
            right, bottom = max(box.right, other.right), max(box.bottom, other.bottom)
            box = Box(left, top, right - left, bottom - top)
        found.append(box)
    return found


def clipped_to(box: Box, frame: Box) -> Box | None:
    """Return the part of a box that lies in another one, or None."""
    part = clipped(frame.size, *box.shifted(-frame.left, -frame.top))
    return part.shifted(frame.left, frame.top) if part else None


def _with_traces(box: Box, info: ImageInfo) -> Box | None:
    """Return a box with all that shows traces of it in a lossy file, as far as the picture reaches."""
    upright, stored = Size(*info.upright_size), Size(info.width, info.height)
    row = FORMATS.get(info.format)
    side, beyond = row.traces(info) if row else (1, 0)
    part = clipped(upright, *box)
    if (side, beyond) == (1, 0) or part is None:
        return part
    turned = turns.turned_box(part, upright, turns.inverse(info.orientation))
    left, top = (start // side * side - beyond for start in (turned.left, turned.top))
    right, bottom = (-(-end // side) * side + beyond for end in (turned.right, turned.bottom))
    whole = clipped(stored, left, top, right - left, bottom - top)
    assert whole is not None
    return turns.turned_box(whole, stored, info.orientation)
