"""Facts from the pixels of a source, which a plan needs because sizes depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from imgsvc_core._runtime.records import frozen
from imgsvc_core.plan.faces import Face
from imgsvc_core.plan.geometry import Box
from imgsvc_core.spec import Redact, Trim


@frozen(kw_only=True)
class Seen:
    """The faces of the upright source, and its borders.

    Args:
        faces: the faces in the first frame, or None if no request looks at them.
        faces_of_frames: the faces in all frames, or None if no request redacts them.
        borders: for each trim, and what is redacted before it, the box inside of its border. A missing trim
            is planned for a source without a border.
    """

    faces: tuple[Face, ...] | None = None
    faces_of_frames: tuple[Face, ...] | None = None
    borders: Mapping[tuple[Trim, tuple[Redact, ...]], Box] = MappingProxyType({})


NOTHING_SEEN = Seen()
