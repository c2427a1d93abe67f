"""TIFF without what no pixel needs: libtiff refuses a file for an odd tag, or an odd later page."""

from __future__ import annotations

import struct
from collections.abc import Container

from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import Directory


def without(source: ByteSource, page: Directory, tags: Container[int], *, last: bool) -> ByteSource:
    """Return a copy of the file whose first page lacks some tags, and with ``last`` has no page after it."""
    layout = page.layout
    data = source.editable()
    (start,) = struct.unpack_from(layout.word, data, layout.word_size)
    (count,) = struct.unpack_from(layout.count, data, start)
    first = start + struct.calcsize(layout.count)
    size = struct.calcsize(layout.entry) + layout.word_size
    end = first + count * size
    if end + layout.word_size > source.size:
        return source
    entries = (data[at : at + size] for at in range(first, end, size))
    kept = [entry for entry in entries if struct.unpack_from(f"{layout.order}H", entry)[0] not in tags]
    following = bytes(layout.word_size) if last else data[end : end + layout.word_size]
    written = b"".join((struct.pack(layout.count, len(kept)), *kept, following))
    data[start : start + len(written)] = written
    return ByteSource(data, name=source.name)
