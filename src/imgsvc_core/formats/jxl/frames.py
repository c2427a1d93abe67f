"""The headers of the frames in a codestream of JPEG XL (ISO/IEC 18181-1, annex F)."""

from __future__ import annotations

from collections.abc import Iterator

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.jxl.bits import BitReader, Distribution
from imgsvc_core.formats.jxl.codestream import Header
from imgsvc_core.formats.jxl.entropy import Decoder
from imgsvc_core.formats.jxl.icc import read_profile

DURATION: tuple[Distribution, ...] = ((0, 0), (1, 0), (0, 8), (0, 32))
_REGULAR, _COARSE, _REFERENCE, _SKIPPING = range(4)
_SHOWN = (_REGULAR, _SKIPPING)
_USES_COARSE = 32
_REPLACE, _BLEND, _WEIGHTED, _MULTIPLY = 0, 2, 3, 4
_EXTENTS: tuple[Distribution, ...] = ((0, 8), (256, 11), (2304, 14), (18_688, 30))
_GROUP = 128
_PARTS: tuple[Distribution, ...] = ((0, 10), (1024, 14), (17_408, 22), (4_211_712, 30))
_PERMUTATION_CONTEXTS = 8


@frozen
class Frame:
    """A frame, in bits of the codestream: from its header, in which its duration is, to its contents.

    The header and the order of its parts end where they are filled up to the byte at which ``sizes`` begin.
    ``duration`` is in ticks. ``shown`` is False for frames that others are made of. Layers may be ``named``.
    """

    start: int
    filled: int
    sizes: int
    end: int
    duration: int
    duration_at: tuple[int, int]
    shown: bool
    last: bool
    named: bool


def read_frames(reader: BitReader, header: Header) -> Iterator[Frame]:
    """Yield the frames that follow the header, and the profile if there is one."""
    if header.colors.profile:
        read_profile(reader)
    reader.align()
    if header.preview:
        _skip_contents(reader, _Fields(reader, header, header.preview))
    last = False
    while not last:
        frame = _read_frame(reader, header)
        last = frame.last
        yield frame


def _read_frame(reader: BitReader, header: Header) -> Frame:
    start = reader.position
    fields = _Fields(reader, header, (header.width, header.height))
    filled, sizes = _skip_contents(reader, fields)
    shown = fields.kind in _SHOWN and (fields.last or fields.duration > 0)
    return Frame(
        start, filled, sizes, reader.position, fields.duration, fields.duration_at, shown, fields.last,
        fields.named,
    )  # fmt: skip


