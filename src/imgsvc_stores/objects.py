"""The object that is stored, and its name in the bucket."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.errors import SourceUnreachable, invalid, os_reason
from imgsvc_core.spec.store.declarations import StoreSpec


def _check_name(_item: object, _field: object, name: str) -> None:
    written = name.encode("utf-8", "backslashreplace").decode()
    if written != name or name in ("", ".", "..") or re.search(r"[\x00-\x1f\x7f/\\]", name):
        expected = "Store result 'name' parameter must be a file's name in Unicode"
        raise invalid("store.name", expected, f"got {shown(written)}")


def _check_content_type(_item: object, _field: object, content_type: str) -> None:
    if not re.fullmatch(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?", content_type):
        message = "Store result 'content_type' parameter must be a string of printable ASCII characters"
        raise invalid("store.content_type", message)


@attrs.frozen
class StoredObject:
    """A result to store: its bytes or the file that holds them, its file name and its content type.

    Raises:
        SpecError: the name is not a valid file name, or the content type is not valid in a header.
    """

    data: bytes | Path = attrs.field(repr=False)
    name: str = attrs.field(validator=_check_name)
    content_type: str = attrs.field(validator=_check_content_type)

    async def read(self) -> bytes:
        """Return the bytes.

        Raises:
            SourceUnreachable: the file cannot be read.
        """
        if isinstance(self.data, bytes):
            return self.data
        try:
            return await asyncio.to_thread(self.data.read_bytes)
        except OSError as error:
            raise SourceUnreachable(f"Result '{self.data}' cannot be read: {os_reason(error)}.") from error


def object_name(spec: StoreSpec, name: str) -> str:
    """Return the object's name in its bucket, without a leading slash.

    The path is the whole name. A path that ends in a slash is a folder, and the result's own file name
    follows it. Without a path, the file name is the object's name.

    >>> from imgsvc_core.spec.store.declarations import Ibm
    >>> ibm = {"key": "k", "bucket": "pictures", "region": "eu-de"}
    >>> [object_name(Ibm(path=path, **ibm), "cat.webp") for path in ("", "pets/", "pets/tom.webp")]
    ['cat.webp', 'pets/cat.webp', 'pets/tom.webp']
    """
    return spec.path + name if not spec.path or spec.path.endswith("/") else spec.path
