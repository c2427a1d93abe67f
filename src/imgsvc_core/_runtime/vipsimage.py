"""Fields and frames of libvips images, as codecs and pixels both need them.

libvips keeps an animation as one tall strip of frames, with the height of a frame as ``page-height``.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import pyvips

from imgsvc_core._runtime.machine import fewer_cores
from imgsvc_core.errors import MissingDependency

if pyvips.version(0) == 8 and pyvips.version(1) < 16:
    raise MissingDependency(
        f"libvips 8.16 or newer is needed, got 8.{pyvips.version(1)}, with which pip built pyvips because "
        "its headers are installed: run 'pip install --force-reinstall --no-deps pyvips-binary'."
    )

PROFILE = "icc-profile-data"
_MODELS = {
    "srgb": b"RGB ", "rgb": b"RGB ", "rgb16": b"RGB ", "b-w": b"GRAY", "grey16": b"GRAY", "cmyk": b"CMYK",
}  # fmt: skip


def has(image: pyvips.Image, field: str) -> bool:
    """Return True if a metadata field is attached to the image."""
    return bool(pyvips.vips_lib.vips_image_get_typeof(image.pointer, field.encode()))


def limit_threads(image: pyvips.Image, threads: int | None) -> None:
    """Set the number of threads that libvips uses for an image, by default one for each core. The image must
    not be shared yet.

    libvips itself counts the cores of the machine, and ignores control groups.
    """
    threads = threads or fewer_cores()
    if threads:
        image.set_type(pyvips.GValue.gint_type, "concurrency", threads)


def field_names(image: pyvips.Image) -> list[str]:
    """Return the names of all fields. Bytes of PNG keywords in other encodings become surrogates."""
    names = pyvips.vips_lib.vips_image_get_fields(image.pointer)
    found: list[str] = []
    while names[len(found)] != pyvips.ffi.NULL:
        found.append(os.fsdecode(pyvips.ffi.string(names[len(found)])))
    for name in range(len(found)):
        pyvips.glib_lib.g_free(names[name])
    pyvips.glib_lib.g_free(names)
    return found


def remove_field(image: pyvips.Image, name: str) -> None:
    """Remove a field, which may be named in any encoding, from an image that is not shared yet."""
    pyvips.vips_lib.vips_image_remove(image.pointer, os.fsencode(name))


def size_of(image: pyvips.Image) -> tuple[int, int]:
    """Return width and height in pixels; of an animation, the height of all frames together."""
    return _number(image, b"width"), _number(image, b"height")


def bands_of(image: pyvips.Image) -> int:
    """Return the number of bands."""
    return _number(image, b"bands")


def samples_of(image: pyvips.Image) -> str:
    """Return the type of the samples, such as ``uchar`` or ``ushort``."""
    return _name(image, b"format")


def space_of(image: pyvips.Image) -> str:
    """Return the color space of the samples (libvips' interpretation), such as ``srgb`` or ``b-w``."""
    return _name(image, b"interpretation")


# ``get`` and the attributes of the binding take ten and twenty times as long.


def _number(image: pyvips.Image, field: bytes) -> int:
    number: int = pyvips.gobject_lib.g_value_get_int(_value(image, field))
    return number


def _name(image: pyvips.Image, field: bytes) -> str:
    value = _value(image, field)
    return _nick(value.g_type, pyvips.gobject_lib.g_value_get_enum(value))


def _value(image: pyvips.Image, field: bytes) -> Any:
    """Return the value of a field that is a number and so needs not be freed."""
    value = pyvips.ffi.new("GValue *")
    pyvips.vips_lib.vips_image_get(image.pointer, field, value)
    return value


@functools.cache
def _nick(kind: int, number: int) -> str:
    """Return the name of a value of an enumeration."""
    nick: bytes = pyvips.ffi.string(pyvips.vips_lib.vips_enum_nick(kind, number))
    return nick.decode()


def has_profile(image: pyvips.Image) -> bool:
    """Return True if the image has a color profile of its own color model."""
    if not has(image, PROFILE):
        return False
    profile: bytes = image.get(PROFILE)
    return profile[16:20] == _MODELS.get(space_of(image)) and profile[36:40] == b"acsp"


def frame_count(image: pyvips.Image) -> int:
    """Return the number of frames in the strip."""
    return int(image.height // image.get_page_height())


def split_frames(image: pyvips.Image) -> list[pyvips.Image]:
    """Return each frame of the strip as an image of its own."""
    height = image.get_page_height()
    return [image.crop(0, top, image.width, height) for top in range(0, image.height, height)]


def first_frames(image: pyvips.Image, count: int) -> pyvips.Image:
    """Return the strip of the first frames, with their delays."""
    first = image.crop(0, 0, image.width, count * image.get_page_height()).copy()
    first.set_type(pyvips.GValue.gint_type, "n-pages", count)
    if has(image, "delay"):
        first.set_type(pyvips.GValue.array_int_type, "delay", image.get("delay")[:count])
    return first


def join_frames(frames: list[pyvips.Image]) -> pyvips.Image:
    """Join frames of equal size to a strip, with the delays and the loop count of the first one."""
    if len(frames) == 1:
        return frames[0]
    strip = pyvips.Image.arrayjoin(frames, across=1).copy()
    strip.set_type(pyvips.GValue.gint_type, "page-height", frames[0].height)
    return strip
