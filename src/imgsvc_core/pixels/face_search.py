"""Look for faces in a source, before its plan is made."""

from __future__ import annotations

from imgsvc_core._runtime.deadline import Deadline, in_memory
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.limits import Limits, check_memory
from imgsvc_core.pixels import colorspace, resampling
from imgsvc_core.plan import faces
from imgsvc_core.plan.faces import Face
from imgsvc_core.plan.loading import scale_for
from imgsvc_core.plan.memory import decoded_bound
from imgsvc_core.sources.opening import Opened

_LONGER_SIDE = 640  # pixels of the copy that faces are looked for in


def find_faces(opened: Opened, limits: Limits, deadline: Deadline) -> tuple[Face, ...]:
    """Return the faces in the first frame, in pixels of the upright image."""
    info = opened.info
    if not faces.can_show(info.width, info.height):
        return ()
    scale = scale_for(info, max(1.0, max(info.width, info.height) / _LONGER_SIDE), all_frames=False)
    settings = LoadSettings(scale=scale, sequential=True)
    check_memory(decoded_bound(info, settings), limits)
    with translate_errors(info.format), deadline.watching(opened.load(settings)) as source:
        image = source.crop(0, 0, source.width, source.get_page_height())
        upright = resampling.turn(in_memory(colorspace.to_srgb(image, info.rgb_space)), info.orientation)
        found = faces.detect(upright)
    across = info.upright_size[0] / upright.width
    down = info.upright_size[1] / upright.height
    return tuple(faces.scaled(face, across, down) for face in found)
