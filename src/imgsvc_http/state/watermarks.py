"""Watermarks of accounts: pictures that requests refer to by id."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import uuid4

import attrs
from sqlalchemy import Connection, insert, select

from imgsvc_http.state.database import reading, writing
from imgsvc_http.state.owned import Owned
from imgsvc_http.state.tables import WatermarkRow


@attrs.frozen(kw_only=True)
class KeptWatermark:
    """A watermark without its bytes. ``info`` are the facts of the picture, as `ImageInfo` names them."""

    id: str
    info: dict[str, Any]
    sha256: str
    created_at: datetime


WATERMARKS = Owned(WatermarkRow, KeptWatermark)
"""The watermarks of all accounts."""


@writing
def add(
    connection: Connection,
    account_id: str,
    data: bytes,
    info: dict[str, Any],
    now: datetime,
    *,
    then: Callable[[Connection, KeptWatermark], None] = lambda connection, watermark: None,
) -> KeptWatermark:
    """Keep a picture, whose facts are known. ``then`` is called in the same transaction."""
    watermark = KeptWatermark(
        id=str(uuid4()), info=info, sha256=hashlib.sha256(data).hexdigest(), created_at=now
    )
    values = {**attrs.asdict(watermark), "account_id": account_id, "data": data}
    connection.execute(insert(WatermarkRow), values)
    then(connection, watermark)
    return watermark


@reading
def data(connection: Connection, account_id: str, watermark_id: str) -> bytes | None:
    """Return the bytes of a watermark of an account."""
    query = select(WatermarkRow.data).where(
        WatermarkRow.id == watermark_id, WatermarkRow.account_id == account_id
    )
    return connection.execute(query).scalar()
