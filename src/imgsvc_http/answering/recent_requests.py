"""The last requests of each account, and what became of them.

They are noted without a transaction for each: those of a second are written together.
"""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
from sqlalchemy import Connection, Select, delete, select

from imgsvc_core.errors import ImgsvcError
from imgsvc_http.answering.answers import documented
from imgsvc_http.answering.errors import Refusal, refusal, refusal_of
from imgsvc_http.runtime.background import in_background, repeat
from imgsvc_http.runtime.clock import now
from imgsvc_http.state.database import Database, counting, insert, reading
from imgsvc_http.state.tables import AccountRow, PastRequestRow

_log = logging.getLogger(__name__)

MOST = 50
"""How many requests of an account are kept."""

_WRITE_SECONDS = 1.0  # what is not written yet is lost when the process dies
_MOST_LETTERS = 500


@attrs.frozen(kw_only=True)
class RecentRequest:
    """A request that was processed, or that failed."""

    id: str = documented("Id of the request.", schema={"format": "uuid"})
    finished_at: datetime
    code: int = documented("The status of its result, or of its error.", schema={"minimum": 200})
    message: str | None = documented("What went wrong.", default=None)
    source: str | None = documented("Name of the source.", default=None)
    format: str | None = documented("Format of the result.", default=None)
    width: int | None = documented("Width of the result.", default=None)
    height: int | None = documented("Height of the result.", default=None)
    bytes: int | None = documented("Size of the result.", default=None)
    milliseconds: int | None = documented("The time of all phases together.", default=None)
    url: str | None = documented("Where the result is.", default=None)
    expires_at: datetime | None = documented("When a result in temporary storage expires.", default=None)


_COLUMNS = tuple(getattr(PastRequestRow, name) for name in attrs.fields_dict(RecentRequest))


class RecentRequests:
    """The last requests of all accounts: those in the database, and those of this process not written yet."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._noted = _empty()

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, db: Database) -> AsyncIterator[RecentRequests]:
        """Write what is noted until the block ends."""
        requests = cls(db)
        try:
            async with in_background(repeat(_WRITE_SECONDS, requests.write, "Noting requests failed")):
                yield requests
        finally:
            await requests.write()

    async def of(self, account_id: str) -> list[RecentRequest]:
        """Return the last requests of an account, newest first."""
        await self.write()
        return await list_all(self._db, account_id)

    def note_result(
        self,
        account_id: str,
        id_: str,
        brief: Mapping[str, Any],
        *,
        milliseconds: float,
        url: str,
        expires_at: datetime | None,
    ) -> None:
        """Note a request that was processed, with its source and the facts in `BRIEF`."""
        request = RecentRequest(
            id=id_,
            finished_at=now(),
            code=200,
            milliseconds=round(milliseconds),
            url=url,
            expires_at=expires_at,
            **brief,
        )
        self._noted[account_id].append(request)

    def note_failure(self, account_id: str, id_: str, error: Exception) -> None:
        """Note a request that failed."""
        if isinstance(error, ImgsvcError):
            error = refusal_of(error)
        told = error if isinstance(error, Refusal) else refusal("internal_error", id=id_)
        message = told.message.encode("utf-8", "replace").decode()[:_MOST_LETTERS]
        request = RecentRequest(id=id_, finished_at=now(), code=int(told.status), message=message)
        self._noted[account_id].append(request)

    async def write(self) -> None:
        """Write what is noted. A record that cannot be written is dropped, because no request depends on
        it."""
        noted, self._noted = self._noted, _empty()
        if noted:
            try:
                await keep(self._db, noted)
            except Exception as error:  # whatever a driver makes of a lost connection
                _log.warning("The last requests were not noted: %s", error)


@reading
def list_all(connection: Connection, account_id: str) -> list[RecentRequest]:
    """Return the last requests of an account, newest first."""
    query = _newest(select(*_COLUMNS).where(PastRequestRow.account_id == account_id))
    return [RecentRequest(**row) for row in connection.execute(query).mappings()]


@counting
def keep(connection: Connection, requests: Mapping[str, Sequence[RecentRequest]]) -> None:
    """Keep requests of accounts, and delete the oldest ones that are too many."""
    known = select(AccountRow.id).where(AccountRow.id.in_(requests))
    for account_id in connection.execute(known).scalars().all():
        rows = [{**attrs.asdict(item), "account_id": account_id} for item in requests[account_id]]
        # The job of a webhook may run twice.
        connection.execute(insert(connection, PastRequestRow).on_conflict_do_nothing(), rows)
        of_account = PastRequestRow.account_id == account_id
        newest = _newest(select(PastRequestRow.id).where(of_account))
        connection.execute(delete(PastRequestRow).where(of_account, PastRequestRow.id.not_in(newest)))


def _newest(query: Select[Any]) -> Select[Any]:
    return query.order_by(PastRequestRow.finished_at.desc(), PastRequestRow.id.desc()).limit(MOST)


def _empty() -> defaultdict[str, deque[RecentRequest]]:
    return defaultdict(lambda: deque(maxlen=MOST))
