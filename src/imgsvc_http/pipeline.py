"""The way of one picture: obtain the source, charge the quota, process, store the result."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from imgsvc_core import Limits, Spec
from imgsvc_core._runtime.tasks import TaskResult
from imgsvc_core.errors import MachineFailed, invalid, invalid_id
from imgsvc_http.answering.answers import result_text
from imgsvc_http.answering.recent_requests import RecentRequests
from imgsvc_http.fetching.fetcher import Fetched, Fetcher
from imgsvc_http.fetching.layer_pictures import LayerFetcher, LayerPictures
from imgsvc_http.fetching.origins import Asking
from imgsvc_http.fetching.shared_sources import SharedSources, kept_seconds
from imgsvc_http.fetching.social import is_social
from imgsvc_http.gate.quota import Count
from imgsvc_http.monitoring.phases import note_phases, phase
from imgsvc_http.receiving.processing_request import ProcessingRequest
from imgsvc_http.runtime.clock import now
from imgsvc_http.state import accounts, keyfiles, watermarks
from imgsvc_http.state.database import Database
from imgsvc_http.state.failures import is_disk_full
from imgsvc_http.state.keyfiles import Credentials
from imgsvc_http.state.vault import Vault
from imgsvc_http.storage.permanent import PermanentStorage
from imgsvc_http.storage.source_files import Allocate
from imgsvc_http.storage.temporary import LocalTarget, TemporaryStorage
from imgsvc_http.workers.pool import ForkedWorkers
from imgsvc_http.workers.tasks import Describe, LimitedTask, Preview, Process, Scores, Translate
from imgsvc_stores import StoredObject, StorePool, StoreSpec, open_store
from imgsvc_urls.dialects import ForeignUrl

IMAGES_PATH = "/1.0/images/"


@attrs.frozen
class Source:
    """A source in a file, its name, and how long it took to fetch it.

    ``ignored`` are the names of unknown fields of the form that it came in.
    """

    path: Path
    name: str
    fetch_ms: float = 0.0
    ignored: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Processed:
    """A finished result, as the JSON text of its answer, and its picture."""

    text: str
    data: bytes = attrs.field(repr=False)
    media_type: str


@attrs.frozen(kw_only=True)
class Pipeline:
    """Processes pictures, and puts the results where they belong.

    ``base_url`` is the address of the service, ``store_seconds`` the time limit of writing into a store.
    """

    db: Database
    vault: Vault
    fetcher: Fetcher
    sources: SharedSources
    layers: LayerFetcher
    workers: ForkedWorkers
    temporary: TemporaryStorage
    permanent: PermanentStorage | None
    stores: StorePool
    recent: RecentRequests
    base_url: str
    store_seconds: float

    async def process(
        self,
        id_: str,
        request: ProcessingRequest,
        count: Count,
        upload: Source | None,
        *,
        accept: str | None = None,
        background: bool = False,
    ) -> Processed:
        """Process the upload, or the source that the request names.

        The picture counts in the quota while the work runs, and afterwards if its result has been stored.

        Args:
            id_: the id of the request.
            request: what to do.
            count: counts the picture of an account.
            upload: the source, unless it is fetched.
            accept: the formats that the client accepts, for the output format ``auto``.
            background: whether nobody waits for the answer, so the request may wait as long as it takes.

        Raises:
            ImgsvcError: the picture cannot be fetched, processed or stored.
            Refusal: the quota is used up, or too many requests wait.
        """
        self.layers.check(request.spec)
        make = partial(self._process, id_, request, count, accept=accept, background=background)
        if upload is not None:
            return await make(upload)
        with phase("fetch"):
            source, release = await self.fetched(request, count.account_id)
        try:
            return await make(source)
        finally:
            release()

    async def _process(
        self,
        id_: str,
        request: ProcessingRequest,
        count: Count,
        source: Source,
        *,
        accept: str | None,
        background: bool,
    ) -> Processed:
        account_id = count.account_id
        credentials = await self._credentials(account_id, request.store)
        permanent = await self._permanent(account_id, request)
        target = None if permanent or request.store else await self._local_target()
        path = target.path if target else None
        task, layers_ms = await self._task(account_id, request, source, accept=accept, target=path)
        async with count:
            outcome = await self.workers.run(task, source.path, account=account_id, background=background)
            facts = outcome.facts
            note_phases(facts["timing"])
            if target is not None:
                url, expires_at = self._written(target, facts)
            else:
                started = time.perf_counter()
                with phase("store"):
                    url, expires_at = await self._store(request.store, credentials, permanent, outcome)
                facts["timing"]["store"] = round(1000 * (time.perf_counter() - started), 3)
        timing = {"fetch": round(source.fetch_ms + layers_ms, 3), **facts["timing"]}
        self.recent.note_result(
            account_id, id_, facts["brief"], milliseconds=sum(timing.values()), url=url, expires_at=expires_at
        )
        text = result_text(id_, facts["told"], url, expires_at, timing)
        return Processed(text=text, data=outcome.data, media_type=facts["media_type"])

    async def render(
        self,
        source: Source,
        spec: Spec,
        limits: Limits,
        count: Count,
        *,
        layers: LayerPictures,
        accept: str | None = None,
        is_told: bool = False,
    ) -> TaskResult:
        """Process a source, and give the picture back without storing it. It counts as in `process`.

        Args:
            source: the source.
            spec: what to do.
            limits: the limits of the work.
            count: counts the picture of an account.
            layers: the pictures that the request names by URL.
            accept: the formats that the client accepts, for the output format ``auto``.
            is_told: whether to tell of the picture instead, as `Describe` does.

        Raises:
            ImgsvcError: the picture cannot be processed.
            Refusal: the quota is used up, or too many requests wait.
        """
        watermarks = await self._pictures(count.account_id, spec, layers)
        task = Process(
            name=source.name, spec=spec, limits=limits, watermarks=watermarks, accept=accept, digest=False
        )
        return await self._run(Describe(task) if is_told else task, source, count)

    async def preview(
        self,
        id_: str,
        request: ProcessingRequest,
        count: Count,
        source: Source,
        *,
        accept: str | None,
        window: tuple[int, int] | None,
    ) -> Processed:
        """Process a source as `process` does, but store nothing.

        Args:
            id_: the id of the request.
            request: what to do.
            count: counts the picture of an account.
            source: the source.
            accept: the formats that the client accepts, for the output format ``auto``.
            window: width and height of the window in which a browser shows the picture: see `Preview`. The
                facts are those of the result itself. Without one, so is the picture.

        Raises:
            ImgsvcError: the picture cannot be processed.
            Refusal: the quota is used up, or too many requests wait.
        """
        task, layers_ms = await self._task(count.account_id, request, source, accept=accept)
        outcome = await self._run(task if window is None else Preview(task, window), source, count)
        facts = outcome.facts
        timing = {"fetch": round(layers_ms, 3), **facts["timing"], "store": 0.0}
        text = result_text(id_, facts["told"], None, None, timing)
        return Processed(text=text, data=outcome.data, media_type=facts["media_type"])

    async def scores(
        self, request: ProcessingRequest, count: Count, source: Source, looks: tuple[float, ...]
    ) -> Mapping[str, Any]:
        """Return the points and notes of a result as `Scores` does. They count together as one picture.

        Raises:
            ImgsvcError: the picture cannot be processed.
            Refusal: the quota is used up, or too many requests wait.
        """
        task, _ = await self._task(count.account_id, request, source)
        return (await self._run(Scores(task, looks), source, count)).facts

    async def _run(self, task: LimitedTask, source: Source, count: Count) -> TaskResult:
        """Run a task of a worker, and note how long its parts took. Its picture counts as in `process`."""
        async with count:
            outcome = await self.workers.run(task, source.path, account=count.account_id)
        note_phases(outcome.facts["timing"])
        return outcome

    async def _task(
        self,
        account_id: str,
        request: ProcessingRequest,
        source: Source,
        *,
        accept: str | None = None,
        target: str | None = None,
    ) -> tuple[Process, float]:
        """Return the task of a request, and how long it took to fetch pictures of layers.

        Without a target, the task gives the picture back.
        """
        asking = Asking(account=account_id, limit_bytes=request.limits.source_bytes)
        layers = await self.layers.fetch(request.spec, asking)
        task = Process(
            name=source.name,
            spec=request.spec,
            limits=request.limits,
            watermarks=await self._pictures(account_id, request.spec, layers),
            accept=accept,
            target=target,
            plan=request.plan,
            ignored=source.ignored,
        )
        return task, layers.fetch_ms

    async def translate(self, source: Source, url: ForeignUrl, limits: Limits, account_id: str) -> TaskResult:
        """Return what a URL of another service asks of a source, as `Translate` gives it.

        Raises:
            ImgsvcError: the source is no picture, or the URL asks for what is not possible.
            Refusal: too many requests wait.
        """
        named = await self._watermarks(account_id, url.pictures)
        task = Translate(name=source.name, url=url, limits=limits, watermarks=named)
        return await self.workers.run(task, source.path, account=account_id)

    async def check_ids(self, account_id: str, request: ProcessingRequest) -> None:
        """Raise `SpecError` if the request names a keyfile or a picture that the account may not use."""
        await self._credentials(account_id, request.store)
        self.layers.check(request.spec)
        await self._watermarks(account_id, request.spec.pictures, request.spec.path_of_picture)

    async def fetched(self, request: ProcessingRequest, account_id: str) -> tuple[Source, Callable[[], None]]:
        """Return the source at the URL of a request, and what releases its file.

        Requests for the same one at the same time share it, and later ones do as long as its headers allow.
        """
        url, headers, limit = request.url, request.headers, request.limits.source_bytes
        assert url is not None
        started = time.perf_counter()

        async def fetch(allocate: Allocate) -> Fetched:
            fetched = await self.fetcher.fetch(url, headers, allocate, limit, account=account_id)
            assert isinstance(fetched, Fetched)
            return fetched

        key = (account_id, url, tuple(headers.items()), limit, object() if is_social(url) else None)
        shared = await self.sources.take(key, account_id, fetch, _kept_seconds)
        milliseconds = 1000 * (time.perf_counter() - started)
        return Source(shared.result.path, shared.result.name, milliseconds), shared.release

    async def _local_target(self) -> LocalTarget | None:
        """Return where a worker can write the picture, if temporary storage is on this machine."""
        with own_storage():
            return await self.temporary.local_target(now())

    def _written(self, target: LocalTarget, facts: Mapping[str, Any]) -> tuple[str, datetime | None]:
        """Return the URL of a picture that the worker has written, and when it expires."""
        if facts["written"]:
            with own_storage():
                raise OSError(facts["written"], os.strerror(facts["written"]))
        stored = target.stored(facts["media_type"])
        return f"{self.base_url}{IMAGES_PATH}{stored.name}", stored.expires_at

    async def _permanent(self, account_id: str, request: ProcessingRequest) -> PermanentStorage | None:
        """Return the storage in which the result is to stay, if it is."""
        if self.permanent is None or not request.permanent:
            return None
        return self.permanent if await accounts.keeps_results(self.db, account_id) else None

    async def _store(
        self,
        spec: StoreSpec | None,
        credentials: Credentials | None,
        permanent: PermanentStorage | None,
        outcome: TaskResult,
    ) -> tuple[str, datetime | None]:
        """Put the picture where it belongs. Return its URL, and when it expires."""
        media_type = outcome.facts["media_type"]
        if permanent is not None:
            with own_storage():
                return await permanent.put(outcome.data, media_type), None
        if spec is None:
            with own_storage():
                stored = await self.temporary.put(outcome.data, media_type, now())
            return f"{self.base_url}{IMAGES_PATH}{stored.name}", stored.expires_at
        store = open_store(
            spec,
            keyfiles={getattr(spec, "keyfile", ""): credentials.document} if credentials else {},
            pool=self.stores,
            seconds=self.store_seconds,
        )
        name = outcome.facts["name"]
        return await store.put(StoredObject(outcome.data, name, media_type)), None

    async def _credentials(self, account_id: str, spec: StoreSpec | None) -> Credentials | None:
        """Return the keyfile that a store needs. An unknown one is refused before any work is done."""
        id_: str | None = getattr(spec, "keyfile", None)
        if id_ is None:
            return None
        found = await keyfiles.credentials(self.db, self.vault, account_id, id_)
        if found is None:
            expected = "must be the id of an uploaded keyfile"
            raise invalid("store.keyfile", f"Store 'keyfile' parameter {expected}", f"got '{id_[:60]}'")
        return found

    async def _pictures(self, account_id: str, spec: Spec, layers: LayerPictures) -> dict[str, bytes]:
        """Return the bytes of watermarks by id, and of pictures of layers by id or URL."""
        named = await self._watermarks(account_id, spec.pictures, spec.path_of_picture)
        return {**named, **layers.data}

    async def _watermarks(
        self, account_id: str, ids: Sequence[str], path_of: Callable[[str], str] = lambda _: "watermark.id"
    ) -> dict[str, bytes]:
        """Return the bytes of watermarks by id. ``path_of`` tells where the request names one."""
        if not ids:
            return {}
        named = {id_: await watermarks.data(self.db, account_id, id_) for id_ in ids}
        found = {id_: data for id_, data in named.items() if data is not None}
        for id_ in named.keys() - found:
            raise invalid_id(path_of(id_), "must be the id of an uploaded watermark", f"got '{id_[:60]}'")
        return found


def _kept_seconds(fetched: Fetched) -> float:
    return kept_seconds(fetched.headers, default=0)


@contextlib.contextmanager
def own_storage() -> Iterator[None]:
    """Tell failures of the service's own storage as those of the machine. A full disk has its own answer."""
    try:
        yield
    except Exception as error:
        if is_disk_full(error):
            raise
        raise MachineFailed(f"The service's own storage fails: {error}") from error
