"""What libvips knows of a picture, out of its header: the attributes of the binding take twice as long."""

from __future__ import annotations

import pyvips


def has(image: pyvips.Image, field: str) -> bool:
    """Whether a field of metadata is attached to it."""
    return bool(pyvips.vips_lib.vips_image_get_typeof(image.pointer, field.encode()))


def size_of(image: pyvips.Image) -> tuple[int, int]:
    """Width and height in pixels; of an animation, the height of all frames."""
    return image.get("width"), image.get("height")


def samples_of(image: pyvips.Image) -> str:
    """The type of its samples, such as ``uchar`` or ``ushort``."""
    kind: str = image.get("format")
    return kind


def space_of(image: pyvips.Image) -> str:
    """What its channels mean, such as ``srgb`` or ``b-w``."""
    space: str = image.get("interpretation")
    return space
