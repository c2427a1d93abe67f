"""Reading uploads: forms with a file and a JSON document, refused while they come in rather than after."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, BinaryIO

import attrs
from aiohttp import web
from aiohttp.multipart import content_disposition_filename, parse_content_disposition
from multipart import MultipartError, MultipartSegment, ParserError, PushMultipartParser, parse_options_header

from imgsvc_http.answering.refusals import body_too_large, invalid, invalid_multipart, unsupported_media_type
from imgsvc_http.receiving.body import arriving, check_announced, invite, parse_json, received

_KINDS = ("multipart/form-data", "multipart/mixed")
_MOST_PARTS = 16
_MOST_FRAMING_BYTES = 1 << 17
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_AS_IT_IS = ("7bit", "8bit", "binary", "identity")


@attrs.frozen
class Upload:
    """An uploaded file, with the JSON document that came along."""

    path: Path
    name: str
    document: Any


async def read_upload(
    request: web.Request,
    into: Path,
    *,
    limit: int,
    seconds: float,
    data: io.BytesIO | None = None,
    json_limit: int = 0,
) -> Upload:
    """A form with the part ``file`` and, before or after it where ``data`` has a place, that JSON document.

    Raises a `Refusal` for what is no such form; what has come of the document until then is in its place.
    """
    if request.content_type not in _KINDS:
        raise unsupported_media_type("multipart/form-data", request.headers.get("Content-Type", ""))
    most = limit + json_limit + _MOST_FRAMING_BYTES
    check_announced(request, most, "The form")
    await invite(request)
    parts: dict[str, _Part] = {}
    async with arriving(seconds):
        with into.open("wb") as file:
            places = {"file": _Place(file, limit)}
            if data is not None:
                places["data"] = _Place(data, json_limit)
            async for event in _events(request, most):
                if isinstance(event, MultipartSegment):
                    part = _Part.of(event, places)
                    if part.name in parts:
                        raise invalid_multipart(f"it has more than one part '{part.name}'")
                    parts[part.name] = part
                elif event is not None:
                    places[part.name].write(event, part.name)
    if "file" not in parts:
        raise invalid(
            "file", "Upload 'file' parameter is required and must be an image in a part of the form"
        )
    name = Path(parts["file"].filename.replace("\\", "/")).name[:255]
    document = {} if data is None else await parse_json(data.getvalue() or b"{}")
    return Upload(into, _CONTROL.sub("", name), document)


@attrs.frozen
class _Part:
    name: str
    filename: str

    @classmethod
    def of(cls, segment: MultipartSegment, expected: dict[str, _Place]) -> _Part:
        if (segment.content_type or "").startswith("multipart/"):
            raise invalid_multipart("it has a form within the form")
        if segment.name not in expected:
            names = " and ".join(f"'{name}'" for name in expected)
            raise invalid_multipart(f"it has a part '{(segment.name or '')[:60]}'; expected {names}")
        for header in ("Content-Transfer-Encoding", "Content-Encoding"):
            encoding = (segment.header(header) or "binary").strip().lower()
            if encoding not in _AS_IT_IS:
                raise invalid_multipart(
                    f"its part '{segment.name}' is encoded as '{encoding[:60]}'; send it as it is"
                )
        return cls(segment.name, _filename(segment))


@attrs.define
class _Place:
    """Where the bytes of a part go, and how many there may be."""

    file: BinaryIO
    limit: int
    size: int = 0

    def write(self, data: bytes, name: str) -> None:
        self.size += len(data)
        if self.size > self.limit:
            raise body_too_large(f"The part '{name}'", self.limit)
        self.file.write(data)


async def _events(request: web.Request, limit: int) -> AsyncIterator[MultipartSegment | bytes | None]:
    """The start of each part, its bytes, and nothing at its end; whatever is wrong is one kind of error."""
    _, options = parse_options_header(request.headers.get("Content-Type", ""))
    parser_of = PushMultipartParser if request.content_type == "multipart/form-data" else _MixedParser
    try:
        with parser_of(options.get("boundary", ""), max_segment_count=_MOST_PARTS) as parser:
            async for chunk in received(request, limit, "The form"):
                for event in parser.parse(chunk):
                    yield event
    except MultipartError as error:
        raise invalid_multipart(_reason(error)) from error


class _MixedParser(PushMultipartParser):  # type: ignore[misc]
    """Takes parts of any disposition: in other multiparts than forms they are attachments or inline."""

    def _create_segment(self, headerlist: list[tuple[str, str]]) -> MultipartSegment:
        segment = MultipartSegment(headerlist)
        if segment.disposition is None:
            raise ParserError("Missing Content-Disposition segment header")
        return segment


def _reason(error: MultipartError) -> str:
    if any(isinstance(item, UnicodeError) for item in error.args):
        return "a header of its parts is no text in UTF-8"
    return str(error).partition("\n")[0][:200] or "it is broken"


def _filename(segment: MultipartSegment) -> str:
    """The name of a file, also in the notation of RFC 5987 that browsers do not use."""
    disposition = segment.header("Content-Disposition") or ""
    if "*=" not in disposition:
        return segment.filename or ""
    _, parameters = parse_content_disposition(disposition)
    return content_disposition_filename(parameters) or segment.filename or ""
