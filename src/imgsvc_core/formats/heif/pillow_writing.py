"""AVIF by Pillow, whose encoder stores repeated parts and areas of few colors as such.

Screenshots and text become a third to two thirds as large as by libvips, which does not tell its encoder to
look for them. Photographs become the same in the same time.

Color has its full resolution unless told otherwise: photographs take up to 8 % fewer bytes for the same look,
hardly ever more, and as many if their source is a JPEG with less.
"""

from __future__ import annotations

import functools
import io
import os
from math import prod

import pyvips

from imgsvc_core._runtime.machine import fewer_cores
from imgsvc_core._runtime.vipsimage import PROFILE, has, samples_of, size_of
from imgsvc_core.formats.boundary import encoder
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.invisible import blended
from imgsvc_core.formats.metadata import EXIF, XMP, blob
from imgsvc_core.formats.settings import MOST_EXAMINED, SaveSettings
from imgsvc_core.formats.sink import Sink

FASTEST = 9  # the speed that is effort 0
EFFORT = 3  # by default: more than for large pictures, which would take the whole time limit
SHARPNESS = "3"
"""What libaom gives up of smoothness for detail, up to 7, its own choice. Photographs, graphics and gradients
become 1 to 2 % smaller for the same look by less of it, in the same time.
"""
_OPAQUE = 255
OPTIONS = {PROFILE: "icc_profile", EXIF: "exif", XMP: "xmp"}


@functools.cache
def has_avif() -> bool:
    """Return True if this Pillow was built with AVIF."""
    from PIL import features

    return bool(features.check("avif"))


def suits(image: pyvips.Image, settings: SaveSettings) -> bool:
    """Return True if the encoder keeps what is asked for: it takes 8 bits, with loss.

    Large pictures would take half as much memory again.
    """
    lossy = not settings.lossless and samples_of(image) == "uchar"
    return lossy and prod(size_of(image)) <= MOST_EXAMINED and has_avif()


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink, effort: int) -> SavedFacts:
    """Write a still of 8 bits."""
    from PIL import AvifImagePlugin, Image  # noqa: F401  (or Pillow loads all of its formats)

    subsampling = settings.subsampling or ("420" if image.bands < 3 else "444")
    image = (image.colourspace("srgb") if image.bands < 3 else image).copy_memory()
    if image.bands == 4 and image[3].min() == _OPAQUE:  # the encoder would leave it out, too
        image = image.extract_band(0, n=3)
    mode = "RGBA" if image.bands == 4 else "RGB"
    encoded = io.BytesIO()
    picture = Image.frombytes(mode, size_of(image), blended(image).write_to_memory())
    with encoder("avif"):
        picture.save(
            encoded, "AVIF", quality=settings.quality, speed=FASTEST - effort, autotiling=False,
            subsampling=":".join(subsampling), max_threads=_threads(image),
            advanced={"sharpness": SHARPNESS}, **metadata_options(image),
        )  # fmt: skip
    sink.write(encoded.getvalue())
    return {"colorspace": "srgb", "depth": 8, "alpha": mode == "RGBA", "subsample": ":".join(subsampling)}


def metadata_options(image: pyvips.Image) -> dict[str, bytes]:
    """Return the options of Pillow for the metadata of an upright image.

    If EXIF told an orientation, Pillow would write it anew, and not with all types.
    """
    options = {option: data for name, option in OPTIONS.items() if (data := blob(image, name))}
    if block := options.get("exif"):
        from imgsvc_core.formats.exif import without_orientation

        options["exif"] = without_orientation(block)
    return options


def _threads(image: pyvips.Image) -> int:
    """Return how many threads libvips uses for an image, but at least two: with one, bytes would differ."""
    threads = image.get("concurrency") if has(image, "concurrency") else fewer_cores() or os.cpu_count() or 1
    return max(2, threads)
