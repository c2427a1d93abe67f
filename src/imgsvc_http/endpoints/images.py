"""Results in temporary storage, by their unguessable names."""

from __future__ import annotations

from aiohttp import web

from imgsvc_http.answering import schemas
from imgsvc_http.processing.pipeline import IMAGES_PATH
from imgsvc_http.routing import Parameter, Reply, Route
from imgsvc_http.services import now, services_of
from imgsvc_http.storage.temporary import serve


async def image(request: web.Request) -> web.StreamResponse:
    """A picture, or a range of its bytes."""
    return await serve(request, services_of(request).temporary, request.match_info["name"], now())


ROUTES = (
    Route(
        method="GET",
        path=IMAGES_PATH + "{name}",
        handler=image,
        summary="Download a result from temporary storage",
        tag="Processing",
        public=True,
        parameters=(
            Parameter(
                name="name", where="path", schema={"type": "string"}, doc="Name of a result.", required=True
            ),
            Parameter(name="Range", where="header", schema={"type": "string"}, doc="A range of bytes."),
            Parameter(name="If-Match", where="header", schema={"type": "string"}, doc="The expected ETag."),
            Parameter(name="If-None-Match", where="header", schema={"type": "string"}, doc="A known ETag."),
        ),
        replies={
            200: Reply(doc="The picture.", contents={"image/*": schemas.FILE}),
            206: Reply(doc="The range.", contents={"image/*": schemas.FILE}),
            304: Reply(doc="The picture with the known ETag is still the same."),
        },
        failures=(404, 410, 412, 416),
    ),
)
