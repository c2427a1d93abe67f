"""The metadata that a result keeps: the policies ``strip``, ``copyright`` and ``keep``.

The color profile is always kept. Blobs have libvips' names: ``exif-data``, ``xmp-data``, ``iptc-data``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE, field_names, has, remove_field
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import EXIF_PREFIX
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import MetadataPolicy

EXIF = "exif-data"
XMP = "xmp-data"
IPTC = "iptc-data"
BLOBS = (PROFILE, EXIF, XMP, IPTC)

IPTC_START = b"\x1c"  # of each of its records

_DROPPED = (EXIF, XMP, IPTC, "orientation")
# Fields that libvips parses from the blobs. It writes them only if ``keep`` names such a blob.
_DROPPED_FAMILIES = ("exif-", "png-comment", "jpeg-thumb")

# IPTC-IIM: coded character set, by-line, credit, source, copyright notice.
_CHARACTERS = (1, 90)
_IPTC_RIGHTS = {_CHARACTERS, (2, 80), (2, 110), (2, 115), (2, 116)}
_IPTC_STALE = {(2, 131), (2, 200), (2, 201), (2, 202)}  # image orientation and previews
_IPTC_PIXELS = (3, 0)  # records from the third on describe and hold the stored picture
_MOST_OF_PROFILE = 1 << 22  # bytes; libpng reads no more than 8 MB
_FEWEST_OF_COLOR = 3  # bands
_EXTENDED = 0x8000  # the length tells how many bytes hold the length
_MOST_IN_JPEG = 65_533  # bytes of the content of a segment
XMP_PREFIX = b"http://ns.adobe.com/xap/1.0/\0"
_APP1, _APP13 = 0xFFE1, 0xFFED
PHOTOSHOP, _RESOURCE = b"Photoshop 3.0\0", b"8BIM"
_IPTC_RESOURCE = 0x0404


class Blocks(NamedTuple):
    """EXIF, XMP and IPTC of a file, without what its format puts around them."""

    exif: bytes | None = None
    xmp: bytes | None = None
    iptc: bytes | None = None


def beside_stored(blocks: Blocks, policy: MetadataPolicy, orientation: int) -> Blocks:
    """Return the metadata that a policy leaves beside pixels that stay as they are stored.

    The orientation stays, because the pixels are not turned.
    """
    rights = Blocks() if policy == "strip" else blocks
    parsed = _exif().parse(rights.exif) if rights.exif else None
    kept = (parsed.rights() if parsed else _exif().Exif({})).beside_stored(orientation)
    return Blocks(
        _exif().serialize(kept) if kept.main else None,
        _xmp().rights(rights.xmp) if rights.xmp else None,
        _iptc_rights(_iptc_records(rights.iptc)) if rights.iptc else None,
    )


def apply_policy(image: pyvips.Image, policy: MetadataPolicy, *, redacted: bool = False) -> pyvips.Image:
    """Return the image with only the metadata that the policy allows; pixels must be upright already.

    Of a ``redacted`` image nothing stays that could hold a picture or describe one: of EXIF a list of tags,
    of XMP and IPTC the rights, and libvips' own profile of sRGB in place of the file's.

    A color profile of another kind than the pixels, such as one for CMYK on RGB, is dropped. So is a profile
    that is larger than formats can hold. The pixels are sRGB by then, so they look the same without it.
    """
    dropped = [name for name in _DROPPED if has(image, name)]
    if policy != "strip":
        dropped += [name for name in field_names(image) if name.startswith(_DROPPED_FAMILIES)]
    if has(image, PROFILE) and (redacted or not _fits(image.get(PROFILE), image)):
        dropped.append(PROFILE)
    if not dropped:
        return image
    blobs = _kept(image, policy, redacted=redacted)
    if redacted and PROFILE in dropped and image.bands >= _FEWEST_OF_COLOR:
        blobs[PROFILE] = pyvips.Operation.call("profile_load", "srgb")
    image = image.copy()
    for name in dropped:
        remove_field(image, name)
    for name, blob in blobs.items():
        if blob:
            image.set_type(pyvips.GValue.blob_type, name, blob)
    return image


def keep_profile(image: pyvips.Image) -> str:
    """Return the value of libvips' ``keep``: the profile alone. libvips would fill up EXIF with defaults."""
    return "icc" if has(image, PROFILE) else "none"


def blob(image: pyvips.Image, name: str) -> bytes | None:
    """Return a blob of the image, or ``None``."""
    return bytes(image.get(name)) if has(image, name) else None


def jpeg_segments(image: pyvips.Image) -> bytes:
    """Return the segments of a JPEG that hold EXIF, XMP and IPTC.

    A segment holds 64 kB. If a block is larger, its largest values are left out, and statements of rights
    last.
    """
    return segments_of(Blocks(*(blob(image, name) for name in (EXIF, XMP, IPTC))))


