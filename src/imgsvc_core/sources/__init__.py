"""Sources: read and open everything that an image can come from.

The names here are for front ends too: paths and URLs are opened, and spoken of without secrets.
"""

from typing import TYPE_CHECKING

from imgsvc_core._runtime.public_names import names_later
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.sources.filesystems import list_archive, open_filesystem
from imgsvc_core.sources.receiving import is_url, open_bytes
from imgsvc_core.sources.url_messages import missing_package, reason_of, shown_url

if TYPE_CHECKING:
    from imgsvc_core.sources.content_coding import Decoding, InvalidCoding, TooManyBytes
    from imgsvc_core.sources.objects import object_info, read_object

# Only URLs need these.
__getattr__ = names_later(
    __name__,
    {
        "content_coding": ("Decoding", "InvalidCoding", "TooManyBytes"),
        "objects": ("object_info", "read_object"),
    },
)

__all__ = [
    "ByteSource",
    "Decoding",
    "InvalidCoding",
    "TooManyBytes",
    "is_url",
    "list_archive",
    "missing_package",
    "object_info",
    "open_bytes",
    "open_filesystem",
    "read_object",
    "reason_of",
    "shown_url",
]
