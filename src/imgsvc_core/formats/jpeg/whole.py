"""Without TurboJPEG: let libvips decode a JPEG to the end of the file, to find all damage.

libvips does not report warnings after the last line, and lost blocks are found only there. It reads a file
with several scans to the end before it returns a line. So the file gets a second scan, which changes no
pixel.
"""

from __future__ import annotations

import pyvips

from imgsvc_core.formats.jpeg import Jpeg
from imgsvc_core.formats.jpeg.segments import make_segment

_DHT, _DRI, _SOS = 0xC4, 0xDD, 0xDA
_BLOCK = 8
# Two tables, number 3 of each kind, in which the code 0 means no difference, or the end of the block.
_TABLES = b"".join(bytes((kind, 1)) + bytes(16) for kind in (0x03, 0x13))
_NO_RESTARTS = b"\0\0"


def decode(picture: Jpeg, shrink: int) -> pyvips.Image:
    """Return the picture of a file in one scan, in memory.

    Raises:
        pyvips.Error: libvips warns of anything.
    """
    gray = len(picture.header.frame.components) == 1
    data = _in_color(picture) if gray else _in_two_scans(picture)
    image = pyvips.Image.jpegload_buffer(data, shrink=shrink, fail_on="warning")
    return (image.extract_band(0).copy(interpretation="b-w") if gray else image).copy_memory()


def _in_color(picture: Jpeg) -> bytes:
    """Return a gray file as one whose colors are in scans that do not follow."""
    source, header = picture.source, picture.header
    frame = header.frame
    start, length = next((place, size) for marker, place, size in header.segments if marker == frame.marker)
    gray = source.read(start, length)
    number, rest = gray[6], gray[7:9]
    colors = b"".join(bytes((other,)) + rest for other in (number, number ^ 1, number ^ 2))
    patched = make_segment(frame.marker, gray[:5] + b"\3" + colors)
    return source.read(0, start - 4) + patched + source.read(start + length)


def _in_two_scans(picture: Jpeg) -> bytes:
    """Return the file with a scan of the first channel before its own, in which all coefficients are 0."""
    source, segments, frame = picture.source, picture.header.segments, picture.header.frame
    first = frame.components[0]
    across, down = (max(sides) for sides in zip(*(part[1:3] for part in frame.components), strict=True))
    width = -(-frame.width * first.horizontal // across)
    height = -(-frame.height * first.vertical // down)
    bits = 2 * -(-width // _BLOCK) * -(-height // _BLOCK)
    zeros = bytes(bits // 8) + (bytes((0xFF >> bits % 8,)) if bits % 8 else b"")
    own = [(segment.marker, picture.header_reader.read(*segment[1:])) for segment in segments]
    empty = (
        make_segment(_DHT, _TABLES)
        + make_segment(_DRI, _NO_RESTARTS)
        + make_segment(_SOS, bytes((1, first.number, 0x33, 0, 63, 0)))
        + zeros
        + b"".join(make_segment(marker, content) for marker, content in own if marker in (_DHT, _DRI))
    )
    scan = segments[-1].start - 4
    return source.read(0, scan) + empty + source.read(scan)
