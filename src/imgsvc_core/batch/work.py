"""What a worker does with an input: read it, make every variant, write them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext

import attrs

from imgsvc_core.batch.events import DONE, FAILED, UNCHANGED, Event, Output
from imgsvc_core.batch.naming import Template
from imgsvc_core.batch.writing import named_alike, remove, write
from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.errors import ImgsvcError, NameCollision, TargetError
from imgsvc_core.limits import Limits
from imgsvc_core.result import Result
from imgsvc_core.sources import open_bytes
from imgsvc_core.spec import Spec

_IN_MEMORY_BYTES = 2**25
_USUAL_AT_ONCE, _REMOTE_AT_ONCE = 2, 16


@attrs.frozen(kw_only=True)
class Job:
    """What a batch does to every input.

    Attributes:
        variants: specs by name.
        target: the folder of the results, or its URL.
        template: how they are named.
        limits: how much work one picture may cause.
        watermarks: encoded pictures by the ids that specs use.
        overwrite: whether files that are not from this batch may be replaced.
        token: names the folder of files that are not complete yet.
        remote: whether inputs or results cross a network.
    """

    variants: Mapping[str, Spec]
    target: str
    template: Template
    limits: Limits
    watermarks: Mapping[str, bytes] = attrs.field(factory=dict)
    overwrite: bool = False
    token: str = "batch"
    remote: bool = False

    @property
    def at_once(self) -> int:
        """How many inputs a worker has in its hands: it reads and writes some while it computes one."""
        return _REMOTE_AT_ONCE if self.remote else _USUAL_AT_ONCE


@attrs.frozen(kw_only=True)
class Task:
    """One input, and its digest if nothing is to be done for it.

    Of the paths of results, it knows those that are its ``owned`` from before, and some that are ``taken`` by
    other inputs of its source.
    """

    key: str
    location: str
    size: int
    owned: frozenset[str] = frozenset()
    taken: frozenset[str] = frozenset()
    digest: str = ""


_GRACE_SECONDS = 2.0  # for each input, beside the one that takes all its time
_TRANSFER_SECONDS = 60.0


def patience(job: Job, inputs: int) -> float | None:
    """After how many seconds a task with so many inputs hangs; forever where pictures have no limit.

    One of them may take all the time that it has. Where several do, the task is taken apart.
    """
    seconds = computing_seconds(job)
    if seconds is None:
        return None
    return seconds + (_TRANSFER_SECONDS if job.remote else 0.0) + _GRACE_SECONDS * (inputs - 1)


def computing_seconds(job: Job) -> float | None:
    """After how many seconds a picture that is computed hangs."""
    return None if job.limits.seconds is None else job.limits.seconds * len(job.variants) + _GRACE_SECONDS


def inputs_per_task(job: Job, events: Sequence[Event], *, seconds: float, most: int) -> int:
    """How many inputs a worker that did some does in the time that a task should take."""
    needed = sum(event.seconds for event in events) / job.at_once
    wanted = int(seconds * len(events) / needed) if needed else most
    return max(2 * job.at_once, min(most, wanted))


def run_tasks(job: Job, tasks: tuple[Task, ...]) -> list[Event]:
    """Do several: while one is computed, others are read and written."""
    if len(tasks) == 1:
        return [run_task(job, tasks[0])]
    computing = threading.Lock()
    with ThreadPoolExecutor(min(job.at_once, len(tasks))) as threads:
        return list(threads.map(lambda task: run_task(job, task, computing), tasks))


def run_task(job: Job, task: Task, computing: AbstractContextManager[object] | None = None) -> Event:
    """Do it. Whatever is wrong with the input or the target is told, and costs nothing else.

    ``computing`` is held meanwhile.
    """
    event = Event(key=task.key, outcome=FAILED, bytes=task.size)
    started = time.perf_counter()
    try:
        source = open_bytes(task.location, job.limits)
        if source.size <= _IN_MEMORY_BYTES:  # it is looked at several times
            source = ByteSource(source.read(), name=source.name)
        event = attrs.evolve(event, bytes=source.size, digest=source.sha256())
        if event.digest == task.digest:
            return attrs.evolve(event, outcome=UNCHANGED)
        with computing or nullcontext():
            results = _results(job, source)
        outputs = _write_all(job, task, results, event.digest)
        event = attrs.evolve(event, outcome=DONE, outputs=outputs)
    except ImgsvcError as error:
        event = attrs.evolve(event, error=error.slug, message=error.message)
    except MemoryError:
        message = "There is not enough memory for this picture."
        event = attrs.evolve(event, error="worker_died", message=message)
    except Exception as error:  # a batch goes on, whatever a codec or a store does
        message = f"An unexpected error occurred: {error!r}."
        event = attrs.evolve(event, error="internal_error", message=message)
    return attrs.evolve(event, seconds=time.perf_counter() - started)


def _results(job: Job, source: ByteSource) -> dict[str, Result]:
    from imgsvc_core.processing import process_variants

    return process_variants(source, job.variants, limits=job.limits, threads=1, watermarks=job.watermarks)


def _write_all(job: Job, task: Task, results: Mapping[str, Result], digest: str) -> tuple[Output, ...]:
    """Write every variant; or none, where one of them cannot be written."""
    outputs: list[Output] = []
    new: list[str] = []
    try:
        for variant, result in results.items():
            assert result.data is not None
            output = _output(job, task, variant, result, digest)
            taken = output.path in task.taken
            replace = not taken and (job.overwrite or output.path in task.owned)
            media_type = FORMATS[output.format].media_type
            place = job.target, output.path
            origin = {"location": task.location, "token": job.token}
            try:
                if write(*place, result.data, media_type, **origin, replace=replace):
                    new.append(output.path)
            except NameCollision as error:
                if not taken:
                    raise
                raise named_alike(output.path) from error
            outputs.append(output)
    except TargetError:
        for path in new:
            if path not in task.owned:
                remove(job.target, path)
        raise
    return tuple(outputs)


def _output(job: Job, task: Task, variant: str, result: Result, digest: str) -> Output:
    made = result.output
    path = job.template.path(
        task.key,
        variant=variant,
        width=made.width,
        height=made.height,
        suffix=FORMATS[made.format].suffix,
        digest=digest,
    )
    assert result.data is not None
    return Output(
        variant=variant,
        path=path,
        format=made.format,
        width=made.width,
        height=made.height,
        bytes=len(result.data),
    )
