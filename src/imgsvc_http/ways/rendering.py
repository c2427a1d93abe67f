"""The picture of a URL: what determines it, and making it where the cache does not have it."""

from __future__ import annotations

import hashlib
from http import HTTPStatus

import attrs
from multidict import MultiMapping

import imgsvc_core
from imgsvc_core import Spec
from imgsvc_core._runtime.tasks import TaskResult
from imgsvc_core.errors import ImageTooLarge, ImgsvcError, SourceError, SourceTooLarge, SourceUnreachable
from imgsvc_core.spec import restore
from imgsvc_http.answering.errors import Refusal, status_of
from imgsvc_http.cache import CacheResult, Entry, Freshness, Made, Picture, Unchanged, entry_key
from imgsvc_http.fetching.fetcher import NotModified
from imgsvc_http.fetching.origins import Identity
from imgsvc_http.fetching.social import is_social
from imgsvc_http.gate import quota
from imgsvc_http.gate.admission import too_many
from imgsvc_http.monitoring.phases import phase
from imgsvc_http.pipeline import Source
from imgsvc_http.services import Services
from imgsvc_http.settings import DeliverySettings
from imgsvc_urls import AnySource, InlineSource, UrlSource
from imgsvc_urls.dialects import ForeignUrl
from imgsvc_urls.errors import SourceRefused

PIXELS_VERSION = imgsvc_core.__version__
"""Changes whenever the same request may give other pixels."""

MISSING = "public, max-age=60"
"""``Cache-Control`` of the answer that there is no such source."""

NAME = "name"
"""The fact of a picture in the cache that names its file."""


@attrs.frozen(kw_only=True)
class Order:
    """The facts that determine a picture, beside the identity of its source.

    Args:
        account_id: the account that pays, and that owns its watermark.
        source: where its source is.
        asked: what to do with it, or a URL of another service that tells it once the source is known.
        accept: the formats that the client shows, if the format is negotiated.
        version: the version that the URL gives the source. Its picture is made of a source that was asked for
            since this version is known, whatever there is of others.
        is_told: whether to tell of the picture, instead of giving it.
    """

    account_id: str
    source: AnySource
    asked: Spec | ForeignUrl
    accept: str | None
    version: str | None
    is_told: bool = False

    @property
    def is_volatile(self) -> bool:
        """True if the picture is never cached: the current profile picture is always wanted."""
        return isinstance(self.source, UrlSource) and is_social(self.source.url)

    parts: tuple[str, ...] = attrs.field(init=False)
    """What determines the picture, beside account and source."""

    @parts.default
    def _determining(self) -> tuple[str, ...]:
        asked = self.asked.digest if isinstance(self.asked, Spec) else self.asked.key
        kind = ("info",) if self.is_told else ()
        return asked, self.accept or "", self.version or "", PIXELS_VERSION, *kind

    def etag(self, identity: str) -> str:
        """Return the strong ETag of the picture of a source with an identity."""
        text = "\0".join((identity, *self.parts))
        return f'"{hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]}"'


async def identity_of(services: Services, order: Order) -> Identity | None:
    """Return the identity of the source of an order, or None if only fetching it would tell.

    A bucket is asked anew for a version by `picture_of` only, which bounds how often.
    """
    version = order.version if services.origins.is_file(order.source) else None
    with _source_errors(services, order):
        return await services.origins.identity(order.source, version)


async def picture_of(services: Services, order: Order, file: Identity | None) -> CacheResult:
    """Return the picture of an order from the cache, or make it.

    Args:
        services: they have the cache.
        order: the order.
        file: the identity of a source that is a file of this machine. It is part of the key, so the picture
            of a changed file is another one, and pictures of files stay fresh.

    Raises:
        ImgsvcError, Refusal: the picture cannot be made.
    """
    cache, source = services.cache, _shown(order.source)
    bounds = cache.freshness_bounds

    async def produce(known: Entry | None) -> Made | Unchanged:
        made = await _make(services, order, None if known is None else _identity_of(known.picture))
        if isinstance(made, NotModified):
            assert known is not None
            return Unchanged(bounds.renewed(known.freshness, made.headers))
        picture, headers = made
        if order.is_volatile:
            return Made(picture, Freshness(0, scope="no-store"))
        if file is not None:
            return Made(picture, Freshness(bounds.max_seconds))
        return Made(picture, bounds.freshness(headers))

    address = services.origins.address_of(order.source)
    key = entry_key(order.account_id, source, address, *order.parts, file.text if file else "")
    with _source_errors(services, order):
        return await cache.answer(key, account=order.account_id, source=source, produce=produce)


