"""Sources: read and open everything that an image can come from.

The names here are for front ends too: paths and URLs are opened, and spoken of without secrets.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.sources.filesystems import open_filesystem
from imgsvc_core.sources.receiving import is_url, open_bytes
from imgsvc_core.sources.url_messages import missing_package, reason_of, shown_url

if TYPE_CHECKING:
    from imgsvc_core.sources.content_coding import Decoding, InvalidCoding, TooManyBytes
    from imgsvc_core.sources.objects import object_info, read_object

_LATER = {
    "Decoding": "imgsvc_core.sources.content_coding",
    "InvalidCoding": "imgsvc_core.sources.content_coding",
    "TooManyBytes": "imgsvc_core.sources.content_coding",
    "object_info": "imgsvc_core.sources.objects",
    "read_object": "imgsvc_core.sources.objects",
}
"""The names of modules that only URLs need."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ByteSource",
    "Decoding",
    "InvalidCoding",
    "TooManyBytes",
    "is_url",
    "missing_package",
    "object_info",
    "open_bytes",
    "open_filesystem",
    "read_object",
    "reason_of",
    "shown_url",
]
