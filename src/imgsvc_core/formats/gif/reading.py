"""GIF: Pillow decodes the frames, and this module lays them on each other as browsers do."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyvips

from imgsvc_core._runtime.deadline import check_time
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.gif import Gif
from imgsvc_core.formats.gif.header import CLEAR, RESTORE, GifFrame, GifHeader
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import from_array, with_timing

_BAND_PIXELS = 1 << 18
"""How many pixels get their colors at once: what fits into the caches."""


def read(picture: Gif, settings: LoadSettings) -> pyvips.Image:
    """Return gray or RGB, with alpha if a frame has a transparent color or the empty screen shows.

    An animation of which each pixel is opaque has no alpha.
    """
    data, gif, info = picture.source.buffer(), picture.header, picture.info
    moving = settings.all_frames and info.animated
    if moving and gif.end > len(data):
        raise CorruptImage("The GIF image is truncated: it breaks off inside of a block.")
    frames = gif.frames if moving else gif.frames[:1]
    palettes = {frame.palette: _colors(data, frame.palette) for frame in frames}
    gray = all((colors[:, :1] == colors[:, 1:3]).all() for colors in palettes.values())
    screens = _screens(data, gif, frames, palettes)
    first = next(screens)
    if moving:
        alpha = info.alpha and not (first[..., 3].all() and _stays_opaque(frames))
        strip = _strip(itertools.chain((first,), screens), len(frames), first.shape[:2], _bands(gray, alpha))
        return with_timing(from_array(strip), gif.height, info.delays, info.plays)
    return from_array(first[..., _bands(gray, info.alpha)])


def _strip(screens: Iterable[Any], frames: int, size: tuple[int, int], bands: slice) -> Any:
    """Return some bands of screens, below each other: (frames * height, width, bands)."""
    strip = np.empty((frames, *size, len(range(4)[bands])), np.uint8)
    for shown, screen in zip(strip, screens, strict=True):
        for band, samples in enumerate(range(4)[bands]):  # numpy copies pixels of three bytes slowly
            shown[..., band] = screen[..., samples]
    return strip.reshape(-1, *strip.shape[2:])


def _bands(gray: bool, alpha: bool) -> slice:
    """Return which bands of RGBA an image has."""
    if gray:
        return slice(0, 4, 3) if alpha else slice(1)
    return slice(4) if alpha else slice(3)


def _colors(data: Any, palette: tuple[int, int]) -> Any:
    """Return 256 colors in RGBA. Colors that a palette lacks are black, as in libvips."""
    start, end = palette
    stored = np.frombuffer(bytes(data[start:end]).ljust(end - start, b"\0"), np.uint8).reshape(-1, 3)
    colors = np.zeros((256, 4), np.uint8)
    colors[:, 3] = 255
    colors[: len(stored), :3] = stored
    return colors


def _stays_opaque(frames: Sequence[GifFrame]) -> bool:
    """Return True if no frame uncovers the empty screen that the first one covers."""
    return frames[0].disposal not in RESTORE and all(frame.disposal != CLEAR for frame in frames[:-1])


def _screens(data: Any, gif: GifHeader, frames: Sequence[GifFrame], palettes: Any) -> Iterator[Any]:
    """Yield the screen in RGBA while each frame is shown. It is changed for the next one."""
    screen = np.zeros((gif.height, gif.width), np.uint32)
    for number, frame in enumerate(frames, start=1):
        check_time()
        region = screen[frame.top : frame.top + frame.height, frame.left : frame.left + frame.width]
        before = region.copy() if frame.disposal in RESTORE and number < len(frames) else None
        colors = palettes[frame.palette].view(np.uint32)[:, 0]
        _lay(region, _decoded(data, frame, number), colors, frame.transparent)
        yield screen.view(np.uint8).reshape(gif.height, gif.width, 4)
        if before is not None:
            region[...] = before
        elif frame.disposal == CLEAR:
            region[...] = 0


def _lay(region: Any, indices: Any, colors: Any, transparent: int | None) -> None:
    """Color a region of the screen, as far as the frame lies on it."""
    height, width = region.shape
    rows = max(1, _BAND_PIXELS // max(1, width))
    for top in range(0, height, rows):
        band = indices[top : min(top + rows, height), :width]
        opaque = True if transparent is None else band != transparent
        np.copyto(region[top : top + rows], np.take(colors, band, mode="clip"), where=opaque)


def _decoded(data: Any, frame: GifFrame, number: int) -> Any:
    """Return the pixels of a frame as places in its palette.

    Raises `CorruptImage` if there are fewer than the frame states, or codes that mean nothing.
    """
    from PIL import Image

    codes = bytes(data[frame.data + 1 : frame.end])
    bits = data[frame.data] if frame.data < len(data) else 0
    try:
        picture = Image.frombytes("P", (frame.width, frame.height), codes, "gif", bits, frame.interlaced, -1)
    except ValueError as error:
        raise CorruptImage(f"The GIF image is damaged in its frame {number}: {error}.") from error
    return np.frombuffer(picture.tobytes(), np.uint8).reshape(frame.height, frame.width)