def segments_of(blocks: Blocks) -> bytes:
    """Return the segments of a JPEG that hold some metadata."""
    contents = []
    stored, packet, records = blocks
    if stored and (parsed := _exif().parse(stored)):
        fitting = parsed.within(_MOST_IN_JPEG - len(EXIF_PREFIX))
        contents.append((_APP1, EXIF_PREFIX + _exif().serialize(fitting)))
    if packet and (shortened := _xmp().within(packet, _MOST_IN_JPEG - len(XMP_PREFIX))):
        contents.append((_APP1, XMP_PREFIX + shortened))
    if records:
        contents.append((_APP13, wrap_iptc(_iptc_within(records, _MOST_IN_JPEG - len(wrap_iptc(b"")) - 1))))
    return b"".join(struct.pack(">HH", marker, len(content) + 2) + content for marker, content in contents)


def wrap_iptc(records: bytes) -> bytes:
    """Return IPTC records as JPEG holds them: inside a Photoshop resource block."""
    padding = b"\0" * (len(records) % 2)
    return PHOTOSHOP + _RESOURCE + struct.pack(">HHI", _IPTC_RESOURCE, 0, len(records)) + records + padding


def _kept(image: pyvips.Image, policy: MetadataPolicy, *, redacted: bool) -> dict[str, bytes | None]:
    if policy == "strip":
        return {}
    stored, packet, iptc = (blob(image, name) for name in (EXIF, XMP, IPTC))
    parsed = _exif().parse(stored) if stored else None
    records = _iptc_records(iptc) if iptc else b""
    if policy == "keep" and not redacted:
        described = parsed.describing(*_size(image)) if parsed else None
        return {
            EXIF: _exif().serialize(described) if described else None,
            XMP: _xmp().describing(packet, *_size(image)) if packet else None,
            IPTC: b"".join(
                raw for key, raw in _datasets(records) if key < _IPTC_PIXELS and key not in _IPTC_STALE
            ),
        }
    kept = parsed and (parsed.circumstances(*_size(image)) if policy == "keep" else parsed.rights())
    return {
        EXIF: _exif().serialize(kept) if kept and kept.main else None,
        XMP: _xmp().rights(packet) if packet else None,
        IPTC: _iptc_rights(records),
    }


def _size(image: pyvips.Image) -> tuple[int, int]:
    return image.width, image.get_page_height()


def _exif() -> ModuleType:
    """Return the module that changes EXIF. Few results keep any."""
    from imgsvc_core.formats import exif

    return exif


def _xmp() -> ModuleType:
    """Return the module that changes XMP. Its parser of XML takes some time to load."""
    from imgsvc_core.formats import xmp

    return xmp


def _fits(profile: bytes, image: pyvips.Image) -> bool:
    space = bytes(profile[16:20])
    return len(profile) <= _MOST_OF_PROFILE and space == (b"GRAY" if image.bands < 3 else b"RGB ")


def _iptc_records(data: bytes) -> bytes:
    """Return the IPTC records of a blob, with or without Photoshop's wrapping and its name."""
    data = data.removeprefix(PHOTOSHOP)
    if not data.startswith(_RESOURCE):
        return data if data.startswith(IPTC_START) else b""
    from imgsvc_core.formats.psd.header import read_resources

    reader = HeaderReader(ByteSource(data), "Photoshop")
    try:
        resources = read_resources(reader, 0, reader.size)
        return reader.read(*resources[_IPTC_RESOURCE]) if _IPTC_RESOURCE in resources else b""
    except CorruptImage:
        return b""


def _iptc_within(records: bytes, most: int) -> bytes:
    """Return records of so many bytes at most. The largest are left out first, and statements of rights
    last."""
    kept = list(_datasets(records))
    excess = len(records) - most
    for dataset in sorted(kept, key=lambda found: (found[0] in _IPTC_RIGHTS, -len(found[1]))):
        if excess <= 0:
            break
        excess -= len(dataset[1])
        kept.remove(dataset)
    return b"".join(raw for _, raw in kept)


def _iptc_rights(records: bytes) -> bytes:
    kept = [(key, raw) for key, raw in _datasets(records) if key in _IPTC_RIGHTS]
    return b"".join(raw for _, raw in kept) if any(key != _CHARACTERS for key, _ in kept) else b""


def _datasets(records: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    position = 0
    while position + 5 <= len(records) and records.startswith(IPTC_START, position):
        record, number, length = struct.unpack_from(">BBH", records, position + 1)
        start = position + 5
        if length & _EXTENDED:
            digits = length & ~_EXTENDED
            start, length = start + digits, int.from_bytes(records[start : start + digits], "big")
        yield (record, number), records[position : start + length]
        position = start + length
