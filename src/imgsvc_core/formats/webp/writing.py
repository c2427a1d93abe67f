"""WebP, by libvips, and by Pillow where that is quicker. Animations get back what the encoder changes.

libwebp's encoder of animations makes far smaller files than frames that are encoded one by one: it leaves
transparent what looks like the frame before. But it drops frames that equal the one before, and libvips
lengthens short delays. So all frames are given the same delay to begin with. The delay of a frame that is
written then tells how many frames it stands for.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import attrs
import pyvips

from imgsvc_core._runtime.numpy_cost import numpy_pays
from imgsvc_core._runtime.vipsimage import frame_count, samples_of, size_of
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.changes import timing
from imgsvc_core.formats.content import choose_subsampling, given_subsampling
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.invisible import blended
from imgsvc_core.formats.metadata import EXIF, XMP, blob, keep_profile
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.table import codec_effort
from imgsvc_core.formats.vips import to_array
from imgsvc_core.formats.webp.header import (
    CLEARED,
    CODED,
    FIRST_CHUNK,
    FRAME_HEAD,
    WebpFrame,
    is_opaque,
    make_chunk,
    read_chunks,
    riff,
    states_alpha,
)

_PROFILE = b"ICCP"
_METADATA = {b"EXIF": EXIF, b"XMP ": XMP}
_FLAGS = {_PROFILE: 0x20, b"EXIF": 0x08, b"XMP ": 0x04}
_ANIMATED, _TRANSPARENT = 0x02, 0x10
_UNIT_DELAY = 100  # milliseconds; libvips lengthens delays of up to 10
_LONGEST_DELAY = (1 << 24) - 1
_MOST_PLAYS = 65_535
# The default for opaque stills with loss, which become 3 % smaller by it. Alpha and exact pixels would become
# no smaller, in up to 40 times the time.
_OPAQUE_EFFORT = 7
_MOST_COPIED = 1 << 19  # pixels, of which a copy or two take little memory


def write(image: pyvips.Image | Raster, settings: SaveSettings, sink: Sink) -> SavedFacts:
    """Write a still or an animation, lossy or lossless.

    Lossy WebP always stores color at half the resolution. For pictures that need more, it is computed so that
    edges stay sharp, which takes twice the time.
    """
    if isinstance(image, Raster):
        bands = image.pixels.shape[2]
        if bands == 3 and not settings.lossless and given_subsampling(bands, settings) == "420":
            sink.write(encode(image.pixels, settings))
            return {"subsample": "4:2:0"}
        image = image.to_vips()
    image, subsampling = choose_subsampling(image, settings)
    options: dict[str, object] = {
        "Q": settings.quality, "lossless": settings.lossless, "keep": keep_profile(image),
        "effort": _effort(settings, image.bands, frame_count(image)), "smart_subsample": subsampling == "444",
    }  # fmt: skip
    facts: SavedFacts = {"colorspace": "srgb", "subsample": None if settings.lossless else "4:2:0"}
    frames = frame_count(image)
    metadata = {kind: data for kind, name in _METADATA.items() if (data := blob(image, name))}
    encoded = sink if frames == 1 and not metadata else Sink()
    if frames == 1 and _is_plain(image, options):
        encoded.write(encode(to_array(image), settings))
    elif frames == 1:
        encoded.save(image, "webp", **options)
    else:
        delays, plays = timing(image, frames)
        delays, plays = [min(delay, _LONGEST_DELAY) for delay in delays], min(plays, _MOST_PLAYS)
        image = image.copy() if settings.lossless else blended(image).copy()
        image.set_type(pyvips.GValue.array_int_type, "delay", [_UNIT_DELAY] * frames)
        encoded.save(image, "webp", **options)
        size = image.width, image.get_page_height()
        data, transparent = _animation(encoded.data, size, delays, plays, metadata)
        sink.write(data)
        return {**facts, "alpha": transparent, "delays": tuple(delays), "plays": plays}
    transparent = states_alpha(encoded.head)
    if encoded is not sink:
        size = image.width, image.height
        sink.write(_still(encoded.data, size, metadata, transparent=transparent))
    return {**facts, "alpha": transparent}


def _is_plain(image: pyvips.Image, options: Mapping[str, object]) -> bool:
    """Return True if `encode` takes the picture, and less time than libvips."""
    width, height = size_of(image)
    return (
        width * height <= _MOST_COPIED
        and image.bands >= 3
        and samples_of(image) == "uchar"
        and options["keep"] == "none"
        and not (options["lossless"] or options["smart_subsample"])
        and numpy_pays(width * height)
    )


def encode(pixels: Any, settings: SaveSettings) -> bytes:
    """Encode an array of (height, width, 3 or 4) with loss to the same bytes as libvips in less time."""
    from PIL import Image, WebPImagePlugin  # noqa: F401  (or Pillow loads all of its formats)

    encoded = io.BytesIO()
    effort = _effort(settings, pixels.shape[2])
    Image.fromarray(pixels).save(encoded, "WEBP", quality=settings.quality, method=effort)
    return encoded.getvalue()


def _effort(settings: SaveSettings, bands: int, frames: int = 1) -> int | str:
    """Return what the encoder is told for the effort that is asked for, or for the default one."""
    opaque = bands == 3 and frames == 1 and not settings.lossless
    return codec_effort("webp", _OPAQUE_EFFORT if settings.effort is None and opaque else settings.effort)


def _with_equal(frame: WebpFrame, pixels: bytes, delays: Sequence[int]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the chunk of a frame, then an empty frame for each further one that it stands for."""
    for place, delay in enumerate(delays):
        flags = 0 if place else frame.flags & ~CLEARED
        if place == len(delays) - 1:
            flags |= frame.flags & CLEARED
        if place == 1:
            pixels = _transparent(frame.width, frame.height)
        yield b"ANMF", attrs.evolve(frame, delay=delay, flags=flags).head + pixels


