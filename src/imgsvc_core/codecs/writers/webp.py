"""WebP, by libvips, and by Pillow where that is quicker. Animations get back what the encoder changes.

libwebp's encoder of animations makes far smaller files than frames that are encoded one by one: it leaves
transparent what looks like the frame before. But it drops frames that equal the one before, and libvips
lengthens short delays. So all frames are given the same delay to begin with. The delay of a frame that is
written then tells how many frames it stands for.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import attrs
import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.changes import timing
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.codecs.headers.webp import FIRST_CHUNK, FRAME_HEAD, frame_head, read_chunks
from imgsvc_core.codecs.metadata import keep_flags
from imgsvc_core.codecs.readers.vips import to_array
from imgsvc_core.codecs.settings import SaveSettings
from imgsvc_core.codecs.table import codec_effort
from imgsvc_core.codecs.writers.content import choose_subsampling
from imgsvc_core.codecs.writers.sink import Sink
from imgsvc_core.vipsimage import frame_count, samples_of, size_of

_PIXELS = (b"ALPH", b"VP8 ", b"VP8L")
_FLAGS = {b"ICCP": 0x20, b"EXIF": 0x08, b"XMP ": 0x04}
_ANIMATED, _TRANSPARENT = 0x02, 0x10
_CLEARED = 0x01  # the area of the frame is cleared after its time
_UNIT_DELAY = 100  # milliseconds; libvips lengthens delays of up to 10
_LONGEST_DELAY = (1 << 24) - 1
_MOST_PLAYS = 65_535
_MOST_IN_ARRAY = 1 << 19  # pixels, of which a copy or two take little memory


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> None:
    """Write a still or an animation, lossy or lossless.

    Lossy WebP always stores color at half the resolution. For pictures that need more, it is computed so that
    edges stay sharp, which takes twice the time.
    """
    image, subsampling = choose_subsampling(image, settings)
    options: dict[str, object] = {
        "Q": settings.quality, "lossless": settings.lossless, "keep": keep_flags(image),
        "effort": codec_effort("webp", settings.effort), "smart_subsample": subsampling == "444",
    }  # fmt: skip
    frames = frame_count(image)
    if frames == 1 and _is_plain(image, options):
        sink.write(encode(to_array(image), settings))
        return
    if frames == 1:
        sink.save(image, "webp", **options)
        return
    delays, plays = timing(image, frames)
    image = image.copy()
    image.set_type(pyvips.GValue.array_int_type, "delay", [_UNIT_DELAY] * frames)
    encoded = Sink()
    encoded.save(image, "webp", **options)
    sink.write(_with_timing(encoded.data, (image.width, image.get_page_height()), delays, plays))


def _is_plain(image: pyvips.Image, options: Mapping[str, object]) -> bool:
    width, height = size_of(image)
    return (
        width * height <= _MOST_IN_ARRAY
        and image.bands >= 3
        and samples_of(image) == "uchar"
        and options["keep"] == "none"
        and not (options["lossless"] or options["smart_subsample"])
    )


def encode(pixels: Any, settings: SaveSettings) -> bytes:
    """Encode an array of (height, width, 3 or 4) with loss to the same bytes as libvips in less time."""
    from PIL import Image, WebPImagePlugin  # noqa: F401  (or Pillow loads all of its formats)

    encoded = io.BytesIO()
    effort = codec_effort("webp", settings.effort)
    Image.fromarray(pixels).save(encoded, "WEBP", quality=settings.quality, method=effort)
    return encoded.getvalue()


@attrs.frozen
class _FrameToAdd:
    """A frame of the encoded file. It stands for one or more equal frames of the animation."""

    area: tuple[int, int, int, int]
    stands_for: int
    flags: int
    pixels: bytes

    @classmethod
    def parse(cls, body: bytes) -> _FrameToAdd:
        left, top, width, height, delay = frame_head(body[:FRAME_HEAD])
        return cls((left, top, width, height), delay // _UNIT_DELAY, body[FRAME_HEAD], body[FRAME_HEAD + 1 :])

    def chunks(self, delays: Sequence[int]) -> Iterator[bytes]:
        """Yield the chunk of the frame, then that of an empty frame for each other one it stands for."""
        *others, last = delays
        if not others:
            yield self._chunk(last, self.flags, self.pixels)
            return
        empty = _transparent(*(side + 1 for side in self.area[2:]))
        yield self._chunk(others[0], self.flags & ~_CLEARED, self.pixels)
        for delay in others[1:]:
            yield self._chunk(delay, 0, empty)
        yield self._chunk(last, self.flags & _CLEARED, empty)

    def _chunk(self, delay: int, flags: int, pixels: bytes) -> bytes:
        numbers = map(_three_bytes, (*self.area, min(delay, _LONGEST_DELAY)))
        return _chunk(b"ANMF", b"".join((*numbers, bytes((flags,)), pixels)))


def _with_timing(encoded: bytes, size: tuple[int, int], delays: Sequence[int], plays: int) -> bytes:
    """Return the animation with all of its frames, and with their delays.

    If all frames are equal, what was encoded is a still.
    """
    reader = HeaderReader(ByteSource(encoded), "WebP")
    chunks = [
        (kind, reader.read(start, length))
        for kind, start, length in read_chunks(reader, FIRST_CHUNK, reader.size)
    ]
    extended, width, height = dict(chunks).get(b"VP8X"), size[0] - 1, size[1] - 1
    frames = [_FrameToAdd.parse(body) for kind, body in chunks if kind == b"ANMF"]
    if not frames:
        pixels = b"".join(_chunk(kind, body) for kind, body in chunks if kind in _PIXELS)
        frames = [_FrameToAdd((0, 0, width, height), len(delays), 0, pixels)]
    metadata = {kind: _chunk(kind, body) for kind, body in chunks if kind in _FLAGS}
    # An empty frame is transparent, and so are the parts of a frame that look like the one before.
    transparent = (extended is not None and extended[0] & _TRANSPARENT) or len(frames) < len(delays)
    flags = _ANIMATED | (_TRANSPARENT if transparent else 0) | sum(_FLAGS[kind] for kind in metadata)
    canvas = struct.pack("<I", flags) + _three_bytes(width) + _three_bytes(height)
    profile = metadata.pop(b"ICCP", b"")
    rest = iter(delays)
    body = b"".join(
        (
            _chunk(b"VP8X", canvas),
            profile,
            _chunk(b"ANIM", struct.pack("<IH", 0, min(plays, _MOST_PLAYS))),
            *(chunk for frame in frames for chunk in frame.chunks(list(islice(rest, frame.stands_for)))),
            *metadata.values(),
        )
    )
    return b"".join((b"RIFF", struct.pack("<I", len(body) + 4), b"WEBP", body))


def _transparent(width: int, height: int) -> bytes:
    """Return the chunk of a picture that shows nothing."""
    picture = pyvips.Image.black(width, height, bands=4).copy(interpretation="srgb")
    encoded: bytes = picture.webpsave_buffer(lossless=True, effort=0, keep="none")
    return encoded[FIRST_CHUNK:]


def _chunk(kind: bytes, body: bytes) -> bytes:
    return b"".join((kind, struct.pack("<I", len(body)), body, b"\0" * (len(body) % 2)))


def _three_bytes(value: int) -> bytes:
    return value.to_bytes(3, "little")
