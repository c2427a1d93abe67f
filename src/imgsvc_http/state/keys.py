"""API keys: random secrets, of which only digests are kept, and who a secret belongs to."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import attrs
from cachetools import TTLCache
from sqlalchemy import or_, select, update

from imgsvc_core.errors import Problem, SpecError
from imgsvc_http.state.database import Database, whole
from imgsvc_http.state.scopes import DEFAULT_SCOPES, SCOPES
from imgsvc_http.state.tables import ApiKeyRow
from imgsvc_http.state.validation import check_text

_PREFIX = "isk_"
_SECRET_BYTES = 32
_HINT_LENGTH = 4
_NAME_LENGTH = 200
_LAST_USED_STEP = timedelta(hours=1)


def _as_tuple(scopes: Iterable[str]) -> tuple[str, ...]:
    return tuple(scopes)


@attrs.frozen(kw_only=True)
class ApiKey:
    """A key as its owner may see it; ``hint`` is how its secret ends."""

    id: str
    account_id: str
    name: str
    hint: str
    scopes: tuple[str, ...] = attrs.field(converter=_as_tuple)
    created_at: datetime
    rotated_at: datetime | None = None
    previous_until: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


@attrs.frozen
class NewKey:
    """A key and its secret, which can be shown only now."""

    key: ApiKey
    secret: str = attrs.field(repr=False)


@attrs.frozen
class Principal:
    """Who calls: an account, by one of its keys, for some purposes."""

    account_id: str
    key_id: str
    scopes: frozenset[str]


_COLUMNS = tuple(getattr(ApiKeyRow, field.name) for field in attrs.fields(ApiKey))


@whole
async def create(
    db: Database,
    account_id: str,
    *,
    name: str = "",
    scopes: Iterable[str] = DEFAULT_SCOPES,
    now: datetime,
) -> NewKey:
    """A new key of an account; `SpecError` for unknown scopes or a name that cannot be kept."""
    check_text("Key", "name", name, minimum=0, maximum=_NAME_LENGTH)
    secret = _new_secret()
    key = ApiKey(
        id=str(uuid4()),
        account_id=account_id,
        name=name,
        hint=secret[-_HINT_LENGTH:],
        scopes=_checked(scopes),
        created_at=now,
    )
    async with db.transaction() as session:
        values = {**attrs.asdict(key), "scopes": list(key.scopes)}
        session.add(ApiKeyRow(**values, digest=digest_of(secret)))
    return NewKey(key, secret)


async def list_all(db: Database, account_id: str | None = None) -> Sequence[ApiKey]:
    """The keys of an account, or all, oldest first; revoked ones too."""
    query = select(*_COLUMNS).order_by(ApiKeyRow.created_at, ApiKeyRow.id)
    if account_id is not None:
        query = query.where(ApiKeyRow.account_id == account_id)
    async with db.session() as session:
        return [ApiKey(**row) for row in (await session.execute(query)).mappings()]


@whole
async def rotate(
    db: Database, key_id: str, *, grace: timedelta, now: datetime, account_id: str | None = None
) -> NewKey | None:
    """Give a key a new secret, and let the present one work for a grace; ``None`` without such a key."""
    secret = _new_secret()
    change = _of(update(ApiKeyRow), key_id, account_id).values(
        digest=digest_of(secret),
        hint=secret[-_HINT_LENGTH:],
        previous_digest=ApiKeyRow.digest,
        previous_until=now + grace,
        rotated_at=now,
    )
    async with db.transaction() as session:
        row = (await session.execute(change.returning(*_COLUMNS))).mappings().first()
        return NewKey(ApiKey(**row), secret) if row else None


@whole
async def revoke(db: Database, key_id: str, *, now: datetime, account_id: str | None = None) -> bool:
    """End a key for good; whether there was one that worked."""
    change = _of(update(ApiKeyRow), key_id, account_id).values(revoked_at=now)
    async with db.transaction() as session:
        return (await session.execute(change.returning(ApiKeyRow.id))).first() is not None


class Authenticator:
    """Finds out who a secret belongs to, and remembers it for a few seconds.

    Args:
        db: the database.
        seconds: how long an answer is remembered; so long may a revoked key still work on other nodes.
        size: how many are remembered, at most.
        clock: the present moment.
    """

    def __init__(
        self,
        db: Database,
        *,
        seconds: float = 3,
        size: int = 10_000,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._db = db
        self._clock = clock
        self._known: TTLCache[bytes, Principal] = TTLCache(size, seconds, timer=time.monotonic)
        # Apart, so that guesses cannot drive out those who are known.
        self._unknown: TTLCache[bytes, None] = TTLCache(size, seconds, timer=time.monotonic)

    async def principal(self, secret: str) -> Principal | None:
        """Who a secret belongs to; ``None`` where no working key has it."""
        digest = digest_of(secret)
        known = self._known.get(digest)
        if known is not None or digest in self._unknown:
            return known
        found = await self._look_up(digest)
        if found is None:
            self._unknown[digest] = None
        else:
            self._known[digest] = found
        return found

    def forget(self) -> None:
        """Ask the database again from now on, as after a change of keys."""
        self._known.clear()
        self._unknown.clear()

    async def _look_up(self, digest: bytes) -> Principal | None:
        now = self._clock()
        query = select(ApiKeyRow).where(
            or_(
                ApiKeyRow.digest == digest,
                (ApiKeyRow.previous_digest == digest) & (ApiKeyRow.previous_until > now),
            ),
            ApiKeyRow.revoked_at.is_(None),
        )
        async with self._db.session() as session:
            row = (await session.execute(query)).scalars().first()
        if row is None or not any(
            hmac.compare_digest(digest, kept) for kept in (row.digest, row.previous_digest) if kept
        ):
            return None
        if row.last_used_at is None or now - row.last_used_at > _LAST_USED_STEP:
            await self._note_use(row.id, now)
        return Principal(row.account_id, row.id, frozenset(row.scopes))

    @whole
    async def _note_use(self, key_id: str, now: datetime) -> None:
        async with self._db.transaction() as session:
            await session.execute(update(ApiKeyRow).where(ApiKeyRow.id == key_id).values(last_used_at=now))


def digest_of(secret: str) -> bytes:
    """What is kept of a secret: a plain SHA-256 is enough for 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _new_secret() -> str:
    return _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def _checked(scopes: Iterable[str]) -> tuple[str, ...]:
    wanted = set(scopes)
    if not wanted or not wanted <= set(SCOPES):
        message = f"Key 'scopes' parameter must be one or more of {', '.join(SCOPES)}, got {sorted(wanted)}"
        raise SpecError([Problem("scopes", message)])
    return tuple(scope for scope in SCOPES if scope in wanted)


def _of(change: Any, key_id: str, account_id: str | None) -> Any:
    change = change.where(ApiKeyRow.id == key_id, ApiKeyRow.revoked_at.is_(None))
    return change if account_id is None else change.where(ApiKeyRow.account_id == account_id)
