"""GIF, by libvips; Pillow checks the compressed data, of which libvips accepts what breaks off."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.headers.gif import CLEAR, RESTORE, Gif, GifFrame, read_gif
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.codecs.readers.vips import animation, from_array, open_lazily, still, to_array, with_timing
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.errors import CorruptImage
from imgsvc_core.info import ImageInfo

_TRANSPARENT = b"\x21\xf9\x04\x01\0\0\0\0"  # the first color of the next frame
_ONE_PIXEL = b"\x02\x02\x44\x01\0"  # of the first color, compressed
_TRAILER = b"\x3b"


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Return gray or RGB, with alpha if a frame has a transparent color or the empty screen shows."""
    data = source.buffer()
    gif = read_gif(HeaderReader(ByteSource(data), "GIF"))
    moving = settings.all_frames and info.animated
    _check_data(data, gif.frames if moving else gif.frames[:1])
    if not moving:
        return still(_open(data, gif, info, settings, moving=False))
    if gif.end > len(data):
        raise CorruptImage("The GIF image is truncated: it breaks off inside of a block.")
    if info.alpha and _clears_what_is_opaque(gif.frames):
        strip = from_array(_composed(bytes(data), gif, info, settings))
        return with_timing(strip, info.height, info.delays, info.plays)
    return animation(_open(data, gif, info, settings, moving=True), info)


def _check_data(data: Any, frames: Sequence[GifFrame]) -> None:
    """Raise `CorruptImage` if a frame has fewer pixels than it states, or codes that mean nothing.

    libvips' decoder (libnsgif) leaves the missing pixels as they were.
    """
    from PIL import Image

    for number, frame in enumerate(frames, start=1):
        pixels = bytes(data[frame.data + 1 : frame.end])
        bits = data[frame.data] if frame.data < len(data) else 0
        try:
            Image.frombytes("P", (frame.width, frame.height), pixels, "gif", bits, 0, -1)
        except ValueError as error:
            raise CorruptImage(f"The GIF image is damaged in its frame {number}: {error}.") from error


def _open(data: Any, gif: Gif, info: ImageInfo, settings: LoadSettings, *, moving: bool) -> pyvips.Image:
    """Open the frames as libvips shows them, on the screen that the file declares.

    libnsgif takes a screen of the size of a monitor, or of more than 2048 pixels, for that of the author's
    display, and uses the first frame as the screen; and if no frame has a transparent color, libvips shows
    the empty screen as black. In these cases one pixel in the far corner is put before the first frame. It is
    transparent, as the empty screen is, except if the frames cover all of it and nothing else is transparent.
    """
    options = {"n": -1} if moving else {}
    image = open_lazily("gif", ByteSource(data), settings, fail_on="error", **options)
    whole = (image.width, image.get_page_height()) == (info.width, info.height)
    if whole and (image.hasalpha() or not info.alpha):
        return image
    corner = _corner(info, transparent=info.alpha)
    patched = ByteSource(b"".join((data[: gif.start], corner, data[gif.start :])))
    return open_lazily("gif", patched, settings, page=1, fail_on="error", **options)


def _corner(info: ImageInfo, *, transparent: bool) -> bytes:
    """Return a frame of one pixel in the far corner of the screen."""
    place = struct.pack("<HHHHB", info.width - 1, info.height - 1, 1, 1, 0x80)
    return (_TRANSPARENT if transparent else b"") + b"\x2c" + place + bytes(6) + _ONE_PIXEL


def _clears_what_is_opaque(frames: Sequence[GifFrame]) -> bool:
    """Return True if a frame without transparent colors goes, leaves nothing, and that is to be seen.

    Browsers show the empty screen there, libnsgif the background color.
    """
    return any(
        frame.disposal == CLEAR
        and frame.transparent is None
        and not (
            following.covers(frame.left, frame.top, frame.left + frame.width, frame.top + frame.height)
            and following.disposal not in RESTORE
        )
        for frame, following in pairwise(frames)
    )


def _composed(data: bytes, gif: Gif, info: ImageInfo, settings: LoadSettings) -> Any:
    """Return the screen after each frame, below each other: (frames * height, width, 4)."""
    import numpy as np

    screen = np.zeros((info.height, info.width, 4), np.uint8)
    frames = gif.frames[: info.frames]
    shown = np.empty((len(frames), *screen.shape), np.uint8)
    for index, frame in enumerate(frames):
        pixels = _alone(data, gif, frame, info, settings)
        shown[index] = np.where(pixels[..., 3:], pixels, screen)
        if frame.disposal == CLEAR:
            screen = shown[index].copy()
            screen[frame.top : frame.top + frame.height, frame.left : frame.left + frame.width] = 0
        elif frame.disposal not in RESTORE:
            screen = shown[index]
    return shown.reshape(-1, *screen.shape[1:])


def _alone(data: bytes, gif: Gif, frame: GifFrame, info: ImageInfo, settings: LoadSettings) -> Any:
    """Return a frame on an empty screen."""
    control = b""
    if frame.transparent is not None:
        control = struct.pack("<BBBBHBB", 0x21, 0xF9, 4, 1, 0, frame.transparent, 0)
    corner = _corner(info, transparent=True)
    parts = (data[: gif.start], corner, control, data[frame.start : frame.end], _TRAILER)
    image = open_lazily("gif", ByteSource(b"".join(parts)), settings, page=1, fail_on="error")
    return to_array(image.colourspace("srgb"))
