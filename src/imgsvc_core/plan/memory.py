"""The most memory that a plan needs, estimated before any pixel is decoded.

The bound is the sum of all that may be in memory at the same time: buffers of the decoder, of filters and of
the encoder, and the image for each step that needs all of it. Everything else streams in a few lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.settings import MOST_EXAMINED, LoadSettings, SaveSettings
from imgsvc_core.formats.table import FORMATS, LoadScaling
from imgsvc_core.plan.decoding import loaded_size
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.steps import PlannedStep

_BASE = 60_000_000  # threads, small images that are decoded at once, and memory that allocators keep
_BUFFERS = 35_000_000  # buffers of threads in a filter, for images of any size; measured on 150 frames
_LINES = 1000  # lines of the image in memory while it streams
_SCORED_HALF, _SCORED = 20, 40  # bytes for each pixel: the half of the work that is kept, and the other one
_MOST_SCORED = 6_000_000  # pixels that are scored at once
_COPIES = 4  # of a file whose metadata changes, itself included; measured in all formats
_ENCODED = 0.4  # the size of an encoded frame, in sizes of a decoded one


def memory_bound(
    info: ImageInfo,
    load: LoadSettings,
    steps: Sequence[PlannedStep],
    save: Sequence[SaveSettings],
    frames: int,
    *,
    measured: bool = False,
    keeps_pixels: bool = False,
) -> tuple[int, int]:
    """Return how many bytes the plan needs at most in addition to the program itself, and how many it keeps.

    A picture that is ``measured`` before it is encoded is in memory. With ``keeps_pixels`` the result is
    computed into memory, and encoded when the decoder has gone.
    """
    loaded = loaded_size(info, load.scale)
    sample, colors, alpha = _sample(info), info.colors, info.alpha
    strip = prod(loaded) * (colors + alpha) * sample * frames
    streams = load.sequential and frames == 1
    held = 0.0 if streams else strip
    rendered = 0.0  # frames that a step rereads or that are encoded
    drawn, buffers = [0], [0]
    settles, settled = False, 0.0  # whether a step of this kind came before, and the largest frame in memory
    for planned in steps:
        colors, alpha = 3 if planned.traits.brings_color else colors, alpha or planned.traits.brings_alpha
        pixel = (colors + alpha) * sample
        if streams and planned.traits.rereads:
            held, streams = held + prod(planned.before) * pixel, False
        if frames > 1 and (planned.traits.rereads or planned is steps[-1]):
            rendered = max(rendered, prod(planned.after) * pixel * frames)
        drawn.append(planned.traits.drawn)
        buffers.append(planned.traits.buffers)
        if planned.traits.settles:
            settled, settles = max(settled, settles * prod(planned.before) * pixel), True
        held += planned.traits.keeps
        held += planned.traits.copies_before * min(prod(planned.before), prod(loaded)) * pixel
        if planned.traits.copies:
            held += planned.traits.copies * prod(planned.after) * pixel + _BUFFERS
    size = steps[-1].after if steps else Size(info.width, info.height)
    pixel = (colors + alpha) * sample
    held += max(buffers) + settled + (max(drawn) if frames == 1 else sum(drawn))
    held += max(rendered, 2 * rendered - strip)  # beside the decoded strip, or again for the encoder
    lines = min(_LINES * max(loaded.width, size.width), 2 * (prod(loaded) + prod(size))) * pixel
    several = measured or len(save) > 1
    encoder = max(_encoder(settings, alpha, sample, size, frames, several=several) for settings in save)
    scoring = max(_scoring(settings, alpha, sample, prod(size), frames) for settings in save)
    computing, encoding = _decoder(info, load) + held + lines, encoder * prod(size) + scoring
    # The decoder and the encoder of kept pixels do not meet, but allocators keep what the decoder took.
    kept = int(prod(size) * pixel * frames) if keeps_pixels else 0
    return int(_BASE + max(computing + max(encoding, kept), kept + encoding)), kept


def rewriting_bound(info: ImageInfo) -> int:
    """Return the most bytes that a file takes whose coded pixels stay, because they are not decoded."""
    return _BASE + _COPIES * info.bytes


def decoded_bound(info: ImageInfo, load: LoadSettings) -> int:
    """Return the most bytes that an image takes while it is decoded into memory."""
    frames = info.frames if load.all_frames else 1
    pixel = (info.colors + info.alpha) * _sample(info)
    return int(_decoder(info, load) + prod(loaded_size(info, load.scale)) * pixel * frames)


def border_search(info: ImageInfo, *, all_frames: bool = True) -> LoadSettings:
    """Return the settings to decode all pixels of a source, to search for its border."""
    return LoadSettings(scale=1.0, all_frames=all_frames and info.animated, sequential=True)


def border_search_bound(info: ImageInfo) -> int:
    """Return the most bytes that the search for a border takes, before the plan runs."""
    return _BASE + decoded_bound(info, border_search(info))


def _sample(info: ImageInfo) -> int:
    """Return the bytes of a sample of the decoded image."""
    return 2 if info.depth > 8 else 1


def _decoder(info: ImageInfo, load: LoadSettings) -> float:
    """Return the bytes that the decoder holds. An image in memory has no decoder."""
    row = FORMATS.get(info.format)
    if row is None:
        return 0
    scales = row.load_scaling in (LoadScaling.CONTINUOUS, LoadScaling.LEVELS)
    pixels = prod(loaded_size(info, load.scale) if scales else Size(info.width, info.height))
    memory = row.reader.memory
    several = load.all_frames and not memory.one_by_one
    pixels = max(pixels, info.decoded_pixels or 0) * (info.frames if several else 1)
    copies = memory.copies(whole=info.interlaced, deep=info.depth > 8) + (info.layers or 0)
    return info.bytes + (info.contents or 0) + copies * pixels * info.stored_pixel


def _encoder(
    settings: SaveSettings, alpha: bool, sample: int, size: Size, frames: int, *, several: bool
) -> float:
    """Return the bytes that an encoder holds for each pixel of a frame.

    If the image is encoded several times, it is in memory, too.
    """
    row = FORMATS[settings.format]
    assert row.writer is not None
    memory = row.writer.memory
    progressive = row.progressive if settings.progressive is None else settings.progressive
    copies = memory.copies(
        whole=progressive,
        alpha=alpha,
        lossless=settings.lossless,
        palette=settings.colors is not None,
        small=prod(size) <= MOST_EXAMINED,
    )
    kept = several or settings.max_bytes is not None or settings.look is not None
    copies = copies + _ENCODED * (frames - 1) if memory.one_by_one else copies * frames
    return (copies + kept * frames) * (3 + alpha) * (sample if row.depth > 8 else 1)


def _scoring(settings: SaveSettings, alpha: bool, sample: int, pixels: float, frames: int) -> float:
    """Return the bytes that it takes to decode a try and to score it."""
    if settings.look is None:
        return 0
    row = FORMATS[settings.format]
    memory = row.reader.memory
    progressive = row.progressive if settings.progressive is None else settings.progressive
    copies = memory.copies(whole=progressive) * (1 if memory.one_by_one else frames)
    pixel = (3 + alpha) * (sample if row.depth > 8 else 1)
    halves = _SCORED_HALF * (1 + alpha) * min(pixels * frames, _MOST_SCORED)
    return (copies + 2 * frames) * pixels * pixel + halves + _SCORED * min(pixels, _MOST_SCORED)
