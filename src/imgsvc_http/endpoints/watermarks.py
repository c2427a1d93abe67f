"""Watermarks of an account."""

from __future__ import annotations

import asyncio
from datetime import datetime
from http import HTTPStatus

import attrs

from imgsvc_http.answering.json_schema import form_schema
from imgsvc_http.answering.responses import Response, success
from imgsvc_http.call import Call
from imgsvc_http.endpoints.collections import collection_routes
from imgsvc_http.fetching.layer_pictures import MOST_BYTES
from imgsvc_http.receiving.idempotency import Keep
from imgsvc_http.runtime.clock import now
from imgsvc_http.state import watermarks
from imgsvc_http.workers.tasks import Inspect


@attrs.frozen(kw_only=True)
class UploadedWatermark:
    """A picture that requests refer to by its id."""

    id: str
    name: str
    format: str
    width: int
    height: int
    alpha: bool
    frames: int
    bytes: int
    created_at: datetime

    @classmethod
    def of(cls, kept: watermarks.KeptWatermark) -> UploadedWatermark:
        """Return what is shown of a watermark."""
        facts = {name: kept.info[name] for name in attrs.fields_dict(cls) if name in kept.info}
        return cls(id=kept.id, created_at=kept.created_at, **facts)


@attrs.frozen(kw_only=True)
class WatermarkAnswer:
    """The watermark."""

    watermark: UploadedWatermark


@attrs.frozen(kw_only=True)
class WatermarksAnswer:
    """All watermarks of the account, oldest first."""

    watermarks: tuple[UploadedWatermark, ...]


async def create(call: Call) -> Response:
    """Keep a picture as a watermark."""
    services, account_id = call.services, call.account
    limits = services.settings.limits
    with services.source_files.file_in_folder(account_id) as file:
        name = (await call.form(file, MOST_BYTES)).name
        data = await asyncio.to_thread(file.path.read_bytes)

        async def parts() -> tuple[bytes, ...]:
            return (data, name.encode("utf-8", "replace"))

        async def work(keep: Keep) -> Response:
            task = Inspect(name=name, limits=limits)
            info = (await services.pipeline.workers.run(task, file.path, account=account_id)).facts
            made = await watermarks.add(
                services.db,
                account_id,
                data,
                info,
                now(),
                then=lambda connection, made: keep(connection, _created(made)),
            )
            return _created(made)

        return await call.once(parts, work)


def _created(kept: watermarks.KeptWatermark) -> Response:
    return success(WatermarkAnswer(watermark=UploadedWatermark.of(kept)), HTTPStatus.CREATED)


ROUTES = collection_routes(
    "watermark",
    watermarks.WATERMARKS,
    create,
    shown=UploadedWatermark.of,
    one=WatermarkAnswer,
    many=WatermarksAnswer,
    bodies={"multipart/form-data": form_schema()},
)
