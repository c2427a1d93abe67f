"""GIF: the blocks of the file, skipping the compressed data (GIF89a specification)."""

from __future__ import annotations

from collections.abc import Sequence

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.reader import HeaderReader

CLEAR = 2  # nothing is left where a frame was
RESTORE = (3, 4)  # what was there before a frame comes back after it; 4 is a common mistake for 3
_EXTENSION, _IMAGE, _TRAILER, _END_OF_BLOCKS = 0x21, 0x2C, 0x3B, 0
_GRAPHIC_CONTROL, _APPLICATION = 0xF9, 0xFF
_LOOPING = (b"NETSCAPE2.0", b"ANIMEXTS1.0")
_PROFILE = b"ICCRGBG1012"
_CONTROL_BYTES = 8
_WINDOW = 1 << 12  # bytes of data blocks that are looked through at once
_HAS_PALETTE, _INTERLACED, _TRANSPARENT = 0x80, 0x40, 0x01


@frozen(kw_only=True)
class GifFrame:
    """A frame: its place on the screen, how it is shown, and where its parts are in the file.

    Its palette, or the palette of the file, lies between two offsets. The compressed pixels begin at
    ``data``. The frame ends at ``end``. If the file breaks off in the frame, the end is behind the file.
    """

    left: int
    top: int
    width: int
    height: int
    interlaced: bool
    delay: int
    disposal: int
    transparent: int | None
    palette: tuple[int, int]
    data: int
    end: int

    def covers(self, left: int, top: int, right: int, bottom: int) -> bool:
        """Return True if all of a rectangle lies below the frame."""
        return (
            self.left <= left
            and self.top <= top
            and self.left + self.width >= right
            and self.top + self.height >= bottom
        )


@frozen(kw_only=True)
class GifHeader:
    """A file: its screen, its frames, and where the last block ends."""

    width: int
    height: int
    frames: tuple[GifFrame, ...]
    end: int


@frozen
class _Control:
    """The statements of the graphic control extension about the next frame."""

    delay: int = 0
    disposal: int = 0
    transparent: int | None = None


_NO_CONTROL = _Control()


def read_header(reader: HeaderReader) -> tuple[ImageInfo, GifHeader]:
    """Read the facts in the blocks up to the trailer, or as far as the file goes.

    Delays are those of the file, even if browsers show a frame longer.
    """
    width, height, flags = reader.unpack("<HHB", 6)
    offset = 13 + _palette_length(flags)
    palette = (13, offset)
    frames: list[GifFrame] = []
    control, plays, profile = _NO_CONTROL, 1, False
    while offset < reader.size and (block := reader.byte(offset)) != _TRAILER:
        if block == _IMAGE:
            frames.append(_read_frame(reader, offset, control, palette))
            control = _NO_CONTROL
            offset = frames[-1].end
        elif block == _EXTENSION:
            label = reader.byte(offset + 1)
            if label == _GRAPHIC_CONTROL:
                control = _read_control(reader, offset)
            elif label == _APPLICATION:
                name = reader.read(offset + 3, 11)
                profile |= name == _PROFILE
                if name in _LOOPING and reader.read(offset + 14, 2) == b"\x03\x01":
                    (repeats,) = reader.unpack("<H", offset + 16)
                    plays = repeats + 1 if repeats else 0
            offset = _after_blocks(reader, offset + 2)
        elif block == _END_OF_BLOCKS:  # some writers repeat it
            offset += 1
        elif frames:
            break
        else:
            raise reader.corrupt(f"it has an unknown block {block:#04x} before its first frame")
    if not frames:
        raise reader.corrupt("it has no frame")
    first = frames[0]  # the declared screen may have no size, so it is enlarged to hold this
    width, height = max(width, first.left + first.width), max(height, first.top + first.height)
    reader.check_size(width, height)
    animated = len(frames) > 1
    largest = max(frame.width * frame.height for frame in frames)  # may reach beyond the screen
    info = ImageInfo(
        format="gif",
        width=width,
        height=height,
        colorspace="palette",
        interlaced=any(frame.interlaced for frame in frames),
        bytes=reader.size,
        frames=len(frames),
        decoded_pixels=largest if largest > width * height else None,
        alpha=_has_alpha(frames, width, height),
        delays=tuple(frame.delay for frame in frames) if animated else (),
        plays=plays if animated else None,
        profile=profile,
    )
    return info, GifHeader(width=width, height=height, frames=tuple(frames), end=offset)


def _read_control(reader: HeaderReader, offset: int) -> _Control:
    if offset + _CONTROL_BYTES > reader.size:  # the frames before can still be shown
        return _NO_CONTROL
    flags, hundredths, transparent = reader.unpack("<BHB", offset + 3)
    return _Control(10 * hundredths, flags >> 2 & 7, transparent if flags & _TRANSPARENT else None)


def _read_frame(reader: HeaderReader, offset: int, control: _Control, palette: tuple[int, int]) -> GifFrame:
    left, top, width, height, flags = reader.unpack("<HHHHB", offset + 1)
    data = offset + 10 + _palette_length(flags)
    if flags & _HAS_PALETTE:
        palette = (offset + 10, data)
    return GifFrame(
        left=left, top=top, width=width, height=height, interlaced=bool(flags & _INTERLACED),
        delay=control.delay, disposal=control.disposal, transparent=control.transparent,
        palette=palette, data=data, end=_after_blocks(reader, data + 1),
    )  # fmt: skip


def _has_alpha(frames: Sequence[GifFrame], width: int, height: int) -> bool:
    """Return True if a frame has a transparent color, or if the empty screen ever shows.

    It shows beside the first frame, and in the place of a frame that is cleared after its time.
    """
    empty: tuple[int, int, int, int] | None = (0, 0, width, height)
    for frame in frames:
        if frame.transparent is not None or (empty is not None and not frame.covers(*empty)):
            return True
        if frame.disposal == CLEAR:
            right, bottom = frame.left + frame.width, frame.top + frame.height
            empty = frame.left, frame.top, min(right, width), min(bottom, height)
        elif frame.disposal not in RESTORE:
            empty = None
    return False


def _palette_length(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & _HAS_PALETTE else 0


def _after_blocks(reader: HeaderReader, offset: int) -> int:
    """Return the offset after a chain of data blocks: beyond the end of the file if the chain breaks off."""
    while offset < reader.size:
        window = reader.read(offset, min(_WINDOW, reader.size - offset))
        place = blocks = 0
        while place < len(window):
            length = window[place]
            place += 1 + length
            blocks += 1
            if length == 0:
                break
        reader.count(blocks)
        offset += place
        if length == 0:
            return offset
    return max(offset, reader.size + 1)
