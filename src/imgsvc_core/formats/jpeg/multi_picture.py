"""The index of a file of several JPEGs (CIPA DC-007, Multi-Picture Format)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from imgsvc_core._runtime.patterns import pattern
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.directory import Directory, read_first_directory
from imgsvc_core.formats.reader import HeaderReader

_ENTRIES = 0xB002
_ENTRY = 16  # bytes
_MOST_ENTRIES = 256
_KINDS = 0xFFFFFF
_PREVIEWS = frozenset({0x010001, 0x010002})  # the same picture at the size of a screen
_GAIN_MAP_WITHIN = 1 << 14  # bytes of a picture's metadata that say so
_GAIN_MAP = pattern(rb"hdrgm|hdrgainmap|urn:iso:std:iso:ts:21496", re.IGNORECASE)


def has_more_pictures(index: HeaderReader) -> bool:
    """Return True if an index names pictures beside the first, other than previews and gain maps of it.

    The index is the content of its segment, without the prefix. It may be damaged.
    """
    try:
        directory = read_first_directory(index)
        return any(
            kind not in _PREVIEWS and not _is_gain_map(index, offset, size)
            for kind, size, offset in _others(index, directory)
        )
    except CorruptImage:
        return False


def _others(index: HeaderReader, directory: Directory) -> Iterator[tuple[int, int, int]]:
    """Yield kind, bytes and place of each picture but the first, whose place is 0."""
    entries = directory.entries.get(_ENTRIES)
    if entries is None:
        return
    for number in range(min(entries.size // _ENTRY, _MOST_ENTRIES)):
        layout = f"{directory.layout.order}III"
        kind, size, offset = index.unpack(layout, entries.start + number * _ENTRY)
        if offset:
            yield kind & _KINDS, size, offset


def _is_gain_map(index: HeaderReader, offset: int, size: int) -> bool:
    """Return True if the metadata of a picture says so. Places count from the start of the index."""
    source, start = index.source, index.start + offset
    return _GAIN_MAP.search(source.read(start, min(size, _GAIN_MAP_WITHIN))) is not None
