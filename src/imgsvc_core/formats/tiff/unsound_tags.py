"""Tags and pages that no pixel needs, but for which libtiff refuses a file (TIFF 6.0, section 8)."""

from __future__ import annotations

import math
from collections.abc import Container

from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import ORIENTATION, Directory

_OF_PIXELS = frozenset(
    {
        *range(256, 260), 262, 266, 273, *range(277, 280), 284, 292, 293, 317, 320, *range(322, 326), 330,
        332, 338, 339, 347, *range(512, 522), *range(529, 533), *range(32995, 32999),
    }
)  # fmt: skip
# Highest and lowest values, and names of inks: libtiff refuses those that do not fit the number of channels.
_ONLY_REFUSED_FOR = frozenset({280, 281, 333, 334, 340, 341})
_RESOLUTIONS = frozenset({282, 283})
_RESOLUTION_UNIT = 296
_UNITS = range(1, 4)
_ORIENTATIONS = range(1, 9)
# The order of bits, and that of channels. Most writers mean the usual one, whatever they state besides.
_ORDERS = {266: range(1, 3), 284: range(1, 3)}


def unsound_tags(page: Directory) -> frozenset[int]:
    """Return the tags that say nothing of the pixels, or only their order, and have values that cannot be."""
    return frozenset(tag for tag in page.entries if not _is_sound(page, tag))


def _is_sound(page: Directory, tag: int) -> bool:
    if tag in _OF_PIXELS:
        return tag not in _ORDERS or page.first(tag, 0) in _ORDERS[tag]
    if not page.is_readable(tag) or tag in _ONLY_REFUSED_FOR or not page.fits_offsets(tag):
        return False
    if tag in _RESOLUTIONS:
        return 0 <= page.real(tag) < math.inf
    if tag == ORIENTATION:
        return page.first(tag, 0) in _ORIENTATIONS
    return tag != _RESOLUTION_UNIT or page.first(tag, 0) in _UNITS


def without_tags(source: ByteSource, page: Directory, tags: Container[int], *, last: bool) -> ByteSource:
    """Return a copy of the file whose page lacks some tags, and with ``last`` has no page after it."""
    data = source.editable()
    entries = page.stored_entries(data)
    if not entries:
        return source
    kept = {tag: entry for tag, entry in entries.items() if tag not in tags}
    page.write_entries(data, kept, 0 if last else page.next)
    return ByteSource(data, name=source.name)
