"""What the file systems of fsspec that stores are made of have in common."""

from __future__ import annotations

from typing import ClassVar


class Unconfigured:
    """A file system whose settings are those that it is made with.

    fsspec adds what its configuration says of the protocols of a class, in files and in variables like
    ``FSSPEC_S3_TOKEN``: settings of the operator, and not of strangers who write. This one has no protocol.
    """

    protocol: ClassVar[tuple[str, ...]] = ()
    cachable: ClassVar[bool] = False
