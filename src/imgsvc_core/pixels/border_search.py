"""Look for a border to trim in the pixels of a source before its plan is made."""

from __future__ import annotations

import pyvips

from imgsvc_core._runtime.deadline import Deadline, in_memory
from imgsvc_core._runtime.vipsimage import join_frames, split_frames
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.limits import Limits, check_memory, check_rendered
from imgsvc_core.pixels import colorspace, resampling
from imgsvc_core.plan import turns
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.memory import border_search, border_search_bound
from imgsvc_core.plan.redaction import NOTHING_REDACTED, Redaction
from imgsvc_core.sources.opening import Opened
from imgsvc_core.spec import Trim


def find_border(
    opened: Opened, trim: Trim, limits: Limits, deadline: Deadline, redaction: Redaction = NOTHING_REDACTED
) -> Box:
    """Return the box inside of the border of all frames, in pixels of the upright image.

    What is redacted is covered before, so that the border does not tell what it was.
    The source is decoded in full, because a smaller copy would blur the border.
    """
    from imgsvc_core.pixels import border  # few requests need it

    info = opened.info
    if info.vector:
        check_rendered(info.width, info.height, limits)
    check_memory(border_search_bound(info), limits)
    stored, back = Size(info.width, info.height), turns.inverse(info.orientation)
    upright = Size(*info.upright_size)
    end = upright.width - 1, upright.height - 1
    corner = turns.turned_box(Box(*(end if trim.from_end else (0, 0)), 1, 1), upright, back)
    load = border_search(info, all_frames=not (trim.libvips or trim.pillow))
    with translate_errors(info.format), deadline.watching(opened.load_image(load)) as source:
        image = colorspace.to_srgb(source, info.rgb_space)
        if redaction.covered:
            image = _redacted(image, redaction, info.orientation)
        elif (corner.left, corner.top) != (0, 0):  # it would be read before what lies above it
            image = in_memory(image)
        with deadline.watching(image) as watched:
            if trim.libvips:
                box = border.enclosed_by_libvips(watched, trim)
            elif trim.pillow:
                box = border.enclosed_by_distance(watched, (corner.left, corner.top), trim)
            else:
                box = border.enclosed(watched, stored, (corner.left, corner.top), trim)
    return turns.turned_box(box, stored, info.orientation)


def _redacted(image: pyvips.Image, redaction: Redaction, orientation: int) -> pyvips.Image:
    """Return a stored picture with its frames covered as they are when they are upright."""
    from imgsvc_core.pixels.redaction import redact  # few requests need it

    upright = (resampling.turn(frame, orientation) for frame in split_frames(in_memory(image)))
    back = turns.inverse(orientation)
    covered = [resampling.turn(redact(frame, redaction), back) for frame in upright]
    return join_frames(covered)
