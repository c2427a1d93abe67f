"""The metadata that a result keeps: the policies ``strip``, ``copyright`` and ``keep``.

The color profile is always kept. Blobs have libvips' names: ``exif-data``, ``xmp-data``, ``iptc-data``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs import exif
from imgsvc_core.codecs.headers.psd import read_resources
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.codecs.settings import MetadataPolicy
from imgsvc_core.errors import CorruptImage
from imgsvc_core.vipsimage import field_names, has, remove_field

PROFILE = "icc-profile-data"
EXIF = "exif-data"
XMP = "xmp-data"
IPTC = "iptc-data"
BLOBS = (PROFILE, EXIF, XMP, IPTC)

_DROPPED = (EXIF, XMP, IPTC, "orientation")
# What libvips takes apart itself; it writes none of it where ``keep`` names none of the blobs.
_DROPPED_FAMILIES = ("exif-", "png-comment", "jpeg-thumb")

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RIGHTS_NAMESPACES = {
    "http://ns.adobe.com/xap/1.0/rights/": None,  # all of it
    "http://purl.org/dc/elements/1.1/": ("creator", "rights"),
    "http://ns.adobe.com/photoshop/1.0/": ("Credit", "Source"),
}
_XMP_ORIENTATION = re.compile(rb"(<(\w+):Orientation>|\w+:Orientation=[\"'])\d(?=[<\"'])")

# IPTC-IIM: coded character set, by-line, credit, source, copyright notice.
_IPTC_RIGHTS = {(1, 90), (2, 80), (2, 110), (2, 115), (2, 116)}
_PHOTOSHOP = b"Photoshop 3.0\0"
_IPTC_RESOURCE = 0x0404


def apply_policy(image: pyvips.Image, policy: MetadataPolicy) -> pyvips.Image:
    """Return the image with only the metadata that the policy allows; pixels must be upright already.

    A color profile of another kind than the pixels, such as one for CMYK on RGB, is dropped.
    """
    dropped = [name for name in _DROPPED if has(image, name)]
    if policy != "strip":
        dropped += [name for name in field_names(image) if name.startswith(_DROPPED_FAMILIES)]
    if has(image, PROFILE) and not _fits(image.get(PROFILE), image):
        dropped.append(PROFILE)
    if not dropped:
        return image
    blobs = _kept(image, policy)
    image = image.copy()
    for name in dropped:
        remove_field(image, name)
    for name, blob in blobs.items():
        if blob:
            image.set_type(pyvips.GValue.blob_type, name, blob)
    return image


def keep_flags(image: pyvips.Image) -> str:
    """Return the value of libvips' ``keep`` for what `apply_policy` left on the image."""
    flags = {EXIF: "exif", XMP: "xmp", IPTC: "iptc", PROFILE: "icc"}
    return ":".join(flag for name, flag in flags.items() if has(image, name)) or "none"


def blob(image: pyvips.Image, name: str) -> bytes | None:
    """Return a blob of the image, or ``None``."""
    return bytes(image.get(name)) if has(image, name) else None


def wrap_iptc(records: bytes) -> bytes:
    """Return IPTC records as JPEG holds them: inside a Photoshop resource block."""
    padding = b"\0" * (len(records) % 2)
    return _PHOTOSHOP + b"8BIM" + struct.pack(">HHI", _IPTC_RESOURCE, 0, len(records)) + records + padding


def _kept(image: pyvips.Image, policy: MetadataPolicy) -> dict[str, bytes | None]:
    if policy == "strip":
        return {}
    stored_exif, xmp, iptc = (blob(image, name) for name in (EXIF, XMP, IPTC))
    parsed = exif.parse(stored_exif) if stored_exif else None
    records = _iptc_records(iptc) if iptc else b""
    if policy == "keep":
        return {
            EXIF: exif.serialize(parsed.upright()) if parsed else None,
            XMP: _XMP_ORIENTATION.sub(rb"\g<1>1", xmp) if xmp else None,
            IPTC: records,
        }
    rights = parsed.rights() if parsed else None
    return {
        EXIF: exif.serialize(rights) if rights and rights.main else None,
        XMP: _xmp_rights(xmp) if xmp else None,
        IPTC: _iptc_rights(records),
    }


def _fits(profile: bytes, image: pyvips.Image) -> bool:
    space = bytes(profile[16:20])
    return space == (b"GRAY" if image.bands < 3 else b"RGB ")


def _xmp_rights(packet: bytes) -> bytes | None:
    """Return a packet with the statements of rights and authorship only; ``None`` without any."""
    from xml.etree import ElementTree

    try:
        root = ElementTree.fromstring(packet.strip(b"\0 \r\n\t"))
    except (ElementTree.ParseError, ValueError):
        return None
    result = ElementTree.Element(f"{{{_RDF}}}Description", {f"{{{_RDF}}}about": ""})
    for description in root.iter(f"{{{_RDF}}}Description"):
        for name, value in description.attrib.items():
            if _speaks_of_rights(name):
                result.set(name, value)
        result.extend(child for child in description if _speaks_of_rights(child.tag))
    if len(result) == 0 and len(result.attrib) == 1:
        return None
    envelope = ElementTree.Element("{adobe:ns:meta/}xmpmeta")
    ElementTree.SubElement(envelope, f"{{{_RDF}}}RDF").append(result)
    return ElementTree.tostring(envelope)


def _speaks_of_rights(name: str) -> bool:
    namespace, _, local = name.removeprefix("{").rpartition("}")
    names = _RIGHTS_NAMESPACES.get(namespace, ())
    return names is None or local in names


def _iptc_records(data: bytes) -> bytes:
    """Return the IPTC records of a blob, with or without Photoshop's wrapping."""
    if not data.startswith(_PHOTOSHOP):
        return data if data[:1] == b"\x1c" else b""
    reader = HeaderReader(ByteSource(data), "Photoshop")
    try:
        resources = read_resources(reader, len(_PHOTOSHOP), reader.size)
        return reader.read(*resources[_IPTC_RESOURCE]) if _IPTC_RESOURCE in resources else b""
    except CorruptImage:
        return b""


def _iptc_rights(records: bytes) -> bytes:
    kept = [raw for key, raw in _datasets(records) if key in _IPTC_RIGHTS]
    return b"".join(kept) if any(raw[1:3] != b"\x01\x5a" for raw in kept) else b""


def _datasets(records: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    position = 0
    while position + 5 <= len(records) and records[position] == 0x1C:
        record, number, length = struct.unpack_from(">BBH", records, position + 1)
        if length & 0x8000:
            return
        yield (record, number), records[position : position + 5 + length]
        position += 5 + length
