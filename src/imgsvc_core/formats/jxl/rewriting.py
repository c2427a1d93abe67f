"""Change the metadata of a JPEG XL without touching its codestream."""

from __future__ import annotations

from imgsvc_core.formats.boxes import make_box
from imgsvc_core.formats.jxl import Jxl
from imgsvc_core.formats.jxl.bits import BitReader
from imgsvc_core.formats.jxl.codestream import SPOT
from imgsvc_core.formats.jxl.frames import read_frames
from imgsvc_core.formats.jxl.reading import read_metadata
from imgsvc_core.formats.metadata import EXIF, XMP, Blocks, beside_stored
from imgsvc_core.formats.settings import MetadataPolicy

_FIRST = (b"JXL ", b"ftyp", b"jxll")  # the kind of the file
_INDEX = b"jxli"  # of the frames in the codestream


def rewrite(picture: Jxl, policy: MetadataPolicy) -> bytes | None:
    """Return the file without boxes that neither pixels nor their colors need, and without what follows the
    codestream.

    The box from which a JPEG comes back goes as well, because it holds the metadata of the JPEG.

    Return None if the codestream has more than the picture: a preview, channels that are not shown, such as
    depth, or names of channels and layers.
    """
    reader, header, facts = picture.header_reader, picture.header, picture.header.picture
    frames = list(read_frames(BitReader(header.codestream, facts.end), facts))
    hidden = [channel for channel in facts.extra if channel is not facts.alpha and channel.kind != SPOT]
    named = [part for parts in (facts.extra, frames) for part in parts if part.named]
    if facts.preview or hidden or named:
        return None
    codestream = header.codestream.read(0, frames[-1].end // 8)
    if not header.boxes:
        return codestream
    found = read_metadata(reader, header) if policy == "copyright" else {}
    kept = beside_stored(Blocks(found.get(EXIF), found.get(XMP)), policy, 1)  # the codestream tells it
    first, index = (
        [
            make_box(box.kind, reader.read(box.start, box.end - box.start))
            for box in header.boxes
            if box.kind in kinds
        ]
        for kinds in (_FIRST, (_INDEX,))
    )
    return b"".join((*first, *boxes_of(kept), *index, make_box(b"jxlc", codestream)))


def boxes_of(blocks: Blocks) -> list[bytes]:
    """Return the boxes of a JPEG XL that hold EXIF and XMP."""
    return [
        *([make_box(b"Exif", bytes(4) + blocks.exif)] if blocks.exif else ()),
        *([make_box(b"xml ", blocks.xmp)] if blocks.xmp else ()),
    ]