async def _make(
    services: Services, order: Order, known: Identity | None
) -> tuple[Picture, MultiMapping[str]] | NotModified:
    """Return a picture and the headers of its source, unless the source has the known identity."""
    limits, account_id = services.settings.limits, order.account_id
    services.pipeline.workers.check_room(account_id)
    if known is None:
        await _limit_misses(services, account_id)
    with phase("fetch"):
        opened, release = await services.origins.open(
            order.source,
            known,
            limits.source_bytes,
            account=account_id,
            version=order.version,
            epoch=services.cache.epoch,
        )
    try:
        if isinstance(opened, NotModified):
            return opened
        if known is not None:
            await _limit_misses(services, account_id)
        made = await _rendered(services, order, Source(opened.path, opened.name))
    finally:
        release()
    picture = Picture(
        body=made.data,
        content_type=made.facts["media_type"],
        etag=order.etag(opened.identity.text),
        identity=opened.identity.text,
        conditions=opened.identity.conditions,
        last_modified=opened.identity.last_modified,
        facts={NAME: made.facts["name"]},
    )
    return picture, opened.headers


def _identity_of(picture: Picture) -> Identity:
    """Return the identity of the source that a picture was made of."""
    return Identity(picture.identity, conditions=picture.conditions)


async def _limit_misses(services: Services, account_id: str) -> None:
    """Count a picture by URL that is made for an account.

    Raises:
        Refusal: too many were made for the account.
    """
    rate = await services.rates.count_miss(account_id)
    if not rate.allowed:
        raise too_many(rate)


async def _rendered(services: Services, order: Order, source: Source) -> TaskResult:
    """Return the picture of an order whose source is in a file."""
    limits, account_id, spec = services.settings.limits, order.account_id, order.asked
    if not isinstance(spec, Spec):
        told = await services.pipeline.translate(source, spec, limits, account_id)
        if "request" not in told.facts:
            return told
        spec = restore(told.facts["request"])
    counter = quota.Count(services.quota, account_id)
    make = services.pipeline.describe if order.is_told else services.pipeline.render
    return await make(source, spec, limits, counter, accept=order.accept)


def _shown(source: AnySource) -> str:
    """Return a source as people write it: its URL, or its origin and path. Others have a digest."""
    if isinstance(source, InlineSource):
        return hashlib.sha256(source.data).hexdigest()
    return source.url if isinstance(source, UrlSource) else f"{source.origin}/{source.path}"


@attrs.frozen
class _source_errors:  # noqa: N801 (a context manager, without a generator for each use)
    """Answer errors of sources as such, since the URL itself is right."""

    _services: Services
    _order: Order

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, SourceError | SourceTooLarge | ImageTooLarge):
            is_missing = isinstance(error, SourceRefused) and error.is_missing
            headers = {"Cache-Control": MISSING if is_missing else "no-store"}
            status = _failure_status(self._services.settings.delivery, self._order, error)
            raise Refusal(error.slug, status, error.message, headers) from error


def _failure_status(settings: DeliverySettings, order: Order, error: ImgsvcError) -> int:
    """Return the status of a source that cannot be used: that of the service whose URL it is, or our own."""
    if not isinstance(order.asked, Spec):
        return order.asked.failure_status(error)
    if isinstance(error, ImageTooLarge):
        return status_of(type(error))
    if isinstance(error, SourceRefused) and error.is_missing:
        return HTTPStatus.NOT_FOUND
    if not settings.gateway_statuses:
        return HTTPStatus.FAILED_DEPENDENCY
    timed_out = isinstance(error, SourceUnreachable) and error.failure == "timed_out"
    return HTTPStatus.GATEWAY_TIMEOUT if timed_out else HTTPStatus.BAD_GATEWAY
