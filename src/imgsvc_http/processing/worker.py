"""What worker processes do, and how the event loop hands it to them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

import imgsvc_core as imgsvc
from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.info import ImageInfo
from imgsvc_core.limits import Limits
from imgsvc_core.spec import Spec
from imgsvc_core.workers import WorkerPool
from imgsvc_http.answering.refusals import overloaded
from imgsvc_http.answering.schemas import IMAGE_FACTS

_RETRY_SECONDS = 2
# The library stops in time by itself; a codec that does not listen is ended a little later.
_GRACE_SECONDS = 2.0


@attrs.frozen(kw_only=True)
class Task:
    """One picture to process; ``watermark`` are the encoded bytes of the one that the request names."""

    source: Path
    name: str
    spec: Spec
    limits: Limits
    watermark: bytes | None = attrs.field(default=None, repr=False)
    accept: str | None = None


@attrs.frozen(kw_only=True)
class Done:
    """A processed picture, and what is told of it."""

    data: bytes = attrs.field(repr=False)
    media_type: str
    suffix: str
    input: dict[str, Any]
    output: dict[str, Any]
    timing: dict[str, float]


class Workers:
    """The pool, with room for so many requests and no more.

    Args:
        pool: the processes.
        room: how many requests may wait or run.
    """

    def __init__(self, pool: WorkerPool, room: int) -> None:
        self._pool = pool
        self._room = room
        self._busy = 0

    async def warm_up(self) -> None:
        """Start the processes, so that the first request does not wait for them."""
        await asyncio.gather(
            *(asyncio.wrap_future(self._pool.submit(prepare)) for _ in range(self._pool.workers))
        )

    async def read(self, path: Path) -> bytes:
        """The bytes of a file, as a worker sees it."""
        return await asyncio.wrap_future(self._pool.submit(Path.read_bytes, path))

    def check_room(self) -> None:
        """Refuse before a body is read or a source fetched, where there is no room for more."""
        if self._busy >= self._room:
            raise overloaded(_RETRY_SECONDS)

    @property
    def number(self) -> int:
        """How many processes there are."""
        return self._pool.workers

    async def process(self, task: Task, *, patient: bool = False) -> Done:
        """Process a picture; cancelling stops the work.

        Raises what `imgsvc_core.process` raises, `WorkerDied`, and `Refusal` where there is no room and the
        request is not ``patient``.
        """
        if not patient:
            self.check_room()
        self._busy += 1
        threads = max(1, self._pool.workers // self._busy)
        seconds = None if task.limits.seconds is None else task.limits.seconds + _GRACE_SECONDS
        try:
            return await asyncio.wrap_future(self._pool.submit(process, task, threads, seconds=seconds))
        finally:
            self._busy -= 1

    async def inspect(self, source: Path, name: str) -> ImageInfo:
        """The facts of a picture, which is decoded small to see that it is whole."""
        return await asyncio.wrap_future(self._pool.submit(check, source, name, seconds=_GRACE_SECONDS * 10))

    async def close(self) -> None:
        """Finish what runs, and end the processes."""
        await asyncio.to_thread(self._pool.close)


def prepare() -> None:
    """Load what processing needs."""
    import imgsvc_core.codecs.readers.turbojpeg
    import imgsvc_core.processing  # noqa: F401


def process(task: Task, threads: int) -> Done:
    """In a worker: do what a task says."""
    result = imgsvc.process(
        task.source.read_bytes(),
        task.spec,
        limits=task.limits,
        watermarks=None if task.watermark is None else lambda _: task.watermark,
        name=task.name,
        digest=True,
        accept=task.accept,
        threads=threads,
    )
    assert result.data is not None
    row = FORMATS[result.output.format]
    described = result.to_dict()
    described["output"]["name"] = f"{Path(task.name).stem or 'image'}{row.suffix}"
    return Done(
        data=result.data,
        media_type=row.media_type,
        suffix=row.suffix,
        input=_told(described["input"], IMAGE_FACTS),
        output=_told(described["output"], (*IMAGE_FACTS, "faces")),
        timing=described["timing"],
    )


def _told(facts: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: facts[name] for name in names if name in facts}


def check(source: Path, name: str) -> ImageInfo:
    """In a worker: the facts of a picture, found good by decoding it small."""
    data = source.read_bytes()
    info = imgsvc.inspect(data, name=name, digest=True)
    imgsvc.process(data, {"resize": {"width": 64, "height": 64, "upscale": False}}, name=name)
    return info
