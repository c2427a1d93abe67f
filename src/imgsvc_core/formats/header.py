"""Tell the format of a file by its content, never by its name, and read its header."""

from __future__ import annotations

import math
import re

from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.functions import load_function
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.table import FORMATS, Format

_HEAD = 64  # bytes: more than any magic needs
_MAGIC = {name: re.compile(row.magic, re.DOTALL) for name, row in FORMATS.items()}


def sniff(source: ByteSource) -> Format | None:
    """Return the row of the format that the bytes are in, or ``None`` if the table has none for them.

    A PNG counts as animated if it announces its frames before its data.
    """
    head = source.read(0, _HEAD)
    for name, row in FORMATS.items():
        if _MAGIC[name].match(head) and _accepts(row, source):
            return row
    return None


def read_header(source: ByteSource, format: Format, *, most_memory: float = math.inf) -> ImageInfo:
    """Read the facts of an image that is in this format, in so many bytes of memory at most."""
    reader = HeaderReader(source, format.title, most_memory=most_memory)
    info: ImageInfo = load_function(format.header)(reader)
    return info


def _accepts(row: Format, source: ByteSource) -> bool:
    """Return what the function of the format decides, if its first bytes are not enough."""
    return row.accept is None or load_function(row.accept)(HeaderReader(source, row.title))