def _still(
    encoded: bytes, size: tuple[int, int], metadata: Mapping[bytes, bytes], *, transparent: bool
) -> bytes:
    """Return the still with metadata."""
    chunks = _chunks(encoded)
    pixels = [(kind, body) for kind, body in chunks if kind in CODED]
    flags = _TRANSPARENT if transparent else 0
    return _extended(size, flags, dict(chunks).get(_PROFILE), pixels, metadata)


def _animation(
    encoded: bytes, size: tuple[int, int], delays: Sequence[int], plays: int, metadata: Mapping[bytes, bytes]
) -> tuple[bytes, bool]:
    """Return the animation with all of its frames, their delays and metadata, and True if it is transparent.

    If all frames are equal, what was encoded is a still.
    """
    chunks = _chunks(encoded)
    frames = [(WebpFrame.parse(body), body[FRAME_HEAD:]) for kind, body in chunks if kind == b"ANMF"]
    if not frames:
        pixels = b"".join(make_chunk(kind, body) for kind, body in chunks if kind in CODED)
        frames = [(WebpFrame(0, 0, *size, len(delays) * _UNIT_DELAY, 0), pixels)]
    extended = dict(chunks).get(b"VP8X", b"\0")
    # An empty frame is transparent, and so are the parts of a frame that look like the one before.
    transparent = bool(
        extended[0] & _TRANSPARENT
        or len(frames) < len(delays)
        or not is_opaque([frame for frame, _ in frames], *size)
    )
    rest = iter(delays)
    content = (
        (b"ANIM", struct.pack("<IH", 0, plays)),
        *(
            chunk
            for frame, pixels in frames
            for chunk in _with_equal(frame, pixels, list(islice(rest, frame.delay // _UNIT_DELAY)))
        ),
    )
    flags = _ANIMATED | (_TRANSPARENT if transparent else 0)
    return _extended(size, flags, dict(chunks).get(_PROFILE), content, metadata), transparent


def _extended(
    size: tuple[int, int],
    flags: int,
    profile: bytes | None,
    content: Iterable[tuple[bytes, bytes]],
    metadata: Mapping[bytes, bytes],
) -> bytes:
    """Return a file in the extended format: a profile comes before the pixels, metadata after them."""
    before = {} if profile is None else {_PROFILE: profile}
    flags |= sum(_FLAGS[kind] for kind in (*before, *metadata))
    canvas = struct.pack("<I", flags) + b"".join((side - 1).to_bytes(3, "little") for side in size)
    return riff(((b"VP8X", canvas), *before.items(), *content, *metadata.items()))


def _chunks(encoded: bytes) -> list[tuple[bytes, bytes]]:
    reader = HeaderReader(ByteSource(encoded), "WebP")
    places = read_chunks(reader, FIRST_CHUNK, reader.size)
    return [(kind, reader.read(start, length)) for kind, start, length in places]


def _transparent(width: int, height: int) -> bytes:
    """Return the chunk of a picture that shows nothing."""
    picture = pyvips.Image.black(width, height, bands=4).copy(interpretation="srgb")
    encoded: bytes = picture.webpsave_buffer(lossless=True, effort=0, keep="none")
    return encoded[FIRST_CHUNK:]