class _Fields:
    """Reads the header of a frame, as far as it says something of the time and of the parts."""

    def __init__(self, reader: BitReader, header: Header, size: tuple[int, int]) -> None:
        self._reader = reader
        self._header = header
        self._picture = self.size = size
        self.kind = _REGULAR
        self.passes, self.upsampling, self.level = 1, 1, 0
        self.group = 2 * _GROUP
        self.duration, self.duration_at = 0, (0, 0)
        self.last, self.named = True, False
        if not reader.flag():
            self._read()

    def _read(self) -> None:
        reader, extra = self._reader, len(self._header.extra)
        self.kind = reader.bits(2)
        modular, flags = reader.flag(), reader.u64()
        in_ycc = not self._header.xyb and reader.flag()
        if not flags & _USES_COARSE:
            reader.skip(6 if in_ycc else 0)
            self.upsampling = 1 << reader.bits(2)
            reader.skip(2 * extra)
        if modular:
            self.group = _GROUP << reader.bits(2)
        elif self._header.xyb:
            reader.skip(6)
        if self.kind != _REFERENCE:
            self._read_passes()
        if self.kind == _COARSE:
            self.level = 1 + reader.bits(2)
        partial = self.kind != _COARSE and self._read_place()
        replaces = False
        self.last = False
        if self.kind in _SHOWN:
            replaces = self._read_blending(partial)
            for _ in range(extra):
                self._read_blending(partial)
            self._read_time()
            self.last = reader.flag()
        reference = 0 if self.kind == _COARSE or self.last else reader.bits(2)
        referable = not self.last and (not self.duration or reference > 0)
        if (replaces and not partial and referable) or self.kind == _REFERENCE:
            reader.flag()
        self.named = reader.skip_name()
        self._skip_filters(modular)
        reader.skip_extensions()

    def _read_passes(self) -> None:
        reader = self._reader
        self.passes = reader.u32((1, 0), (2, 0), (3, 0), (4, 3))
        if self.passes > 1:
            steps = reader.u32((0, 0), (1, 0), (2, 0), (3, 1))
            reader.skip(2 * (self.passes - 1) + 2 * steps)
            for _ in range(steps):
                reader.u32((0, 0), (1, 0), (2, 0), (0, 3))

    def _read_place(self) -> bool:
        """Read where the frame is, and return True if it leaves a part of the picture out."""
        reader = self._reader
        if not reader.flag():
            return False
        left = top = 0
        if self.kind in _SHOWN:
            packed = reader.u32(*_EXTENTS), reader.u32(*_EXTENTS)
            left, top = ((number >> 1) ^ -(number & 1) for number in packed)
        self.size = reader.u32(*_EXTENTS), reader.u32(*_EXTENTS)
        right, bottom = left + self.size[0], top + self.size[1]
        outside = left > 0 or top > 0 or right < self._picture[0] or bottom < self._picture[1]
        return self.kind in _SHOWN and outside

    def _read_blending(self, partial: bool) -> bool:
        """Return True if pixels replace those of the frame before."""
        reader, extra = self._reader, len(self._header.extra)
        mode = reader.u32((0, 0), (1, 0), (2, 0), (3, 2))
        by_alpha = extra > 0 and mode in (_BLEND, _WEIGHTED)
        if by_alpha:
            reader.u32((0, 0), (1, 0), (2, 0), (3, 3))
        if by_alpha or mode == _MULTIPLY:
            reader.flag()
        if mode != _REPLACE or partial:
            reader.skip(2)
        return mode == _REPLACE

    def _read_time(self) -> None:
        if self._header.animation is None:
            return
        reader = self._reader
        self.duration, self.duration_at = reader.placed(lambda: reader.u32(*DURATION))
        if self._header.animation.timecodes:
            reader.skip(32)

    def _skip_filters(self, modular: bool) -> None:
        reader = self._reader
        if reader.flag():
            return
        if reader.flag() and reader.flag():  # smoothing
            reader.skip(6 * 16)
        if reader.bits(2):  # times that edges are kept
            if not modular and reader.flag():
                reader.skip(8 * 16)
            if reader.flag():
                reader.skip(5 * 16)
            if reader.flag():
                reader.skip(3 * 16 if modular else 4 * 16)
            if modular:
                reader.skip(16)
        reader.skip_extensions()


def _skip_contents(reader: BitReader, fields: _Fields) -> tuple[int, int]:
    """Skip the parts of a frame, and return where the bits before their sizes end, and where these begin."""
    scale = fields.upsampling << 3 * fields.level
    width, height = (max(1, -(-side // scale)) for side in fields.size)
    group, coarse = fields.group, 8 * fields.group
    groups = -(-width // group) * -(-height // group)
    parts = 1
    if groups > 1 or fields.passes > 1:
        parts = 2 + -(-width // coarse) * -(-height // coarse) + groups * fields.passes
    reader.count(parts)
    if reader.flag():
        _skip_permutation(reader, parts)
    filled = reader.position
    reader.align()
    sizes = reader.position
    total = sum(reader.u32(*_PARTS) for _ in range(parts))
    reader.align()
    reader.skip(8 * total)
    return filled, sizes


def _skip_permutation(reader: BitReader, parts: int) -> None:
    decoder = Decoder(reader, _PERMUTATION_CONTEXTS)
    moved = decoder.read(min(parts.bit_length(), _PERMUTATION_CONTEXTS - 1))
    last = 0
    for _ in range(moved):
        last = decoder.read(min(last.bit_length(), _PERMUTATION_CONTEXTS - 1))
    decoder.finish()
