"""The base of the fsspec file systems that write to stores."""

from __future__ import annotations

from typing import ClassVar


class UnconfiguredFileSystem:
    """A file system without a protocol, so that only explicit settings apply.

    fsspec adds settings by the protocols of a class, from its configuration files and from variables like
    ``FSSPEC_S3_TOKEN``. Those settings belong to the operator, and the credentials here belong to a client.
    """

    protocol: ClassVar[tuple[str, ...]] = ()
    cachable: ClassVar[bool] = False
