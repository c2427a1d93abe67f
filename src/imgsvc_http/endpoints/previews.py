"""Previews of the playground: a source is sent once, and each preview of it names it.

So does each part of a curve of bytes against look.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import attrs

from imgsvc_core import FORMATS
from imgsvc_core.errors import invalid
from imgsvc_core.spec.declaring import Integer, Number
from imgsvc_http.answering.answers import Preview, documented
from imgsvc_http.answering.errors import refusal
from imgsvc_http.answering.header_fields import combined
from imgsvc_http.answering.responses import Response, finished, picture
from imgsvc_http.call import Call
from imgsvc_http.endpoints.examples import MEDIA_TYPES, examples
from imgsvc_http.fetching.saving import save
from imgsvc_http.gate import quota
from imgsvc_http.pipeline import Source, own_storage
from imgsvc_http.receiving.processing_request import ProcessingRequest, parse_request
from imgsvc_http.routing import Route
from imgsvc_http.runtime.clock import now
from imgsvc_http.storage.source_files import Allocate
from imgsvc_http.workers.tasks import Inspect

_SIDE = Integer(1, 16_384)
_MOST_LOOKS = 8
_LOOK = Number(1, 99)
_KEPT_SECONDS = 60  # in the memory of a node, as the next preview is likely to be of the same source


@attrs.frozen(kw_only=True)
class KeptSource:
    """A source that previews can name."""

    id: str = documented("It comes from the content, so the same source has the same id.")
    name: str = documented("Name of its file.")


@attrs.frozen(kw_only=True)
class KeptSourceAnswer:
    """The source."""

    source: KeptSource


@attrs.frozen(kw_only=True)
class Point:
    """A file of a result."""

    bytes: int = documented("Its size.")
    look: float | None = documented(
        "Its SSIMULACRA2. Null if it has too many pixels.", schema={"maximum": 100}
    )
    quality: int | None = documented("Its quality, in formats that have one.")
    encode: float = documented("How long it took to encode, in milliseconds.")


@attrs.frozen(kw_only=True)
class Scores:
    """The size and look of files of a result."""

    points: tuple[Point, ...]
    notes: tuple[str, ...] = documented("What the format cannot hold.")


async def keep(call: Call) -> KeptSourceAnswer:
    """Keep a picture for previews with the same key, until none has been made of it for some minutes.

    It comes with the request, or from a URL.
    """
    if call.request.content_type == "application/json":
        return await _keep_from_url(call)
    with call.services.source_files.file(call.request.content_length, call.account) as file:
        name = (await call.form(file, _most_bytes(call))).name
        return await _kept(call, file.path, name)


async def _keep_from_url(call: Call) -> KeptSourceAnswer:
    limits = attrs.evolve(call.services.settings.limits, source_bytes=_most_bytes(call))
    request = parse_request(await call.json(), limits, fetching=True)
    source, release = await call.services.pipeline.fetched(request, call.account)
    try:
        return await _kept(call, source.path, source.name)
    finally:
        release()


def _most_bytes(call: Call) -> int:
    """Return the most bytes that a source to keep may have."""
    most = call.services.preview_sources.most_bytes
    return min(call.services.settings.limits.source_bytes or most, most)


async def _kept(call: Call, path: Path, name: str) -> KeptSourceAnswer:
    """Keep a file if it is a picture."""
    services = call.services
    task = Inspect(name=name, limits=services.settings.limits)
    facts = (await services.pipeline.workers.run(task, path, account=call.account)).facts
    suffix = FORMATS[facts["format"]].suffix
    with own_storage():
        id_ = await services.preview_sources.keep(_owner(call), path, suffix, now())
    return KeptSourceAnswer(source=KeptSource(id=id_, name=facts["name"]))


async def original(call: Call) -> Response:
    """Return a kept source."""
    id_ = call.request.match_info["source"]
    async with _opened(call, id_) as path:
        data = _mapped(id_, path)
    headers = {
        "Content-Type": MEDIA_TYPES[Path(id_).suffix],
        "Content-Disposition": "attachment",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(HTTPStatus.OK, headers, data)


async def preview(call: Call) -> Response:
    """Process a kept source or an example, and store nothing.

    The body has the ``request``, and may have the ``window`` (``width`` and ``height``) of a browser. A still
    picture is reduced to it, and formats that browsers do not show become PNG. The facts are those of the
    result itself.
    """
    asked, request = await _asked(call)
    window = _window_of(asked.get("window"))
    services = call.services
    accept = combined(call.request.headers, "Accept") if request.is_binary else None
    count = quota.Count(services.quota, call.account)
    id_ = call.request.match_info["source"]
    async with _opened(call, id_) as path:
        done = await services.pipeline.preview(
            call.id, request, count, Source(path, id_), accept=accept, window=window
        )
    if request.is_binary:
        return picture(done.text, done.data, done.media_type, call.app.names)
    return finished(done.text)


async def scores(call: Call) -> Scores:
    """Tell the size and look of a result of a kept source or an example, without its pixels.

    The body has the ``request``, and may have ``looks``. With them, one file is made for each, in the format
    of the request and in a quality that has about that look. All of them count as one picture.
    """
    asked, request = await _asked(call)
    looks = _looks_of(asked.get("looks"))
    count = quota.Count(call.services.quota, call.account)
    id_ = call.request.match_info["source"]
    async with _opened(call, id_) as path:
        facts = await call.services.pipeline.scores(request, count, Source(path, id_), looks)
    return Scores(points=tuple(Point(**point) for point in facts["points"]), notes=tuple(facts["notes"]))


async def _asked(call: Call) -> tuple[dict[str, Any], ProcessingRequest]:
    """Return the body of a call, and the request in it."""
    asked = await call.json()
    if not isinstance(asked, dict) or not isinstance(asked.get("request"), dict):
        raise invalid("request", "The body must be an object with the 'request'")
    call.document = asked["request"]
    request = parse_request(
        call.document,
        call.services.settings.limits,
        fetching=False,
        binary_header=call.binary_header,
        presets=await call.services.presets.get(call.account) or {},
    )
    return asked, request


def _looks_of(given: object) -> tuple[float, ...]:
    """Return the looks that are asked for."""
    if given is None:
        return ()
    with contextlib.suppress(ValueError):
        if isinstance(given, list) and 1 <= len(given) <= _MOST_LOOKS:
            return tuple(map(_LOOK.parse, given))
    expected = f"The 'looks' must be an array of 1 to {_MOST_LOOKS} numbers within 1 to {_LOOK.maximum}"
    raise invalid("looks", expected)


def _window_of(given: object) -> tuple[int, int] | None:
    """Return the size of the window, if there is one."""
    if given is None:
        return None
    with contextlib.suppress(ValueError):
        if isinstance(given, dict):
            return _SIDE.parse(given.get("width")), _SIDE.parse(given.get("height"))
    expected = f"The 'window' must be an object with 'width' and 'height' within 1 to {_SIDE.maximum}"
    raise invalid("window", expected)


@contextlib.asynccontextmanager
async def _opened(call: Call, id_: str) -> AsyncIterator[Path]:
    """Give the path of an example or of a source of the key, which stays readable during the block."""
    if id_ in examples():
        yield examples()[id_]
        return
    sources, owner = call.services.preview_sources, _owner(call)

    async def fetch(allocate: Allocate) -> Path | None:
        found = await sources.find(owner, id_, now())
        if found is None:
            return None
        try:
            return await save(sources.read(found), "", found.bytes, allocate, None, lambda: f"Source '{id_}'")
        except FileNotFoundError:
            return None

    with own_storage():
        shared = await call.services.pipeline.sources.take(
            (owner, id_), call.account, fetch, lambda path: _KEPT_SECONDS if path else 0
        )
    try:
        if shared.result is None:
            raise refusal("not_found", what="source")
        yield shared.result
    finally:
        shared.release()


def _mapped(id_: str, path: Path) -> memoryview:
    """Return a source in memory: one copy for all who read it at the same time."""
    found = _MAPPED.get(id_)
    if found is None:
        with path.open("rb") as file:
            found = _MAPPED[id_] = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    return memoryview(found)


_MAPPED: WeakValueDictionary[str, mmap.mmap] = WeakValueDictionary()


def _owner(call: Call) -> str:
    key_id = call.principal.key_id
    assert key_id is not None  # only API keys have the scope
    return key_id


_KNOWN: dict[str, Any] = {"tag": "Playground", "scope": "process"}
ROUTES = (
    Route(
        "POST",
        "/playground/sources",
        keep,
        "Keep a source for previews",
        answer=KeptSourceAnswer,
        is_queued=True,
        **_KNOWN,
    ),
    Route("GET", "/playground/sources/{source}", original, "A kept source", **_KNOWN),
    Route(
        "POST",
        "/playground/previews/{source}",
        preview,
        "A preview",
        answer=Preview,
        binary=True,
        is_queued=True,
        **_KNOWN,
    ),
    Route(
        "POST",
        "/playground/scores/{source}",
        scores,
        "Size and look of a result",
        answer=Scores,
        is_queued=True,
        **_KNOWN,
    ),
)
"""They are no part of the interface, so only their answers are described, for the pages."""
