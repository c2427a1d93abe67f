"""Animated AVIF, by Pillow: frame by frame, 8 bits."""

from __future__ import annotations

import io
import os
from typing import Any

import pyvips

from imgsvc_core._runtime.deadline import check_time
from imgsvc_core._runtime.machine import fewer_cores
from imgsvc_core._runtime.vipsimage import frame_count
from imgsvc_core.errors import CorruptImage, MissingDependency, UnsupportedOperation
from imgsvc_core.formats.boundary import decoder, encoder
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.changes import timing
from imgsvc_core.formats.content import choose_subsampling
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.heif import Heif
from imgsvc_core.formats.heif.av1 import coded_sizes
from imgsvc_core.formats.heif.pillow_writing import FASTEST, OPTIONS, has_avif, metadata_options
from imgsvc_core.formats.heif.sequence import (
    LONGEST_DELAY,
    coded_frames,
    inside,
    read_movie,
    times_of,
    tracks_of,
)
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings, SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.vips import attach, from_array, to_array, to_depth, with_timing

_MOST_PLAYS = 65_535
_DURATION_OF_MOVIE, _DURATION_OF_TRACK = 24, 28  # where they are, in boxes with times of 64 bits
_OPAQUE = 255
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}  # of Pillow, by the number of bands
_SLOWEST = 7  # below this speed, the encoder holds 35 frames and takes four times as long


def read(picture: Heif, settings: LoadSettings) -> pyvips.Image:
    """Return all frames or the first one, as gray or RGB, with alpha if the file has it.

    Raises:
        MissingDependency: Pillow was built without AVIF.
    """
    import numpy as np

    _check_pillow("read")
    from PIL.AvifImagePlugin import AvifImageFile

    info = picture.info
    _check_coded_sizes(picture)
    frames = info.frames if settings.all_frames else 1
    bands = (1 if info.colorspace == "gray" else 3) + info.alpha
    pixels = np.empty((frames, info.height, info.width, bands), np.uint8)
    with decoder("avif"):
        opened = AvifImageFile(io.BytesIO(bytes(picture.source.buffer())))
        found = getattr(opened, "n_frames", 1), *opened.size
        if found != (info.frames, info.width, info.height):
            raise CorruptImage(
                f"The AVIF image is damaged: its header states {info.frames} frames of {info.width} x "
                f"{info.height} pixels, its data {found[0]} of {found[1]} x {found[2]}."
            )
        facts = opened.info
        for number in range(frames):
            check_time()
            opened.seek(number)
            pixels[number] = np.asarray(opened.convert(_MODES[bands])).reshape(pixels.shape[1:])
    image = from_array(pixels.reshape(-1, info.width, bands))
    image = attach(image, {name: facts.get(option) for name, option in OPTIONS.items()})
    return with_timing(image, info.height, info.delays, info.plays) if settings.all_frames else image


def _check_coded_sizes(picture: Heif) -> None:
    """Refuse frames that are coded larger than the file states: the decoder would decode them and scale."""
    info = picture.info
    for frame in coded_frames(picture.header_reader):
        check_time()
        for width, height in coded_sizes(frame):
            if width > info.width or height > info.height:
                raise CorruptImage(
                    f"The AVIF image is damaged: its header states frames of {info.width} x {info.height} "
                    f"pixels, its data {width} x {height}."
                )


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink, effort: int) -> SavedFacts:
    """Write all frames with their times.

    Raises:
        UnsupportedOperation: it is to be exact.
        MissingDependency: Pillow was built without AVIF.
    """
    if settings.lossless:
        raise UnsupportedOperation("Animated AVIF cannot be lossless; use webp, apng or jxl.")
    _check_pillow("written")
    frames, height = frame_count(image), image.get_page_height()
    delays, plays = timing(image, frames)
    delays = [min(max(1, delay), LONGEST_DELAY) for delay in delays]  # frames without a time are not shown
    plays = min(plays, _MOST_PLAYS)
    image, subsampling = choose_subsampling(to_depth(image, 8), settings)
    pixels = to_array(image.colourspace("srgb") if image.bands < 3 else image)
    if pixels.shape[2] == 4 and (pixels[..., 3] == _OPAQUE).all():
        pixels = pixels[..., :3]
    encoded = io.BytesIO()
    strip = pixels.reshape(frames, height, *pixels.shape[1:])
    with encoder("avif"):
        _pictures(strip).save(
            encoded, "AVIF", save_all=True, duration=delays, quality=settings.quality,
            speed=max(_SLOWEST, FASTEST - effort), subsampling=":".join(subsampling), autotiling=False,
            max_threads=max(2, fewer_cores() or os.cpu_count() or 1), **metadata_options(image),
        )  # fmt: skip
    sink.write(_played(encoded.getvalue(), plays))
    return {
        "colorspace": "srgb", "depth": 8, "alpha": pixels.shape[2] == 4, "subsample": ":".join(subsampling),
        "delays": tuple(delays), "plays": plays,
    }  # fmt: skip


def _pictures(strip: Any) -> Any:
    """Return a picture of Pillow that has one frame at a time in memory, beside the array of all."""
    from PIL import AvifImagePlugin, Image  # noqa: F401  (or Pillow loads all of its formats)

    class Frames(Image.Image):
        """The frames of an array of (frames, height, width, bands)."""

        n_frames = len(strip)
        is_animated = True
        place = 0

        def seek(self, frame: int) -> None:
            """Make a frame the current one."""
            if frame >= self.n_frames:
                raise EOFError
            check_time()
            current = Image.fromarray(strip[frame])
            self.im, self._mode, self._size, self.place = current.im, current.mode, current.size, frame

        def tell(self) -> int:
            """Return the number of the current frame."""
            return self.place

    return Frames()


def _played(encoded: bytes, plays: int) -> bytes:
    """Return a file that plays so often: how long it lasts says so. The encoder lets all play for ever.

    The times at which it was made go, so that equal requests have equal results.
    """
    data, reader = bytearray(encoded), HeaderReader(ByteSource(encoded), "AVIF")
    for start, length in times_of(reader):
        data[start : start + length] = bytes(length)
    if not plays:
        return bytes(data)
    movie = read_movie(reader)
    assert movie is not None
    places = [inside(reader, movie, b"mvhd").start + _DURATION_OF_MOVIE]
    once = 0
    for track in tracks_of(reader, movie):
        places.append(inside(reader, track, b"tkhd").start + _DURATION_OF_TRACK)
        (once,) = reader.unpack(">Q", inside(reader, track, b"edts", b"elst").start + 8)
    for place in places:
        data[place : place + 8] = (once * plays).to_bytes(8, "big")
    return bytes(data)


def _check_pillow(verb: str) -> None:
    if not has_avif():
        raise MissingDependency(f"Animated AVIF cannot be {verb}: this build of Pillow has no AVIF.")
