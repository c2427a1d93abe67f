"""What is stored, and under which name."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import attrs

from imgsvc_core.errors import Problem, SourceUnreachable, SpecError
from imgsvc_core.jsontext import shown
from imgsvc_core.stores.declarations import StoreSpec


def _check_name(_item: object, _field: object, name: str) -> None:
    written = name.encode("utf-8", "backslashreplace").decode()
    if written != name or name in ("", ".", "..") or re.search(r"[\x00-\x1f\x7f/\\]", name):
        message = f"Store result 'name' parameter must be a file's name in Unicode, got {shown(written)}"
        raise SpecError([Problem("store.name", message)])


def _check_content_type(_item: object, _field: object, content_type: str) -> None:
    if not re.fullmatch(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?", content_type):
        message = "Store result 'content_type' parameter must be a string of printable ASCII characters"
        raise SpecError([Problem("store.content_type", message)])


@attrs.frozen
class StoredObject:
    """Bytes, or the file that holds them, with the file name and the content type of the result.

    Raises `SpecError` for a name that is none of a file, or a content type that is none of a header.
    """

    data: bytes | Path = attrs.field(repr=False)
    name: str = attrs.field(validator=_check_name)
    content_type: str = attrs.field(validator=_check_content_type)

    async def read(self) -> bytes:
        """The bytes.

        Raises:
            SourceUnreachable: the file cannot be read.
        """
        if isinstance(self.data, bytes):
            return self.data
        try:
            return await asyncio.to_thread(self.data.read_bytes)
        except OSError as error:
            raise SourceUnreachable(f"Result '{self.data}' cannot be read: {error.strerror}.") from error


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
