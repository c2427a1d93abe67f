"""Watermarks of accounts: pictures that requests refer to by id."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

import attrs
from sqlalchemy import delete as delete_from
from sqlalchemy import select

from imgsvc_http.state.database import Database, whole
from imgsvc_http.state.tables import WatermarkRow


@attrs.frozen(kw_only=True)
class Watermark:
    """A watermark without its bytes; ``info`` are the facts of the picture as inspection gives them."""

    id: str
    info: dict[str, Any]
    sha256: str
    created_at: datetime


_COLUMNS = tuple(getattr(WatermarkRow, field.name) for field in attrs.fields(Watermark))


@whole
async def add(db: Database, account_id: str, data: bytes, info: dict[str, Any], now: datetime) -> Watermark:
    """Keep a picture that was found good, with its facts."""
    watermark = Watermark(id=str(uuid4()), info=info, sha256=hashlib.sha256(data).hexdigest(), created_at=now)
    async with db.transaction() as session:
        session.add(WatermarkRow(**attrs.asdict(watermark), account_id=account_id, data=data))
    return watermark


async def list_all(db: Database, account_id: str) -> Sequence[Watermark]:
    """The watermarks of an account, oldest first."""
    query = select(*_COLUMNS).where(WatermarkRow.account_id == account_id)
    async with db.session() as session:
        rows = await session.execute(query.order_by(WatermarkRow.created_at, WatermarkRow.id))
        return [Watermark(**row) for row in rows.mappings()]


async def get(db: Database, account_id: str, watermark_id: str) -> Watermark | None:
    """A watermark of an account."""
    query = select(*_COLUMNS).where(WatermarkRow.id == watermark_id, WatermarkRow.account_id == account_id)
    async with db.session() as session:
        row = (await session.execute(query)).mappings().first()
        return Watermark(**row) if row else None


async def data(db: Database, account_id: str, watermark_id: str) -> bytes | None:
    """The bytes of a watermark of an account."""
    query = select(WatermarkRow.data).where(
        WatermarkRow.id == watermark_id, WatermarkRow.account_id == account_id
    )
    async with db.session() as session:
        return (await session.execute(query)).scalar_one_or_none()


@whole
async def delete(db: Database, account_id: str, watermark_id: str) -> bool:
    """Forget a watermark of an account; whether there was one."""
    change = delete_from(WatermarkRow).where(
        WatermarkRow.id == watermark_id, WatermarkRow.account_id == account_id
    )
    async with db.transaction() as session:
        return (await session.execute(change.returning(WatermarkRow.id))).first() is not None
