"""The picture of a URL: what determines it, and making it where the cache does not have it."""

from __future__ import annotations

import hashlib
from http import HTTPStatus
from typing import TypeAlias

import attrs
from multidict import MultiMapping

import imgsvc_core
from imgsvc_core import Spec
from imgsvc_core._runtime.tasks import TaskResult
from imgsvc_core.errors import ImageTooLarge, ImgsvcError, SourceError, SourceTooLarge, SourceUnreachable
from imgsvc_core.spec import restore
from imgsvc_http.answering.errors import Refusal, problems_of, status_of
from imgsvc_http.cache import CacheResult, Entry, Freshness, Made, Picture, Unchanged, entry_key, soonest
from imgsvc_http.fetching.fetcher import NotModified
from imgsvc_http.fetching.folder_origin import Identity
from imgsvc_http.fetching.layer_pictures import LayerPictures
from imgsvc_http.fetching.origins import Asking
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

_LAYERS = "layers"  # the fact that has the pictures by URL that lie over it

_Headers: TypeAlias = MultiMapping[str]
_Made: TypeAlias = tuple[Picture | None, _Headers, tuple[_Headers, ...]]  # and what servers said


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

    @property
    def has_pictures_by_url(self) -> bool:
        """True if layers name pictures by URL, so that the identity of the source alone tells too little."""
        pictures = self.asked.layer_pictures.values() if isinstance(self.asked, Spec) else ()
        return any(picture.source is not None for picture in pictures)

    parts: tuple[str, ...] = attrs.field(init=False)
    """What determines the picture, beside account and source."""

    @parts.default
    def _determining(self) -> tuple[str, ...]:
        asked = self.asked.digest if isinstance(self.asked, Spec) else self.asked.key
        kind = ("info",) if self.is_told else ()
        return asked, self.accept or "", self.version or "", PIXELS_VERSION, *kind

    def etag(self, *identities: str) -> str:
        """Return the strong ETag of the picture of sources with identities, that below the layers first."""
        text = "\0".join((*identities, *self.parts))
        return f'"{hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]}"'


async def identity_of(services: Services, order: Order) -> Identity | None:
    """Return the identity of the source of an order, or None if only fetching it would tell.

    A bucket is asked anew for a version by `picture_of` only, which bounds how often.
    """
    version = order.version if services.origins.is_file(order.source) else None
    try:
        return await services.origins.identity(order.source, version)
    except _OF_SOURCES as error:
        raise _refusal(services, order, error) from error


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
        picture, of_source, of_layers = await _make(services, order, None if known is None else known.picture)
        if picture is None:
            assert known is not None
            renewed = (bounds.renewed(known.freshness, headers) for headers in (of_source, *of_layers))
            return Unchanged(soonest(renewed))
        if order.is_volatile:
            return Made(picture, Freshness(0, scope="no-store"))
        of_file = Freshness(bounds.max_seconds)
        freshness = bounds.freshness(of_source) if file is None else of_file
        return Made(picture, soonest((freshness, *map(bounds.freshness, of_layers))))

    address = services.origins.address_of(order.source)
    key = entry_key(order.account_id, source, address, *order.parts, file.text if file else "")
    try:
        return await cache.answer(key, account=order.account_id, source=source, produce=produce)
    except _OF_SOURCES as error:
        raise _refusal(services, order, error) from error


async def _make(services: Services, order: Order, known: Picture | None) -> _Made:
    """Return a picture, unless its sources are those of the known one."""
    account_id, layers = order.account_id, services.pipeline.layers
    services.pipeline.workers.check_room(account_id)
    if known is None:
        await _limit_misses(services, account_id)
    asking = Asking(
        account=account_id,
        limit_bytes=services.settings.limits.source_bytes,
        version=order.version,
        epoch=services.cache.epoch,
    )
    with phase("fetch"):
        renewed = None if known is None else await layers.renewed(known.facts.get(_LAYERS, {}), asking)
        identity = None
        if known is not None and renewed is not None:
            identity = Identity(known.identity, conditions=known.conditions)
        opened, release = await services.origins.open(order.source, identity, asking)
    try:
        if isinstance(opened, NotModified):
            assert renewed is not None
            return None, opened.headers, renewed
        if known is not None:
            await _limit_misses(services, account_id)
        made, pictures = await _rendered(services, order, Source(opened.path, opened.name), asking)
    finally:
        release()
    seen = pictures.seen
    picture = Picture(
        body=made.data,
        content_type=made.facts["media_type"],
        etag=order.etag(opened.identity.text, *(text for _, text, _ in seen.values())),
        identity=opened.identity.text,
        conditions=opened.identity.conditions,
        last_modified=None if seen else opened.identity.last_modified,
        facts={NAME: made.facts["name"], **({_LAYERS: seen} if seen else {})},
    )
    return picture, opened.headers, pictures.headers


async def _limit_misses(services: Services, account_id: str) -> None:
    """Count a picture by URL that is made for an account.

    Raises:
        Refusal: too many were made for the account.
    """
    rate = await services.rates.misses.hit(f"misses:{account_id}")
    if not rate.allowed:
        raise too_many(rate)


async def _rendered(
    services: Services, order: Order, source: Source, asking: Asking
) -> tuple[TaskResult, LayerPictures]:
    """Return the picture of an order whose source is in a file, and the pictures by URL that lie over it."""
    limits, account_id, spec = services.settings.limits, order.account_id, order.asked
    if not isinstance(spec, Spec):
        told = await services.pipeline.translate(source, spec, limits, account_id)
        if "request" not in told.facts:
            return told, LayerPictures()
        spec = restore(told.facts["request"])
    layers = await services.pipeline.layers.fetch(spec, asking)
    count = quota.Count(services.quota, account_id)
    made = await services.pipeline.render(
        source, spec, limits, count, layers=layers, accept=order.accept, is_told=order.is_told
    )
    return made, layers


def _shown(source: AnySource) -> str:
    """Return a source as people write it: its URL, or its origin and path. Others have a digest."""
    if isinstance(source, InlineSource):
        return hashlib.sha256(source.data).hexdigest()
    return source.url if isinstance(source, UrlSource) else f"{source.origin}/{source.path}"


_OF_SOURCES = (SourceError, SourceTooLarge, ImageTooLarge)


def _refusal(services: Services, order: Order, error: ImgsvcError) -> Refusal:
    """Return an error of a source as such, since the URL itself is right."""
    is_missing = isinstance(error, SourceRefused) and error.is_missing
    headers = {"Cache-Control": MISSING if is_missing else "no-store"}
    status = _failure_status(services.settings.delivery, order, error)
    return Refusal(error.slug, status, error.message, headers, problems_of(error))


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
