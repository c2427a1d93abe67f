"""GIF: the blocks of the file, skipping the compressed data (GIF89a specification)."""

from __future__ import annotations

from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.info import ImageInfo

_EXTENSION, _IMAGE, _TRAILER = 0x21, 0x2C, 0x3B
_GRAPHIC_CONTROL, _APPLICATION = 0xF9, 0xFF
_LOOPING = (b"NETSCAPE2.0", b"ANIMEXTS1.0")
_HAS_PALETTE, _INTERLACED, _TRANSPARENT = 0x80, 0x40, 0x01
_CLEAR = 2  # nothing is left where a frame was
_RESTORE = (3, 4)  # what was there before a frame comes back after it; 4 is a common mistake for 3


def read_info(reader: HeaderReader) -> ImageInfo:
    """Facts of a GIF. Delays are those of the file, also where browsers would show a frame longer.

    It has transparency where a frame has it, and where the empty screen shows: beside the first frame, and
    where a frame was that leaves nothing.
    """
    width, height, flags = reader.unpack("<HHB", 6)
    offset = 13 + _palette_length(flags)
    delays: list[int] = []
    delay, disposal, plays, alpha, interlaced, profile = 0, 0, 1, False, False, False
    empty: tuple[int, int, int, int] | None = None  # left, top, right and bottom of the empty screen
    while offset < reader.size and (block := reader.byte(offset)) != _TRAILER:
        if block == _IMAGE:
            left, top, frame_width, frame_height, flags = reader.unpack("<HHHHB", offset + 1)
            right, bottom = left + frame_width, top + frame_height
            if not delays:
                width, height = _canvas(width, height, right, bottom)
                empty = 0, 0, width, height
            alpha |= empty is not None and not (
                left <= empty[0] and top <= empty[1] and right >= empty[2] and bottom >= empty[3]
            )
            if disposal == _CLEAR:
                empty = left, top, min(right, width), min(bottom, height)
            elif disposal not in _RESTORE:
                empty = None
            interlaced |= bool(flags & _INTERLACED)
            delays.append(delay)
            delay = disposal = 0
            offset = _after_blocks(reader, offset + 11 + _palette_length(flags))
        elif block == _EXTENSION:
            label = reader.byte(offset + 1)
            if label == _GRAPHIC_CONTROL:
                flags, hundredths = reader.unpack("<BH", offset + 3)
                alpha |= bool(flags & _TRANSPARENT)
                disposal = flags >> 2 & 7
                delay = 10 * hundredths
            elif label == _APPLICATION:
                name = reader.read(offset + 3, 11)
                profile |= name == b"ICCRGBG1012"
                if name in _LOOPING and reader.read(offset + 14, 2) == b"\x03\x01":
                    (repeats,) = reader.unpack("<H", offset + 16)
                    plays = repeats + 1 if repeats else 0
            offset = _after_blocks(reader, offset + 2)
        elif delays:
            break
        else:
            raise reader.corrupt(f"it has an unknown block {block:#04x} before its first frame")
    if not delays:
        raise reader.corrupt("it has no frame")
    reader.check_size(width, height)
    animated = len(delays) > 1
    return ImageInfo(
        format="gif",
        width=width,
        height=height,
        colorspace="palette",
        interlaced=interlaced,
        bytes=reader.size,
        frames=len(delays),
        alpha=alpha,
        delays=tuple(delays) if animated else (),
        plays=plays if animated else None,
        profile=profile,
    )


def _canvas(width: int, height: int, right: int, bottom: int) -> tuple[int, int]:
    """The declared screen, enlarged to hold the first frame; that alone where there is no screen."""
    if 0 in (width, height):
        return right, bottom
    return max(width, right), max(height, bottom)


def _palette_length(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & _HAS_PALETTE else 0


def _after_blocks(reader: HeaderReader, offset: int) -> int:
    """The offset after a chain of data blocks; the end of the file where it breaks off."""
    while offset < reader.size:
        length = reader.byte(offset)
        offset += 1 + length
        if length == 0:
            break
    return offset
