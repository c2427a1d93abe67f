"""XMP: what a packet says of an image, made ready to travel with another one (ISO 16684-1).

A packet that is no XML, that nests too deeply or has very many tags is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from xml.dom import XMLNS_NAMESPACE, Node, minidom
from xml.dom.minidom import Attr, Comment, Document, Element
from xml.parsers.expat import ExpatError

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_META = "adobe:ns:meta/"
_DC = "http://purl.org/dc/elements/1.1/"
_TIFF = "http://ns.adobe.com/tiff/1.0/"
_EXIF = "http://ns.adobe.com/exif/1.0/"
_PHOTOSHOP = "http://ns.adobe.com/photoshop/1.0/"
_RIGHTS_OF_XMP = "http://ns.adobe.com/xap/1.0/rights/"

_MOST_PARTS = 100_000  # tags and attributes, whose objects take 100 MB
_ALL = None
_RIGHTS = {_DC: ("creator", "rights"), _PHOTOSHOP: ("Credit", "Source"), _RIGHTS_OF_XMP: _ALL}
_SYNTAX = (_RDF, _META, "http://www.w3.org/XML/1998/namespace")

# Claims of what results do not have: gain maps, motion video, depth, sound, the rest of the packet, and
# regions of the stored picture.
_CLAIMS = (
    "http://ns.adobe.com/hdr-gain-map/",
    "http://ns.adobe.com/xmp/note/",
    "http://ns.apple.com/",
    "http://ns.google.com/photos/",
    "http://ns.microsoft.com/photo/1.2/",
    "http://ns.oplus.com/photos/",
    "http://ns.vivo.com/photos/",
    "http://ns.xiaomi.com/photos/",
    "http://www.metadataworkinggroup.com/schemas/regions/",
)
# Facts of the original pixels, and previews of them.
_STALE = {
    (_DC, "format"),
    (_EXIF, "CompressedBitsPerPixel"),
    (_EXIF, "FocalPlaneXResolution"),
    (_EXIF, "FocalPlaneYResolution"),
    (_EXIF, "FocalPlaneResolutionUnit"),
    (_EXIF, "SubjectArea"),
    (_EXIF, "SubjectLocation"),
    (_PHOTOSHOP, "ColorMode"),
    (_PHOTOSHOP, "ICCProfile"),
    (_TIFF, "BitsPerSample"),
    (_TIFF, "Compression"),
    (_TIFF, "PhotometricInterpretation"),
    (_TIFF, "PlanarConfiguration"),
    (_TIFF, "SamplesPerPixel"),
    (_TIFF, "YCbCrSubSampling"),
    ("http://ns.adobe.com/xap/1.0/", "Thumbnails"),
}


def describing(packet: bytes, width: int, height: int) -> bytes | None:
    """Return a packet that fits an upright sRGB image of this size; None if it says nothing then."""
    facts = {
        (_TIFF, "Orientation"): "1",
        (_TIFF, "ImageWidth"): str(width),
        (_TIFF, "ImageLength"): str(height),
        (_EXIF, "PixelXDimension"): str(width),
        (_EXIF, "PixelYDimension"): str(height),
        (_EXIF, "ColorSpace"): "1",
    }

    def update(document: Document) -> None:
        _remove_namespaces(document, lambda namespace: namespace.startswith(_CLAIMS))
        properties = list(_properties(document))
        for node in properties:
            if _name(node) in facts:
                _set(node, facts[_name(node)])
        _remove([node for node in properties if _name(node) in _STALE])

    return _changed(packet, update)


def rights(packet: bytes) -> bytes | None:
    """Return a packet with the statements of rights and authorship only; None without any."""

    def reduce(document: Document) -> None:
        _remove_namespaces(document, lambda namespace: namespace not in (*_RIGHTS, *_SYNTAX))
        _remove([node for node in _properties(document) if not _speaks_of_rights(node)])

    return _changed(packet, reduce)


def within(packet: bytes, most: int) -> bytes | None:
    """Return a packet of so many bytes at most. The largest statements are left out first, and statements of
    rights last."""

    def reduce(document: Document) -> None:
        excess = len(_text(document)) - most
        lengths = [(_speaks_of_rights(node), -_length(node), node) for node in _properties(document)]
        left_out = []
        for _, length, node in sorted(lengths, key=lambda found: found[:2]):
            if excess <= 0:
                break
            excess += length
            left_out.append(node)
        _remove(left_out)

    return packet if len(packet) <= most else _changed(packet, reduce)


def _changed(packet: bytes, change: Callable[[Document], None]) -> bytes | None:
    if packet.count(b"<") + packet.count(b"=") > _MOST_PARTS:
        return None
    try:
        document = minidom.parseString(packet.strip(b"\0 \r\n\t"))
        change(document)
        return _text(document) if any(_properties(document)) else None
    except (ExpatError, ValueError, LookupError, RecursionError):
        return None


def _text(document: Document) -> bytes:
    kinds = (Node.ELEMENT_NODE, Node.PROCESSING_INSTRUCTION_NODE)
    return "".join(node.toxml() for node in document.childNodes if node.nodeType in kinds).encode()


def _properties(document: Document) -> Iterator[Attr | Element]:
    """Yield each statement about the image."""
    for description in document.getElementsByTagNameNS(_RDF, "Description"):
        parent = description.parentNode
        if parent is None or (parent.namespaceURI, parent.localName) != (_RDF, "RDF"):
            continue
        for attribute in description.attributes.values():
            if attribute.namespaceURI not in (_RDF, XMLNS_NAMESPACE):
                yield attribute
        for child in description.childNodes:
            if child.nodeType == Node.ELEMENT_NODE:
                yield child


def _remove_namespaces(document: Document, unwanted: Callable[[str], bool]) -> None:
    """Remove the elements and attributes of namespaces, their declarations, and comments."""
    found: list[Attr | Element | Comment] = []
    for element in document.getElementsByTagName("*"):
        if unwanted(element.namespaceURI or ""):
            found.append(element)
        for attribute in element.attributes.values():
            declared = attribute.value if attribute.namespaceURI == XMLNS_NAMESPACE else None
            if unwanted(declared or attribute.namespaceURI or ""):
                found.append(attribute)
        found += [child for child in element.childNodes if isinstance(child, Comment)]
    _remove(found)


def _speaks_of_rights(node: Attr | Element) -> bool:
    namespace, local = _name(node)
    names = _RIGHTS.get(namespace, ())
    return names is _ALL or local in names


def _name(node: Attr | Element) -> tuple[str, str]:
    return node.namespaceURI or "", node.localName or ""


def _length(node: Attr | Element) -> int:
    """Return the bytes that a statement takes, at least."""
    if node.nodeType == Node.ATTRIBUTE_NODE:
        return len(node.name) + len(node.value.encode())
    return len(node.toxml().encode())


def _remove(nodes: Iterable[Attr | Element | Comment]) -> None:
    """Remove nodes, all at once: one by one, each would take as long as its parent has children."""
    removed = {id(node): node for node in nodes}
    parents: dict[int, Any] = {id(node.parentNode): node.parentNode for node in removed.values()}
    for parent in filter(None, parents.values()):
        parent.childNodes[:] = [child for child in parent.childNodes if id(child) not in removed]
    for node in removed.values():
        if isinstance(node, Attr) and node.ownerElement:
            node.ownerElement.removeAttributeNode(node)


def _set(node: Attr | Element, value: str) -> None:
    if isinstance(node, Attr):
        node.value = value
        return
    while node.firstChild:
        node.removeChild(node.firstChild)
    text = minidom.Text()
    text.data = value
    node.appendChild(text)
