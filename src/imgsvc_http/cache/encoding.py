"""Entries as files: a mark, a checksum of all that follows, the length of the head, the head and the picture.

A file that is cut, damaged, of another version or of another key is no entry.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable

import attrs

from imgsvc_http.cache.entries import Entry, Picture
from imgsvc_http.cache.freshness import Freshness

_MARK = b"imgsvc cache 1\n\0"
_CHECKSUM_BYTES = hashlib.sha256().digest_size
_LENGTH = struct.Struct(">I")
_HEAD_AT = len(_MARK) + _CHECKSUM_BYTES + _LENGTH.size
_OF_PICTURE = tuple(field.name for field in attrs.fields(Picture) if field.name != "body")
_JSON = json.JSONEncoder(separators=(",", ":"))  # `json.dumps` would make one each time
_OF_ENTRY = ("key", "account", "source", "made_at", "asked_at", "epoch")


@attrs.frozen
class Encoded:
    """The file of an entry: its head, and its picture without a copy."""

    head: bytes
    body: bytes = attrs.field(repr=False)

    @property
    def size(self) -> int:
        """How many bytes the file has."""
        return _HEAD_AT + len(self.head) + len(self.body)

    def __bytes__(self) -> bytes:
        length = _LENGTH.pack(len(self.head))
        checksum = _checksum((length, self.head, self.body))
        return b"".join((_MARK, checksum, length, self.head, self.body))


def encode(entry: Entry) -> Encoded:
    """Return an entry as a file."""
    return Encoded(_head(entry), entry.picture.body)


def decode(key: str, data: bytes) -> Entry | None:
    """Return the entry of a key from the bytes of a file, or None if they are not that."""
    view = memoryview(data)
    if len(data) < _HEAD_AT or view[: len(_MARK)] != _MARK:
        return None
    rest = view[len(_MARK) + _CHECKSUM_BYTES :]
    if view[len(_MARK) : len(_MARK) + _CHECKSUM_BYTES] != _checksum((rest,)):
        return None
    end = _HEAD_AT + _LENGTH.unpack_from(rest)[0]
    facts = json.loads(data[_HEAD_AT:end])
    if facts["key"] != key:
        return None
    facts["picture"] = Picture(body=data[end:], **facts["picture"])
    facts["freshness"] = Freshness(**facts["freshness"])
    return Entry(**facts)


def _head(entry: Entry) -> bytes:
    facts = {name: getattr(entry, name) for name in _OF_ENTRY}
    facts["picture"] = {name: getattr(entry.picture, name) for name in _OF_PICTURE}
    facts["freshness"] = attrs.asdict(entry.freshness)
    return _JSON.encode(facts).encode()


def _checksum(parts: Iterable[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()
