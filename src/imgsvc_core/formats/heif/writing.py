"""HEIC and AVIF."""

from __future__ import annotations

import io
from typing import Any

import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE, frame_count, has
from imgsvc_core.formats import availability
from imgsvc_core.formats.boundary import encoder
from imgsvc_core.formats.boxes import make_box
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.content import choose_subsampling
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.heif import pillow_writing
from imgsvc_core.formats.heif.items import locate
from imgsvc_core.formats.invisible import blended
from imgsvc_core.formats.metadata import EXIF, XMP, blob
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.table import codec_effort

_COMPRESSIONS = {"heic": "hevc", "avif": "av1"}  # as libvips names them
_KEPT = {PROFILE: "icc", EXIF: "exif", XMP: "xmp"}
_NO_EXIF = b"II*\0\x08\0\0\0" + bytes(6)  # a block without tags
_START_OF_EXIF = 4  # bytes that tell how far the block begins after them
_BOX_HEAD = 8
_TILE = 512
# Above this size the encoder works tile by tile: a quarter of the memory.
_TILED_FROM = 2_000_000


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
    """Write 8 or 10 bits.

    Raises:
        MissingDependency: there is no encoder for HEVC.
    """
    if availability.writer_backend(settings.format) != "libvips":
        return _write_by_pillow_heif(image, settings, sink)
    moves = frame_count(image) > 1
    by_pillow = settings.format == "avif" and not moves and pillow_writing.suits(image, settings)
    usual = pillow_writing.EFFORT if by_pillow else None
    effort = codec_effort(settings.format, usual if settings.effort is None else settings.effort)
    if not isinstance(effort, int):  # a preset of x265
        effort = settings.effort or 0
    if moves:
        from imgsvc_core.formats.heif import animation

        return animation.write(image, settings, sink, effort)
    if by_pillow:
        return pillow_writing.write(image, settings, sink, effort)
    return _write_by_libvips(image, settings, sink, lossless=settings.lossless, effort=effort)


def _write_by_libvips(
    image: pyvips.Image, settings: SaveSettings, sink: Sink, **options: object
) -> SavedFacts:
    image, subsampling = choose_subsampling(image, settings)
    bits = 10 if image.format == "ushort" else 8
    block = blob(image, EXIF)
    keep = [flag for name, flag in _KEPT.items() if has(image, name)]
    encoded = sink
    if block:
        encoded, image = Sink(), image.copy()
        image.set_type(pyvips.GValue.blob_type, EXIF, _NO_EXIF)
    encoded.save(
        image, "heif", Q=settings.quality, bitdepth=bits, keep=":".join(keep) or "none", **options,
        compression=_COMPRESSIONS[settings.format], subsample_mode="on" if subsampling == "420" else "off",
    )  # fmt: skip
    if block:
        sink.write(_with_exif(encoded.data, block))
    sampling = "444" if settings.lossless else subsampling
    return {"colorspace": "srgb", "depth": bits, "subsample": ":".join(sampling)}


def _with_exif(encoded: bytes, block: bytes) -> bytes:
    """Return a file with this EXIF block in a box at its end.

    libvips fills blocks with defaults, and drops all of one that is larger than 64 kB.
    """
    place = locate(HeaderReader(ByteSource(encoded), "HEIF"), b"Exif")
    content = bytes(_START_OF_EXIF) + block
    start = len(encoded) + _BOX_HEAD
    offset = (start - place.base).to_bytes(place.size, "big")
    length = len(content).to_bytes(place.length_size, "big")
    rest = encoded[place.field + place.size + place.length_size :]
    return b"".join((encoded[: place.field], offset, length, rest, make_box(b"mdat", content)))


def _write_by_pillow_heif(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
    import pillow_heif

    image, subsampling = choose_subsampling(image, settings)
    if image.bands == 2:
        image = image.colourspace("rgb16" if image.format == "ushort" else "srgb")
    mode = {1: "L", 3: "RGB", 4: "RGBA"}[image.bands] + (";16" if image.format == "ushort" else "")
    pixels = blended(image).write_to_memory()
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
    return {
        "colorspace": "gray" if image.bands == 1 else "srgb",
        "depth": 10 if image.format == "ushort" else 8,
        "subsample": None if image.bands == 1 else ":".join(subsampling),
    }
