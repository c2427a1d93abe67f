"""GIF, by libvips."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import attrs
import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.readers.vips import animation, from_array, open_lazily, still, to_array, with_timing
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.errors import CorruptImage
from imgsvc_core.info import ImageInfo

_EXTENSION, _IMAGE, _TRAILER = 0x21, 0x2C, b"\x3b"
_CONTROL = 0xF9
_CLEAR, _RESTORE = 2, (3, 4)  # 4 is a common mistake for 3
_TRANSPARENT = b"\x21\xf9\x04\x01\0\0\0\0"  # the first color of the next frame
_ONE_PIXEL = b"\x02\x02\x44\x01\0"  # of the first color, compressed


@attrs.frozen
class _Frame:
    """Where a frame lies on the screen, what becomes of it, its transparent color, and its block."""

    left: int
    top: int
    width: int
    height: int
    disposal: int
    transparent: int | None
    block: slice

    def covers(self, other: _Frame) -> bool:
        """Whether all of another frame lies below this one."""
        return (
            self.left <= other.left
            and self.top <= other.top
            and self.left + self.width >= other.left + other.width
            and self.top + self.height >= other.top + other.height
        )


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Grey or RGB, with alpha where a frame has a transparent color or the empty screen shows."""
    if not (settings.all_frames and info.animated):
        return still(_open(source, info, settings, moving=False))
    data = source.buffer()
    frames = _frames(data)
    if info.alpha and _clears_what_is_opaque(frames):
        strip = from_array(_composed(bytes(data), frames[: info.frames], info, settings))
        return with_timing(strip, info.height, info.delays, info.plays)
    return animation(_open(source, info, settings, moving=True), info)


def _open(source: ByteSource, info: ImageInfo, settings: LoadSettings, *, moving: bool) -> pyvips.Image:
    """The frames as libvips shows them, on the screen that the file declares.

    libvips' decoder (libnsgif) holds a screen of the size of a monitor, or of more than 2048 pixels, for that
    of the author's display, and takes the first frame for the picture; and where no frame has a transparent
    color, libvips shows the empty screen as black. So one pixel in the far corner is put before the first
    frame then. It is transparent, as the empty screen is, except where the frames cover all of it and nothing
    else is transparent either.
    """
    options = {"n": -1} if moving else {}
    image = open_lazily("gif", source, settings, fail_on="error", **options)
    whole = (image.width, image.get_page_height()) == (info.width, info.height)
    if whole and (image.hasalpha() or not info.alpha):
        return image
    data = bytes(source.buffer())
    start = 13 + _palette_bytes(data[10])
    patched = ByteSource(data[:start] + _corner(info, transparent=info.alpha) + data[start:])
    return open_lazily("gif", patched, settings, page=1, fail_on="error", **options)


def _corner(info: ImageInfo, *, transparent: bool) -> bytes:
    """A frame of one pixel in the far corner of the screen."""
    place = struct.pack("<HHHHB", info.width - 1, info.height - 1, 1, 1, 0x80)
    return (_TRANSPARENT if transparent else b"") + b"\x2c" + place + bytes(6) + _ONE_PIXEL


def _clears_what_is_opaque(frames: Sequence[_Frame]) -> bool:
    """Whether a frame without transparent colors goes and leaves nothing, and that is to be seen.

    Browsers show the empty screen there, libnsgif the background color.
    """
    return any(
        frame.disposal == _CLEAR
        and frame.transparent is None
        and not (following.covers(frame) and following.disposal not in _RESTORE)
        for frame, following in pairwise(frames)
    )


def _composed(data: bytes, frames: Sequence[_Frame], info: ImageInfo, settings: LoadSettings) -> Any:
    """The screen after each frame, below each other: (frames * height, width, 4)."""
    import numpy as np

    screen = np.zeros((info.height, info.width, 4), np.uint8)
    shown = np.empty((len(frames), *screen.shape), np.uint8)
    for index, frame in enumerate(frames):
        pixels = _alone(data, frame, info, settings)
        shown[index] = np.where(pixels[..., 3:], pixels, screen)
        if frame.disposal == _CLEAR:
            screen = shown[index].copy()
            screen[frame.top : frame.top + frame.height, frame.left : frame.left + frame.width] = 0
        elif frame.disposal not in _RESTORE:
            screen = shown[index]
    return shown.reshape(-1, *screen.shape[1:])


def _alone(data: bytes, frame: _Frame, info: ImageInfo, settings: LoadSettings) -> Any:
    """A frame on an empty screen."""
    start = 13 + _palette_bytes(data[10])
    control = struct.pack("<BBBBHBB", _EXTENSION, _CONTROL, 4, 1, 0, frame.transparent or 0, 0)
    parts = (
        data[:start],
        _corner(info, transparent=True),
        control if frame.transparent is not None else b"",
        data[frame.block],
        _TRAILER,
    )
    image = open_lazily("gif", ByteSource(b"".join(parts)), settings, page=1, fail_on="error")
    return to_array(image.colourspace("srgb"))


def _frames(data: Any) -> list[_Frame]:
    """What the file says of its frames.

    Refuses a file that ends inside a frame: libvips fills up the last frame of an animation silently. A file
    that only lacks its trailer is complete.
    """
    size = len(data)
    position = 13 + _palette_bytes(data[10])
    frames = []
    disposal, transparent = 0, None
    while position < size and data[position] in (_EXTENSION, _IMAGE):
        start = position
        is_frame = data[position] == _IMAGE and position + 10 < size
        if is_frame:
            position += 11 + _palette_bytes(data[position + 9])
        elif data[position] == _EXTENSION and position + 7 < size and data[position + 1] == _CONTROL:
            flags = data[position + 3]
            disposal, transparent = flags >> 2 & 7, data[position + 6] if flags & 1 else None
            position += 2
        else:
            position += 2
        while position < size and data[position]:
            position += 1 + data[position]
        position += 1
        if is_frame:
            left, top, width, height = struct.unpack_from("<HHHH", data, start + 1)
            block = slice(start, position)
            frames.append(_Frame(left, top, width, height, disposal, transparent, block))
            disposal, transparent = 0, None
    if position > size:
        raise CorruptImage("The GIF image is truncated inside a frame.")
    return frames


def _palette_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0
