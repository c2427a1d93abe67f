"""Pictures of layers that requests name by URL."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import attrs
from multidict import MultiMapping

from imgsvc_core import Spec
from imgsvc_core.errors import ImgsvcError, SourceTooLarge, SpecError, invalid
from imgsvc_http.fetching.fetcher import shown_url
from imgsvc_http.fetching.folder_origin import Identity, OpenedSource
from imgsvc_http.fetching.origins import Asking, Origins
from imgsvc_http.monitoring.phases import phase
from imgsvc_http.settings import FetchSettings
from imgsvc_urls import UrlSource

MOST_BYTES = 10_000_000
"""The most bytes of an uploaded watermark, and of all pictures by URL of a request's layers together."""

_AT_ONCE = 6  # as many connections as browsers open to a host

Seen: TypeAlias = Mapping[str, tuple[str, str, Mapping[str, str]]]
"""URLs of pictures, and texts and conditions of their identities, by their paths in a request."""


@attrs.frozen(kw_only=True)
class LayerPictures:
    """The bytes of pictures by their URLs, what was seen of them, and the headers of their servers."""

    data: Mapping[str, bytes] = attrs.field(factory=dict, repr=False)
    seen: Seen = attrs.field(factory=dict)
    headers: tuple[MultiMapping[str], ...] = ()
    fetch_ms: float = 0.0


class LayerFetcher:
    """Fetches the pictures of layers as sources are fetched, from URLs that the settings allow.

    Args:
        settings: they tell how URLs must begin.
        origins: fetch the pictures, and keep them for a moment.
    """

    def __init__(self, settings: FetchSettings, origins: Origins) -> None:
        self._settings = settings
        self._origins = origins

    def check(self, spec: Spec) -> None:
        """Raise `SpecError` if a layer names its picture by a path, or by a URL that is not allowed."""
        for path, picture in spec.layer_pictures.items():
            if picture.source is None or self._settings.allows_layer(picture.source):
                continue
            subject = "Picture 'source' parameter"
            upload = "upload the picture as a watermark, and give its id"
            if not self._settings.layers:
                raise invalid(f"{path}.source", f"{subject} must be left out; {upload}")
            allowed = ", ".join(self._settings.layers)
            expected = f"{subject} must be a URL that begins with {allowed}; or {upload}"
            raise invalid(f"{path}.source", expected, f"got '{shown_url(picture.source)}'")

    async def fetch(self, spec: Spec, asking: Asking) -> LayerPictures:
        """Return the pictures that layers of a request name by URL.

        Raises:
            SpecError: a URL is not allowed, or wrong.
            ImgsvcError: a picture cannot be fetched. ``path`` names the layer.
        """
        self.check(spec)
        pictures = spec.layer_pictures.items()
        urls = {f"{path}.source": picture.source for path, picture in pictures if picture.source is not None}
        if not urls:
            return LayerPictures()
        paths: dict[str, str] = {}
        for path, url in urls.items():
            paths.setdefault(url, path)
        started, most = time.perf_counter(), min(asking.limit_bytes or MOST_BYTES, MOST_BYTES)
        asking, room = attrs.evolve(asking, limit_bytes=most), asyncio.Semaphore(_AT_ONCE)
        with phase("fetch"), contextlib.ExitStack() as stack:
            tasks = {
                url: asyncio.create_task(self._opened(url, path, asking, room, stack))
                for url, path in paths.items()
            }
            try:
                await asyncio.gather(*tasks.values())
            finally:
                for task in tasks.values():
                    task.cancel()
                await asyncio.wait(tasks.values())
            opened = {url: task.result() for url, task in tasks.items()}
            _check_sum(opened, paths, most)
            data = {url: await _read(found.path) for url, found in opened.items()}
        return LayerPictures(
            data=data,
            seen={path: _seen(url, opened[url].identity) for path, url in urls.items()},
            headers=tuple(found.headers for found in opened.values()),
            fetch_ms=1000 * (time.perf_counter() - started),
        )

    async def renewed(self, seen: Seen, asking: Asking) -> tuple[MultiMapping[str], ...] | None:
        """Return what servers say about pictures that are still the same, or None if one has changed.

        Raises:
            ImgsvcError: a picture cannot be fetched. ``path`` names the layer.
        """
        headers = []
        for path, (url, text, conditions) in seen.items():
            with _at(path):
                known = Identity(text, conditions=conditions)
                found, release = await self._origins.open(UrlSource(url), known, asking)
            release()
            if isinstance(found, OpenedSource) and found.identity.text != text:
                return None
            headers.append(found.headers)
        return tuple(headers)

    async def _opened(
        self, url: str, path: str, asking: Asking, room: asyncio.Semaphore, stack: contextlib.ExitStack
    ) -> OpenedSource:
        """Return a picture whose file exists until the stack is closed."""
        async with room:
            with _at(path):
                found, release = await self._origins.open(UrlSource(url), None, asking)
        stack.callback(release)
        assert isinstance(found, OpenedSource)
        return found


def _seen(url: str, identity: Identity) -> tuple[str, str, Mapping[str, str]]:
    return url, identity.text, dict(identity.conditions)


def _check_sum(opened: Mapping[str, OpenedSource], paths: Mapping[str, str], most: int) -> None:
    """Raise `SourceTooLarge` if all pictures together have too many bytes."""
    total = 0
    for url, found in opened.items():
        total += found.path.stat().st_size
        if total > most:
            with _at(paths[url]):
                raise SourceTooLarge(
                    f"The pictures by URL of all layers have more than {most:,} bytes together, which is the "
                    "limit: use smaller ones."
                )


async def _read(path: Path) -> bytes:
    # Opened here: by the time a thread opens the path, it may be that of another source.
    with path.open("rb") as file:
        return await asyncio.to_thread(file.read)


@contextlib.contextmanager
def _at(path: str) -> Iterator[None]:
    """Name the place in the request in errors of the picture that it names."""
    try:
        yield
    except SpecError as error:
        raise SpecError(attrs.evolve(problem, path=path) for problem in error.problems) from None
    except ImgsvcError as error:
        error.path = path
        raise
