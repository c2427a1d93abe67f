"""What is stored, and under which name."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import attrs

from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.spec.declare import shown
from imgsvc_core.stores.declarations import StoreSpec


def _check_name(_item: object, _field: object, name: str) -> None:
    if name in ("", ".", "..") or re.search(r"[\x00-\x1f\x7f/\\]", name):
        message = f"Store result 'name' parameter must be a file's name, got {shown(name)}"
        raise SpecError([Problem("store.name", message)])


@attrs.frozen
class StoredObject:
    """Bytes, or the file that holds them, with the file name and the content type of the result.

    Raises `SpecError` for a name that is none of a file.
    """

    data: bytes | Path = attrs.field(repr=False)
    name: str = attrs.field(validator=_check_name)
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
