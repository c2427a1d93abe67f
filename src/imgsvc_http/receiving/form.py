"""Multipart forms: the part ``file``, and the part ``data`` with a JSON document."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import attrs
from aiohttp import web
from multipart import MultipartError, MultipartSegment, parse_options_header

from imgsvc_http.answering.errors import invalid, refusal
from imgsvc_http.fetching.file_name import extended_file_name
from imgsvc_http.receiving.body import begin_body, chunks, parse_json, receiving, unsupported_media_type
from imgsvc_http.runtime.private_names import LenientParser
from imgsvc_http.storage.source_files import SourceFile, Writable

_MEDIA_TYPES = ("multipart/form-data", "multipart/mixed")
_MOST_PARTS = 16
_MOST_FRAMING_BYTES = 1 << 17
_MOST_HEADER_BYTES = 1 << 16  # of a part; a name is cut, however long it is
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_IDENTITY = ("7bit", "8bit", "binary", "identity")


async def read_form(
    request: web.Request,
    into: SourceFile,
    *,
    limit: int,
    seconds: float,
    json_limit: int = 0,
    on_document: Callable[[Any], None] | None = None,
) -> str:
    """Write the part ``file`` of a form into a file, and return the name that it has in the form.

    Other parts are ignored.

    Args:
        request: the request.
        into: the file.
        limit: the most bytes of the part ``file``.
        seconds: how long the form may take.
        json_limit: the most bytes of the part ``data``, which may come before or after the file, and only if
            there is ``on_document``.
        on_document: is called with the JSON document in ``data`` as soon as that has arrived, even if the
            rest of the form is wrong, or with an empty one if the form has no ``data``.
    """
    if request.content_type not in _MEDIA_TYPES:
        raise unsupported_media_type("multipart/form-data", request)
    most = limit + json_limit + _MOST_FRAMING_BYTES
    await begin_body(request, most, "The form")
    data = io.BytesIO()
    parts: dict[str, _Part] = {}
    async with receiving(seconds):
        with into.writing() as file:
            targets: dict[str, tuple[Writable, int]] = {"file": (file, limit)}
            if on_document is not None:
                targets["data"] = (data, json_limit)
            part = _Part("")
            async for event in _events(request, most):
                if isinstance(event, MultipartSegment):
                    part = _Part.of(event, targets)
                    if part.name in parts:
                        raise refusal("invalid_multipart", reason=f"it has more than one part '{part.name}'")
                    if part.target is not None:
                        parts[part.name] = part
                elif event is not None:
                    part.write(event)
                elif on_document is not None and part.name == "data":
                    document = await parse_json(data.getvalue() or b"{}")
                    on_document({} if document is None else document)
    if on_document is not None and "data" not in parts:
        on_document({})
    if "file" not in parts:
        expected = "Upload 'file' parameter must be an image in a part of the form"
        raise invalid("file", expected, "and is required")
    return parts["file"].filename


@attrs.define
class _Part:
    """A part, and the file and the most bytes that it is for; without a file it is ignored."""

    name: str
    target: Writable | None = None
    limit: int = 0
    filename: str = ""
    size: int = 0

    @classmethod
    def of(cls, segment: MultipartSegment, targets: dict[str, tuple[Writable, int]]) -> _Part:
        name = _text(segment.name)
        target, limit = targets.get(name, (None, 0))
        if target is not None:
            _check(segment, name)
        return cls(name, target, limit, _filename(segment))

    def write(self, data: bytes) -> None:
        if self.target is None:
            return
        self.size += len(data)
        if self.size > self.limit:
            raise refusal("body_too_large", what=f"The part '{self.name}'", limit=self.limit)
        self.target.write(data)


def _check(segment: MultipartSegment, name: str) -> None:
    if (segment.content_type or "").startswith("multipart/"):
        raise refusal("invalid_multipart", reason="it has a form within the form")
    for header in ("Content-Transfer-Encoding", "Content-Encoding"):
        encoding = (segment.header(header) or "binary").strip().lower()
        if encoding not in _IDENTITY:
            reason = f"its part '{name}' is encoded as '{encoding[:60]}'; send it as it is"
            raise refusal("invalid_multipart", reason=reason)


async def _events(request: web.Request, limit: int) -> AsyncIterator[MultipartSegment | bytes | None]:
    """Yield the start of each part, its bytes, and None at its end."""
    _, options = parse_options_header(request.headers.get("Content-Type", ""))
    try:
        with LenientParser(
            options.get("boundary", ""),
            max_segment_count=_MOST_PARTS,
            max_header_size=_MOST_HEADER_BYTES,
            header_charset="latin-1",
        ) as parser:
            async for chunk in chunks(request, limit, "The form"):
                for event in parser.parse(chunk):
                    yield event
    except MultipartError as error:
        reason = str(error).partition("\n")[0][:200] or "it is broken"
        raise refusal("invalid_multipart", reason=reason) from error


def _filename(segment: MultipartSegment) -> str:
    """Return the base name of a file, also if it is in the notation of RFC 5987 that browsers do not use."""
    extended = extended_file_name(segment.header("Content-Disposition") or "")
    given = extended or _text(segment.filename)
    if not given:
        return ""
    return _CONTROL.sub("", Path(given.replace("\\", "/")).name[:255])


def _text(header: str | None) -> str:
    """Return text of a header that is meant to be UTF-8. It is a label: other bytes are replaced."""
    try:
        return (header or "").encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:  # decoded already
        return header or ""
