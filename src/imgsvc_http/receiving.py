"""Reading request bodies, refused while they come in rather than after."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import attrs
from aiohttp import BodyPartReader, HttpVersion11, MultipartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from imgsvc_http.context import INVITED
from imgsvc_http.refusals import (
    body_too_large,
    body_too_slow,
    broken_body,
    invalid,
    invalid_json,
    invalid_multipart,
    unsupported_media_type,
)

_FORMS = ("multipart/form-data", "multipart/mixed")
_BAD_MULTIPART = (
    ValueError,
    AssertionError,
    RuntimeError,
    LookupError,
    HttpProcessingError,
    web.HTTPException,
)
_MOST_PARTS = 16


@attrs.frozen
class Upload:
    """An uploaded file, with the JSON document that came along."""

    path: Path
    name: str
    document: Any


class IncomingFolder:
    """Where sources lie while they are worked on; what a killed process left is cleared away."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in folder.iterdir():
            left.unlink(missing_ok=True)

    @contextlib.contextmanager
    def path(self) -> Iterator[Path]:
        """A path for one source, which is gone after the block."""
        path = self.folder / secrets.token_hex(16)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


async def read_json(request: web.Request, *, limit: int, seconds: float) -> Any:
    """The JSON body of a request."""
    if request.content_type != "application/json":
        raise unsupported_media_type("application/json", request.headers.get("Content-Type", ""))
    return parse_json(await read_body(request, limit=limit, seconds=seconds))


async def read_body(request: web.Request, *, limit: int, seconds: float) -> bytes:
    """All bytes of a body."""
    _check_announced(request, limit, "The body")
    await _invite(request)
    body = bytearray()
    async with _arriving(seconds):
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > limit:
                raise body_too_large("The body", limit)
    return bytes(body)


async def read_upload(
    request: web.Request, into: Path, *, limit: int, json_limit: int, seconds: float
) -> Upload:
    """A form with the parts ``file`` and, before or after it, ``data``.

    Raises a `Refusal` for what is no such form.
    """
    if request.content_type not in _FORMS:
        raise unsupported_media_type("multipart/form-data", request.headers.get("Content-Type", ""))
    _check_announced(request, limit + json_limit, "The form")
    await _invite(request)
    name, document, seen = "", {}, set()
    async with _arriving(seconds):
        async for part in _parts(request):
            if part.name in seen:
                raise invalid_multipart(f"it has more than one part '{part.name}'")
            if part.name == "file":
                name = part.filename or ""
                await _save(part, into, limit)
            elif part.name == "data":
                document = parse_json(await _read(part, json_limit) or b"{}")
            else:
                raise invalid_multipart(
                    f"it has a part '{(part.name or '')[:60]}'; expected the parts 'file' and 'data'"
                )
            seen.add(part.name)
    if "file" not in seen:
        raise invalid(
            "file", "Upload 'file' parameter is required and must be an image in a part of the form"
        )
    return Upload(into, Path(name.replace("\\", "/")).name[:255], document)


def parse_json(body: bytes) -> Any:
    """JSON values, strictly: no repeated keys, no NaN."""
    try:
        text = body.decode("utf-8-sig")
        document = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
        if "\\u" in text:
            json.dumps(document, ensure_ascii=False).encode()  # finds halves of surrogate pairs
    except RecursionError:
        raise invalid_json("it is nested too deeply") from None
    except UnicodeError:
        raise invalid_json("it must be text in UTF-8") from None
    except ValueError as error:
        raise invalid_json(str(error).rstrip(".")) from None
    return document


async def _parts(request: web.Request) -> AsyncIterator[BodyPartReader]:
    """The parts of a form; whatever is wrong with it is one kind of error."""
    reader: MultipartReader | None = None
    for _ in range(_MOST_PARTS):
        with _as_invalid_multipart():
            reader = reader or await request.multipart()
            part = await reader.next()
        if part is None:
            return
        if not isinstance(part, BodyPartReader):
            raise invalid_multipart("it has a form within the form")
        yield part
    raise invalid_multipart(f"it has more than {_MOST_PARTS} parts")


async def _save(part: BodyPartReader, into: Path, limit: int) -> None:
    size = 0
    with into.open("xb") as file:
        async for chunk in _chunks(part):
            size += len(chunk)
            if size > limit:
                raise body_too_large("The part 'file'", limit)
            file.write(chunk)


async def _read(part: BodyPartReader, limit: int) -> bytes:
    body = bytearray()
    async for chunk in _chunks(part):
        body += chunk
        if len(body) > limit:
            raise body_too_large("The part 'data'", limit)
    return bytes(body)


async def _chunks(part: BodyPartReader) -> AsyncIterator[bytes]:
    while True:
        with _as_invalid_multipart():
            chunk = await part.read_chunk(1 << 18)
            if not chunk:
                return
            decoded = part.decode(chunk) if _is_encoded(part) else chunk
        yield decoded


def _is_encoded(part: BodyPartReader) -> bool:
    return "Content-Transfer-Encoding" in part.headers or "Content-Encoding" in part.headers


@contextlib.contextmanager
def _as_invalid_multipart() -> Iterator[None]:
    try:
        yield
    except _BAD_MULTIPART as error:
        raise invalid_multipart(str(error).partition("\n")[0][:200] or "it is broken") from error


@contextlib.asynccontextmanager
async def _arriving(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise body_too_slow(seconds) from None
    except (web.RequestPayloadError, ConnectionError) as error:
        raise broken_body() from error


def _check_announced(request: web.Request, limit: int, what: str) -> None:
    if request.content_length is not None and request.content_length > limit:
        raise body_too_large(what, limit)


async def _invite(request: web.Request) -> None:
    """Tell a client that waits for it to send its body."""
    if waits_for_invitation(request):
        request[INVITED] = True
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


def waits_for_invitation(request: web.Request) -> bool:
    """Whether the client holds its body back, and has not been told to send it."""
    expects = request.headers.get("Expect", "").strip().lower() == "100-continue"
    return expects and request.version >= HttpVersion11 and INVITED not in request


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key '{repeated[:60]}' stands there more than once")
    return document


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")
