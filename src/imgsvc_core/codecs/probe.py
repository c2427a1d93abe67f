"""The facts of an image from its header, before any pixel is decoded."""

from __future__ import annotations

import attrs

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.codecs.sniff import sniff
from imgsvc_core.codecs.table import FORMATS, load_function
from imgsvc_core.errors import UnsupportedFormat
from imgsvc_core.info import ImageInfo


def probe(source: ByteSource, *, most_inlined: int | None = None) -> ImageInfo:
    """What the header of an image tells, whatever its name.

    Sizes are those of one frame as stored, with the EXIF orientation beside them; HEIC and AVIF are decoded
    upright, and their facts are those of the upright picture. Delays are those of the file. Of a TIFF with
    many pages, the first is meant; of an icon, the largest picture.

    Raises `UnsupportedFormat` for what is no image of a format in the table or a variant that nothing reads,
    and `CorruptImage` where the header is damaged. A header that is fine says nothing of the data after it.
    `ImageTooLarge` where the pictures that a drawing holds inlined have more than ``most_inlined`` pixels.
    """
    format_ = sniff(source)
    if format_ is None:
        known = ", ".join(row.title for row in FORMATS.values())
        subject = f"Source '{source.name}'" if source.name else "The source"
        start = source.read(0, 8).hex(" ")
        raise UnsupportedFormat(
            f"{subject} is no image of a known format (it starts with {start}); expected {known}."
        )
    if format_.name == "svg" and most_inlined is not None:
        from imgsvc_core.codecs.inlined import check_inlined

        check_inlined(source, most_inlined)
    info: ImageInfo = load_function(format_.header)(HeaderReader(source, format_.title))
    return attrs.evolve(info, name=source.name) if source.name else info
