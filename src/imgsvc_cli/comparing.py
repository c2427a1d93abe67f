"""Compare what two servers answer to the same URLs: formats, sizes, and how different the pictures look."""

from __future__ import annotations

import contextlib
import http.client
import json
import urllib.error
import urllib.request
from typing import Any

import attrs

import imgsvc_core as imgsvc
from imgsvc_core.errors import ImgsvcError

_SECONDS = 60
_MAX_BYTES = 1 << 26


@attrs.frozen
class Document:
    """An answer that is no picture. Those with the same ``content`` say the same."""

    media_type: str
    size: int
    content: Any

    @classmethod
    def read(cls, media_type: str, data: bytes) -> Document:
        """Return what an answer contains: the object or array of JSON, or its type and size."""
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(data)
            if isinstance(value, dict | list):
                return cls(media_type, len(data), value)
        return cls(media_type, len(data), (media_type, len(data)))


@attrs.frozen(kw_only=True)
class Answer:
    """The answer of a server: a picture, or the HTTP status or other reason why there is no picture.

    If it is something else, ``document`` is what it is.
    """

    info: imgsvc.ImageInfo | None = None
    problem: str | None = None
    document: Document | None = None

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height of the picture."""
        return None if self.info is None else (self.info.width, self.info.height)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON values."""
        if self.document is not None:
            kind = {"media_type": self.document.media_type, "bytes": self.document.size}
            return {"problem": self.problem, **kind}
        if self.info is None:
            return {"problem": self.problem}
        return {name: getattr(self.info, name) for name in ("format", "width", "height", "bytes")}


@attrs.frozen(kw_only=True)
class Comparison:
    """The answers of two servers to one URL. ``dssim`` is None for pictures that cannot be compared."""

    path: str
    old: Answer
    new: Answer
    dssim: float | None = None

    def verdict(self, threshold: float) -> str:
        """Return what a person should know: "same", or what is different."""
        if self.old.document is not None and self.new.document is not None:
            return "same" if self.old.document.content == self.new.document.content else "other document"
        if self.old.info is None and self.new.info is None:
            return "same" if self.old.problem == self.new.problem else "other error"
        if self.new.info is None:
            return "refused"
        if self.old.info is None:
            return "only new"
        if self.old.size != self.new.size:
            return "other size"
        if self.old.info.format != self.new.info.format:
            return "other format"
        return "same" if self.dssim is not None and self.dssim <= threshold else "looks different"


def compare(path: str, old: str, new: str, accept: str) -> Comparison:
    """Return the answers of two servers to a path below their addresses, with a header ``Accept``."""
    (first, old_data), (second, new_data) = fetch(old + path, accept), fetch(new + path, accept)
    comparison = Comparison(path=path, old=first, new=second)
    if first.size is None or first.size != second.size:
        return comparison
    try:
        return attrs.evolve(comparison, dssim=imgsvc.compare(old_data, new_data).dssim)
    except ImgsvcError as error:
        return attrs.evolve(comparison, new=Answer(problem=error.message))


def fetch(url: str, accept: str) -> tuple[Answer, bytes]:
    """Return what a server answers to a URL, and the bytes of the picture."""
    try:
        asked = urllib.request.Request(url, headers={"Accept": accept})
        with urllib.request.urlopen(asked, timeout=_SECONDS) as response:
            data = response.read(_MAX_BYTES)
    except urllib.error.HTTPError as error:
        error.close()
        return Answer(problem=str(error.code)), b""
    except (OSError, ValueError, http.client.HTTPException) as error:
        return Answer(problem=str(getattr(error, "reason", error)) or type(error).__name__), b""
    try:
        return Answer(info=imgsvc.inspect(data)), data
    except ImgsvcError as error:
        document = Document.read(response.headers.get_content_type(), data)
        return Answer(problem=error.message, document=document), b""
