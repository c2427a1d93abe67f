"""For front ends: read and write at paths, URLs and file objects, and speak of them without secrets."""

from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.sources.content_coding import Decoding, InvalidCoding, TooManyBytes
from imgsvc_core.sources.filesystems import open_filesystem
from imgsvc_core.sources.objects import object_info, read_object
from imgsvc_core.sources.receiving import is_url, open_bytes
from imgsvc_core.sources.url_messages import missing_package, reason_of, shown_url
from imgsvc_core.targets.writing import name_of, put_object, remove_unfinished, writing

__all__ = [
    "ByteSource",
    "Decoding",
    "InvalidCoding",
    "TooManyBytes",
    "is_url",
    "missing_package",
    "name_of",
    "object_info",
    "open_bytes",
    "open_filesystem",
    "put_object",
    "read_object",
    "reason_of",
    "remove_unfinished",
    "shown_url",
    "writing",
]
