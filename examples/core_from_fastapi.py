"""The library in a FastAPI application: ``uvicorn examples.core_from_fastapi:app``, then

``curl --data-binary @examples/pictures/coffee.heic 'localhost:8000/previews?width=300' -o preview.webp``

Pictures are worked on in processes of their own, with limits on time and memory: the event loop stays free,
and a picture that breaks a codec costs one request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse

import imgsvc_core as imgsvc

MOST_BYTES = 20_000_000
LIMITS = imgsvc.Limits(seconds=10)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.pool = imgsvc.WorkerPool(memory_bytes=2**31, tasks_per_worker=1000)
    try:
        yield
    finally:
        await asyncio.to_thread(app.state.pool.close)


app = FastAPI(title="Previews", lifespan=lifespan)


@app.post("/previews", response_class=Response)
async def preview(request: Request, width: Annotated[int, Query(ge=1, le=2000)] = 640) -> Response:
    """The picture in the body as a WebP that is no wider than asked for."""
    spec = [
        imgsvc.Resize(width=width, upscale=False),
        imgsvc.Output(format="webp", effort=2),
    ]
    source = await body_of(request)
    result = await imgsvc.aprocess(source, spec, limits=LIMITS, pool=app.state.pool)
    return Response(result.data, media_type=result.media_type)


async def body_of(request: Request) -> bytes:
    """The body, given up as soon as it is too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise imgsvc.SourceTooLarge(f"The picture must have at most {MOST_BYTES:,} bytes.")
    return bytes(body)


@app.exception_handler(imgsvc.ImgsvcError)
async def explain(request: Request, error: imgsvc.ImgsvcError) -> JSONResponse:
    """Errors of the library are written for the person who sent the picture."""
    status = 413 if isinstance(error, imgsvc.SourceTooLarge) else 422
    return JSONResponse({"error": error.slug, "message": error.message}, status)
