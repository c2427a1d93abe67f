"""What is stored, and under which name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import attrs

from imgsvc_core.stores.declarations import StoreSpec


@attrs.frozen
class StoredObject:
    """Bytes, or the file that holds them, with the file name and the content type of the result."""

    data: bytes | Path = attrs.field(repr=False)
    name: str
    content_type: str

    async def read(self) -> bytes:
        """The bytes."""
        return self.data if isinstance(self.data, bytes) else await asyncio.to_thread(self.data.read_bytes)


def object_name(spec: StoreSpec, name: str) -> str:
    """The object's name in its bucket, without a leading slash.

    A path is the whole name; one that ends in a slash is a folder for the result's own name, which also
    stands alone where there is no path.

    >>> from imgsvc_core.stores.declarations import Ibm
    >>> ibm = {"key": "k", "bucket": "pictures", "region": "eu-de"}
    >>> [object_name(Ibm(path=path, **ibm), "cat.webp") for path in ("", "pets/", "pets/tom.webp")]
    ['cat.webp', 'pets/cat.webp', 'pets/tom.webp']
    """
    return spec.path + name if not spec.path or spec.path.endswith("/") else spec.path
