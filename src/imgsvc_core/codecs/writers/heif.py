"""HEIC and AVIF."""

from __future__ import annotations

import io
from typing import Any

import pyvips

from imgsvc_core.codecs import availability
from imgsvc_core.codecs.boundary import encoder
from imgsvc_core.codecs.metadata import EXIF, PROFILE, XMP, blob, keep_flags
from imgsvc_core.codecs.settings import SaveSettings
from imgsvc_core.codecs.table import codec_effort
from imgsvc_core.codecs.writers.content import choose_subsampling
from imgsvc_core.codecs.writers.sink import Sink

_TILE = 512
# Above this size the encoder works tile by tile: a quarter of the memory.
_TILED_FROM = 2_000_000


def write_avif(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> None:
    """Write 8 or 10 bits."""
    effort = codec_effort("avif", settings.effort)
    _write_by_libvips(image, settings, sink, compression="av1", effort=effort, lossless=settings.lossless)


def write_heic(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> None:
    """Write 8 or 10 bits; raise `MissingDependency` without a HEVC encoder."""
    if availability.writer_backend("heic") == "libvips":
        _write_by_libvips(image, settings, sink, compression="hevc", effort=settings.effort or 0)
    else:
        _write_by_pillow_heif(image, settings, sink)


def _write_by_libvips(image: pyvips.Image, settings: SaveSettings, sink: Sink, **options: object) -> None:
    image, subsampling = choose_subsampling(image, settings)
    bits = 10 if image.format == "ushort" else 8
    sink.save(
        image, "heif", Q=settings.quality, bitdepth=bits, keep=keep_flags(image), **options,
        subsample_mode="on" if subsampling == "420" else "off",
    )  # fmt: skip


def _write_by_pillow_heif(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> None:
    import pillow_heif

    image, subsampling = choose_subsampling(image, settings)
    if image.bands == 2:
        image = image.colourspace("rgb16" if image.format == "ushort" else "srgb")
    mode = {1: "L", 3: "RGB", 4: "RGBA"}[image.bands] + (";16" if image.format == "ushort" else "")
    pixels = image.write_to_memory()
    profile = blob(image, PROFILE)
    options = {"tile_size": _TILE} if image.width * image.height > _TILED_FROM else {}
    effort = codec_effort("heic", settings.effort)
    encoded = io.BytesIO()
    with encoder("heic"):
        picture = pillow_heif.from_bytes(mode, (image.width, image.height), pixels)
        if profile:
            facts: dict[str, Any] = picture[0].info
            facts.update(icc_profile=profile, icc_profile_type="prof")
        picture.save(
            encoded, quality=settings.quality, exif=blob(image, EXIF), xmp=blob(image, XMP),
            enc_params={"preset": effort}, chroma=subsampling, **options,
        )  # fmt: skip
    sink.write(encoded.getvalue())
