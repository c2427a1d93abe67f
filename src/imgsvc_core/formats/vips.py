"""Open files by the libvips loader of their format, and convert between images of libvips and arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyvips

from imgsvc_core._runtime.private_names import keep_alive
from imgsvc_core._runtime.vipsimage import bands_of, has, has_profile, samples_of, size_of, space_of
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.metadata import BLOBS
from imgsvc_core.formats.settings import LoadSettings

_FORMATS = {
    "uint8": "uchar", "int8": "char", "uint16": "ushort", "int16": "short", "uint32": "uint", "int32": "int",
    "float32": "float",
}  # fmt: skip
ANIMATION_FIELDS = ("n-pages", "page-height", "delay", "loop", "gif-delay", "gif-loop")
KEPT_FIELDS = (*BLOBS, *ANIMATION_FIELDS, "resolution-unit", "concurrency")
"""The metadata that pixels in memory keep."""


def open_lazily(loader: str, source: ByteSource, settings: LoadSettings, **options: object) -> pyvips.Image:
    """Open the source with the named libvips loader; pixels are decoded when they are asked for."""
    connection = source.vips()
    access = "sequential" if settings.sequential else "random"
    image = pyvips.Operation.call(f"{loader}load_source", connection, access=access, **options)
    # The binding keeps the memory behind a source alive only for its generic loaders.
    keep_alive(image, connection)
    return image


def still(image: pyvips.Image) -> pyvips.Image:
    """Return the image without the fields of an animation."""
    present = [name for name in ANIMATION_FIELDS if has(image, name)]
    if not present:
        return image
    image = image.copy()
    for name in present:
        image.remove(name)
    return image


def animation(image: pyvips.Image, info: ImageInfo) -> pyvips.Image:
    """Return the strip with the timing of the file: libvips itself lengthens short delays.

    Raises:
        CorruptImage: frames are missing at the end of a truncated file.
    """
    found = image.height // image.get_page_height()
    if found < info.frames:
        raise CorruptImage(f"The image is truncated: {found} of {info.frames} frames are there.")
    return with_timing(image, image.get_page_height(), info.delays, info.plays)


def with_timing(
    image: pyvips.Image, page_height: int, delays: tuple[int, ...], plays: int | None
) -> pyvips.Image:
    """Return a strip with the fields of an animation: ``delay`` in ms, ``loop`` as plays or 0 for ever."""
    frames = image.height // page_height
    image = image.copy()
    set_int(image, "page-height", page_height)
    set_int(image, "n-pages", frames)
    if delays:
        image.set_type(pyvips.GValue.array_int_type, "delay", list(delays[:frames]))
    if plays is not None:
        set_int(image, "loop", plays)
    return image


def set_int(image: pyvips.Image, name: str, value: int) -> None:
    """Set an integer field of an image that is not shared yet."""
    image.set_type(pyvips.GValue.gint_type, name, value)


def attach(image: pyvips.Image, fields: Mapping[str, bytes | None]) -> pyvips.Image:
    """Return the image with blobs such as ``icc-profile-data``; empty ones are left out."""
    image = image.copy()
    for name, blob in fields.items():
        if blob:
            image.set_type(pyvips.GValue.blob_type, name, blob)
    return image


def full_range(image: pyvips.Image, bits: int, *, limited: bool = False) -> pyvips.Image:
    """Stretch samples of 8 or 16 bits, of which the upper ``bits`` are used, so that white is the highest.

    In a limited range, black is 16 and white 235, of 8 bits.
    """
    all_bits = 8 if image.format == "uchar" else 16
    black, white = (16, 235) if limited else (0, 2**bits - 1)
    black, white = (level << all_bits - (8 if limited else bits) for level in (black, white))
    stretched = ((image - black) * ((2**all_bits - 1) / (white - black))).rint()
    return stretched.cast(image.format).copy(interpretation=image.interpretation)


def full_array(pixels: Any, bits: int) -> Any:
    """Return an array of 8 or 16 bits, of which the lower ``bits`` are used, so that white is the highest."""
    import numpy as np

    white, stored_white = np.iinfo(pixels.dtype).max, 2**bits - 1
    if stored_white >= white:
        return pixels
    levels = np.rint(np.arange(stored_white + 1) * (white / stored_white)).astype(pixels.dtype)
    return np.take(levels, pixels, mode="clip")


def from_real_numbers(image: pyvips.Image) -> pyvips.Image:
    """Map real numbers from 0 to 1, gray, RGB or CMYK with or without alpha, to 16 bits.

    The profile says what they mean, as it does for whole numbers. Without one they are linear light, as
    editors write them, and get the curve of sRGB.
    """
    space = "cmyk" if image.interpretation == "cmyk" else usual_interpretation(image.bands, "ushort")
    stored = (image * 65535).rint().cast("ushort").copy(interpretation=space)
    if space == "cmyk" or has_profile(stored):
        return stored
    colors = image.bands - (image.bands in (2, 4))
    light = [image.extract_band(min(band, colors - 1)) for band in range(3)]
    encoded = light[0].bandjoin(light[1:]).copy(interpretation="scrgb").colourspace("rgb16")
    encoded = encoded.extract_band(0, n=colors)
    if colors < image.bands:
        encoded = encoded.bandjoin(stored.extract_band(colors))
    return encoded.copy(interpretation=space)


def lab_from_bytes(image: pyvips.Image, *, signed: bool) -> pyvips.Image:
    """Convert CIELAB of 8 bits to real numbers. a and b are signed bytes (TIFF) or centered at 128 (PSD)."""
    lightness = image.extract_band(0) * (100 / 255)
    chroma = image.extract_band(1, n=2)
    chroma = chroma.copy(format="char") if signed else chroma - 128
    return lightness.bandjoin(chroma.cast("float")).copy(interpretation="lab")


def unpremultiplied(image: pyvips.Image) -> pyvips.Image:
    """Return a picture with its colors, which are multiplied by its alpha, divided by it."""
    divided = image.unpremultiply(max_alpha=65535 if image.format == "ushort" else 255)
    return divided.rint().cast(image.format).copy(interpretation=image.interpretation)


def from_array(array: Any, interpretation: str | None = None, **header: float) -> pyvips.Image:
    """Return an image on the memory of a contiguous array of (height, width[, bands]), without a copy.

    ``header`` are fields of libvips, such as ``xres``.
    """
    import numpy as np

    array = np.ascontiguousarray(array)
    height, width = array.shape[:2]
    bands = 1 if array.ndim == 2 else array.shape[2]
    format = _FORMATS[array.dtype.name]
    image = pyvips.Image.new_from_memory(array.data, width, height, bands, format)
    return image.copy(interpretation=interpretation or usual_interpretation(bands, format), **header)


def with_pixels(image: pyvips.Image, pixels: Any) -> pyvips.Image:
    """Return the image with the pixels of a contiguous array of (height, width, bands), without a copy."""
    found = from_array(pixels, space_of(image), xres=image.get("xres"), yres=image.get("yres"))
    for name in KEPT_FIELDS:
        if has(image, name):
            found.set_type(image.get_typeof(name), name, image.get(name))
    return found


def to_array(image: pyvips.Image) -> Any:
    """Return the pixels as an array of (height, width, bands), also for one band or one pixel."""
    import numpy as np

    kind = {"uchar": np.uint8, "ushort": np.uint16}[samples_of(image)]
    width, height = size_of(image)
    return np.frombuffer(image.write_to_memory(), kind).reshape(height, width, bands_of(image))


def usual_interpretation(bands: int, format: str) -> str:
    """Return libvips' name of gray or RGB with 8 or 16 bits, with or without alpha."""
    if format == "ushort":
        return "grey16" if bands < 3 else "rgb16"
    return "b-w" if bands < 3 else "srgb"


def to_depth(image: pyvips.Image, bits: int) -> pyvips.Image:
    """Return samples of at most ``bits`` bits: 8, or 16 with the lower ones empty for 10 and 12."""
    format = samples_of(image)
    if format == "uchar" or (format == "ushort" and bits >= 16):
        return image
    if format != "ushort":
        return image.rint().cast("uchar")
    samples = pyvips.Image.identity(ushort=True)
    steps = (samples * ((2**bits - 1) / 65535)).rint()
    if bits > 8:
        return image.maplut((steps * 2 ** (16 - bits)).cast("ushort"))
    return image.maplut(steps.cast("uchar")).copy(interpretation=usual_interpretation(image.bands, "uchar"))
