"""Errors of URLs."""

from __future__ import annotations

from imgsvc_core.errors import ImgsvcError, SourceUnreachable


class InvalidSignature(ImgsvcError):
    """The URL of a picture has no valid signature."""

    slug = "invalid_signature"


class UrlExpired(ImgsvcError):
    """The URL of a picture was valid until a time that has passed."""

    slug = "url_expired"


class DialectError(ImgsvcError):
    """The URL of another service is wrong, or asks for something that is not possible here.

    ``status`` is the HTTP status with which that service answers such a URL.
    """

    slug = "dialect_error"

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class SourceRefused(SourceUnreachable):
    """The server of the source answers with an HTTP status instead of the source."""

    def __init__(self, message: str, *, status: int = 502) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_missing(self) -> bool:
        """Return True if the server has no such source. Layers, which have a path, are no sources."""
        return self.status in (404, 410) and not self.path
