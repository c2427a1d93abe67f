"""JPEG, by jpegli for photographs, else by libvips."""

from __future__ import annotations

import pyvips

from imgsvc_core.formats.content import Examined, examine
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.jpeg import jpegli
from imgsvc_core.formats.metadata import jpeg_segments, keep_profile
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.table import codec_effort

_LEVELS: dict[int | str, dict[str, bool]] = {
    "plain": {},
    "optimized": {"optimize_coding": True},
    "trellis": {"optimize_coding": True, "trellis_quant": True},
    "exhaustive": {
        "optimize_coding": True, "trellis_quant": True, "overshoot_deringing": True, "optimize_scans": True,
    },
}  # fmt: skip

_QUICK = "plain"
_AFTER_START = 2  # the bytes of the first marker


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
    """Write photographs as baseline JPEGs and others as progressive ones, unless told otherwise.

    More effort makes photographs progressive, too.
    """
    examined = examine(image, settings)
    subsampling = examined.subsampling
    level = codec_effort("jpg", settings.effort)
    if level == _QUICK and subsampling == "420" and jpegli.can_write(image, settings):
        if not settings.photograph and examined.pixels is None:
            examined = Examined(examined.image.copy_memory(), subsampling)
        if settings.photograph or examined.smooth_share() <= jpegli.MOST_SMOOTH:
            assert settings.quality is not None
            sink.write(jpegli.encode(examined.image, settings.quality, examined.pixels))
            return {"interlaced": False, "subsample": ":".join(subsampling)}
    image = examined.in_memory
    del examined
    options = dict(_LEVELS[level])
    if settings.progressive is False:
        options.pop("optimize_scans", None)
    else:
        options["interlace"] = True
    sink.insert(_AFTER_START, jpeg_segments(image))
    sink.save(
        image, "jpeg", Q=settings.quality, keep=keep_profile(image), **options,
        subsample_mode="on" if subsampling == "420" else "off",
    )  # fmt: skip
    return {
        "interlaced": settings.progressive is not False,
        "subsample": None if image.bands < 3 else ":".join(subsampling),
    }
