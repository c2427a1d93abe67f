"""Multipart forms: the part ``file``, and the part ``data`` with a JSON document."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import attrs
from aiohttp import web
from multipart import MultipartError, MultipartSegment, parse_options_header

from imgsvc_core.errors import invalid
from imgsvc_http.answering.errors import refusal
from imgsvc_http.answering.header_fields import extended_file_name, file_name, without_controls
from imgsvc_http.receiving.body import (
    Pace,
    begin_body,
    next_chunk,
    parse_json,
    receiving,
    unsupported_media_type,
)
from imgsvc_http.runtime.private_names import LenientParser
from imgsvc_http.storage.source_files import SourceFile, Writable

_MEDIA_TYPES = ("multipart/form-data", "multipart/mixed")
_MOST_PARTS = 16
_MOST_SHOWN = 60  # characters of the name of a part that is ignored
_MOST_FRAMING_BYTES = 1 << 17
_MOST_HEADER_BYTES = 1 << 16  # of a part; a name is cut, however long it is
_IDENTITY = ("7bit", "8bit", "binary", "identity")


class FormFile(NamedTuple):
    """The name that the part ``file`` of a form has, and the names of parts that were ignored."""

    name: str
    ignored: tuple[str, ...]


async def read_form(
    request: web.Request,
    into: SourceFile,
    *,
    limit: int,
    seconds: float,
    pace: Pace,
    json_limit: int = 0,
    on_document: Callable[[Any], None] | None = None,
) -> FormFile:
    """Write the part ``file`` of a form into a file, and return the names in the form.

    Other parts are ignored.

    Args:
        request: the request.
        into: the file.
        limit: the most bytes of the part ``file``.
        seconds: how long the form may take.
        pace: waits until another part of the body may be read.
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
    targets: dict[str, tuple[Writable, int]] = {}
    if on_document is not None:
        targets["data"] = data, json_limit
    try:
        async with receiving(seconds):
            with into.writing() as file, _parser_of(request) as parser:
                targets["file"] = file, limit
                form, size = _Form(parser, targets), 0
                while chunk := await next_chunk(request, pace):
                    size += len(chunk)
                    if size > most:
                        raise refusal("body_too_large", what="The form", limit=most)
                    for part in form.whole_parts(chunk):
                        if part.name == "data" and on_document is not None:
                            document = await parse_json(data.getvalue() or b"{}")
                            on_document({} if document is None else document)
    except MultipartError as error:
        reason = str(error).partition("\n")[0][:200] or "it is broken"
        raise refusal("invalid_multipart", reason=reason) from error
    if on_document is not None and "data" not in form.parts:
        on_document({})
    if "file" not in form.parts:
        expected = "Upload 'file' parameter must be an image in a part of the form"
        raise invalid("file", expected, "and is required")
    return FormFile(form.parts["file"].filename, tuple(form.ignored))


def _parser_of(request: web.Request) -> LenientParser:
    _, options = parse_options_header(request.headers.get("Content-Type", ""))
    return LenientParser(
        options.get("boundary", ""),
        max_segment_count=_MOST_PARTS,
        max_header_size=_MOST_HEADER_BYTES,
        header_charset="latin-1",
    )


@attrs.define(eq=False)
class _Part:
    """A part, and the file and the most bytes that it is for; without a file it is ignored."""

    name: str
    target: Writable | None = None
    limit: int = 0
    filename: str = ""
    size: int = 0


class _Form:
    """The parts of a form as they arrive, each of which is written to its target."""

    def __init__(self, parser: LenientParser, targets: Mapping[str, tuple[Writable, int]]) -> None:
        self.parts: dict[str, _Part] = {}
        self.ignored: list[str] = []
        self._parser = parser
        self._targets = targets
        self._part = _Part("")

    def whole_parts(self, chunk: bytes) -> Iterator[_Part]:
        """Write what a chunk of the form holds. Yield each part that ends in it."""
        for event in self._parser.parse(chunk):
            if event is None:
                yield self._part
            elif isinstance(event, MultipartSegment):
                self._part = self._begun(event)
            elif (target := (part := self._part).target) is not None:
                part.size += len(event)
                if part.size > part.limit:
                    raise refusal("body_too_large", what=f"The part '{part.name}'", limit=part.limit)
                target.write(event)

    def _begun(self, segment: MultipartSegment) -> _Part:
        name = _text(segment.name)
        if name in self.parts:
            raise refusal("invalid_multipart", reason=f"it has more than one part '{name}'")
        if name not in self._targets:
            if name:
                self.ignored.append(without_controls(name[:_MOST_SHOWN]))
            return _Part(name)
        headers = dict(reversed(segment.headerlist))  # whose names the parser writes in one way
        _check(segment, headers, name)
        target, limit = self._targets[name]
        part = self.parts[name] = _Part(name, target, limit, _filename(segment, headers))
        return part


def _check(segment: MultipartSegment, headers: Mapping[str, str], name: str) -> None:
    if (segment.content_type or "").startswith("multipart/"):
        raise refusal("invalid_multipart", reason="it has a form within the form")
    for header in ("Content-Transfer-Encoding", "Content-Encoding"):
        encoding = headers.get(header, "binary").strip().lower() or "binary"
        if encoding not in _IDENTITY:
            reason = f"its part '{name}' is encoded as '{encoding[:60]}'; send it as it is"
            raise refusal("invalid_multipart", reason=reason)


def _filename(segment: MultipartSegment, headers: Mapping[str, str]) -> str:
    """Return the base name of a file, also if it is in the notation of RFC 5987 that browsers do not use."""
    extended = extended_file_name(headers.get("Content-Disposition", ""))
    return file_name(extended or _text(segment.filename))


def _text(header: str | None) -> str:
    """Return text of a header that is meant to be UTF-8. It is a label: other bytes are replaced."""
    try:
        return (header or "").encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:  # decoded already
        return header or ""
