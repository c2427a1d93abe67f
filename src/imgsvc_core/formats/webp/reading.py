"""WebP, by libvips; the decoder scales a still to any smaller size."""

from __future__ import annotations

import pyvips

from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import animation, open_lazily, still
from imgsvc_core.formats.webp import Webp
from imgsvc_core.formats.webp.header import with_sound_flags


def read(picture: Webp, settings: LoadSettings) -> pyvips.Image:
    """Return RGB, with alpha if a pixel may be transparent. An animation is always at its full size."""
    info = picture.info
    source = with_sound_flags(picture.source, alpha=info.alpha)
    if settings.all_frames and info.animated:
        image = animation(open_lazily("webp", source, settings, n=-1, fail_on="error"), info)
    else:
        scale = 1.0 if info.animated else min(settings.scale, 1.0)
        image = still(open_lazily("webp", source, settings, scale=scale, fail_on="error"))
    opaque = not info.alpha and image.bands == 4  # libvips gives alpha to all animations
    return image[:3] if opaque else image
