"""Results in temporary storage, by their names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus

from aiohttp import web

from imgsvc_http.answering.bodies import BodiesUnderWay
from imgsvc_http.answering.conditions import asked_range, is_known
from imgsvc_http.answering.errors import refusal
from imgsvc_http.answering.json_schema import FILE, header_parameter, path_parameter
from imgsvc_http.answering.responses import Response
from imgsvc_http.call import Call
from imgsvc_http.pipeline import IMAGES_PATH, own_storage
from imgsvc_http.routing import Route
from imgsvc_http.runtime.clock import now
from imgsvc_http.storage.temporary import TemporaryStorage, stored_of


async def image(call: Call) -> Response | web.StreamResponse:
    """Return a picture, or a range of its bytes."""
    storage, name = call.services.pipeline.temporary, call.request.match_info["name"]
    return await serve(call.request, storage, name, now(), call.app.bodies, call.complete)


async def serve(
    request: web.Request,
    storage: TemporaryStorage,
    name: str,
    moment: datetime,
    bodies: BodiesUnderWay,
    complete: Callable[[web.StreamResponse], None],
) -> Response | web.StreamResponse:
    """Answer with a picture of temporary storage, as HTTP has it for conditions and ranges.

    ``complete`` sets the headers of a response that is sent part by part.
    """
    stored = stored_of(name)
    if stored is None:
        raise refusal("not_found", what="image")
    if stored.expires_at <= moment:
        raise refusal("expired", what="image")
    with own_storage():
        try:
            whole = await storage.mapped(name)
            size = await storage.size(name) if whole is None else len(whole)
        except FileNotFoundError:
            size = None
    if size is None:
        raise refusal("not_found", what="image")
    etag = f'"{name.rpartition(".")[0]}"'
    headers = {
        "Content-Type": stored.media_type,
        "Content-Disposition": "inline",
        "Cache-Control": f"private, max-age={max(0, int((stored.expires_at - moment).total_seconds()))}",
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
    if is_known(request, etag):
        return Response(HTTPStatus.NOT_MODIFIED, headers, b"")
    start, end = asked_range(request, size, etag)
    status = HTTPStatus.OK
    if (start, end) != (0, size):
        status = HTTPStatus.PARTIAL_CONTENT
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    if whole is not None:
        return Response(status, headers, whole[start:end])
    response = web.StreamResponse(status=status, headers=headers)
    response.content_length = end - start
    complete(response)
    writer = await response.prepare(request)
    if request.method != "HEAD" and writer is not None:
        async for chunk in storage.read(name, start, end):
            await bodies.send(chunk, writer)
    await response.write_eof()
    return response


ROUTES = (
    Route(
        "GET",
        IMAGES_PATH + "{name}",
        image,
        "Download a result from temporary storage",
        "Processing",
        parameters=(
            path_parameter("name", "Name of a result."),
            header_parameter("Range", "A range of bytes."),
            header_parameter("If-Match", "The expected ETag."),
            header_parameter("If-None-Match", "A known ETag."),
        ),
        replies={
            200: ("The picture.", {"image/*": FILE}),
            206: ("The range.", {"image/*": FILE}),
            304: ("The picture with the known ETag has not changed.", {}),
        },
        failures=(404, 410, 412, 416),
        rate="results",
        public=True,
    ),
)
