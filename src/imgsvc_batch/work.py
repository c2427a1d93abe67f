"""What a worker does with an input: read it, make every variant, write them."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext

import attrs

from imgsvc_batch.events import DONE, FAILED, UNCHANGED, Event, Output
from imgsvc_batch.naming import Template
from imgsvc_batch.writing import check_path, named_alike, release, remove, write
from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.errors import ImgsvcError, NameCollision, TargetError
from imgsvc_core.limits import Limits
from imgsvc_core.result import Result
from imgsvc_core.sources import open_bytes
from imgsvc_core.spec import Spec

_IN_MEMORY_BYTES = 2**25
_USUAL_AT_ONCE, _REMOTE_AT_ONCE = 1, 16
_MOST_HELD, _MOST_HELD_BYTES = 16, 2**23


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
        reserved: places of the manifest, where no result may be.
        remote: whether inputs or results cross a network.
    """

    variants: Mapping[str, Spec]
    target: str
    template: Template
    limits: Limits
    watermarks: Mapping[str, bytes] = attrs.field(factory=dict)
    overwrite: bool = False
    token: str = "batch"
    reserved: frozenset[str] = frozenset()
    remote: bool = False

    @property
    def at_once(self) -> int:
        """How many inputs a worker works on: across a network, it reads others while it computes."""
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


Computing = Callable[[Task], AbstractContextManager[object]]
"""What is held while a task is computed."""


def run_tasks(job: Job, tasks: tuple[Task, ...]) -> list[Event]:
    """Do several: across a network, others are read and written while one is computed."""
    read_ahead(job, tasks)
    if not job.remote:
        return list(run_in_turn(job, tasks))
    computing = threading.Lock()
    with ThreadPoolExecutor(min(job.at_once, len(tasks))) as threads:
        return list(threads.map(lambda task: run_task(job, task, lambda _: computing), tasks))


def read_ahead(job: Job, tasks: tuple[Task, ...]) -> None:
    """Have the system read files from its disks meanwhile, whatever comes of that."""
    if job.remote or not hasattr(os, "posix_fadvise"):  # macOS has none
        return
    for task in tasks:
        with contextlib.suppress(OSError, ValueError):
            if os.path.isfile(task.location):
                with open(task.location, "rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


def run_in_turn(job: Job, tasks: Iterable[Task], computing: Computing = nullcontext) -> Iterator[Event]:
    """Do one after the other.

    Where nothing crosses a network, what came of some is written together: the same code is faster again and
    again than after each picture, whose pixels drive it out of the processor's caches.
    """
    most = 1 if job.remote else _MOST_HELD
    held: list[_Made] = []
    for task in tasks:
        held.append(_make(job, task, computing))
        if len(held) == most or sum(made.bytes for made in held) > _MOST_HELD_BYTES:
            yield from [_put(job, made) for made in held]
            held.clear()
    yield from [_put(job, made) for made in held]


def run_task(job: Job, task: Task, computing: Computing = nullcontext) -> Event:
    """Do one. Whatever is wrong with the input or the target is told, and costs nothing else."""
    return _put(job, _make(job, task, computing))


@attrs.frozen
class _Made:
    """What came of an input: results that are to be written, or none where nothing is left to be done."""

    task: Task
    event: Event
    results: Mapping[str, Result] = attrs.field(factory=dict)

    @property
    def bytes(self) -> int:
        return sum(len(result.data or b"") for result in self.results.values())


def _make(job: Job, task: Task, computing: Computing) -> _Made:
    started = time.perf_counter()
    event = Event(key=task.key, outcome=FAILED, bytes=task.size)
    results: Mapping[str, Result] = {}
    try:
        source = open_bytes(task.location, job.limits)
        if source.size <= _IN_MEMORY_BYTES:  # it is looked at several times
            source = ByteSource(source.read(), name=source.name)
        event = attrs.evolve(event, bytes=source.size, digest=source.sha256())
        if event.digest == task.digest:
            event = attrs.evolve(event, outcome=UNCHANGED)
        else:
            with computing(task):
                results = _results(job, source)
    except Exception as error:
        event, results = _failed(event, error), {}
    return _Made(task, attrs.evolve(event, seconds=time.perf_counter() - started), results)


def _put(job: Job, made: _Made) -> Event:
    event = made.event
    if not made.results:
        return event
    started = time.perf_counter()
    try:
        outputs = _write_all(job, made.task, made.results, event.digest)
        event = attrs.evolve(event, outcome=DONE, outputs=outputs)
    except Exception as error:
        event = _failed(event, error)
    return attrs.evolve(event, seconds=event.seconds + time.perf_counter() - started)


def _failed(event: Event, error: Exception) -> Event:
    """What is told of an error: a batch goes on, whatever a codec or a store does."""
    if isinstance(error, ImgsvcError):
        return attrs.evolve(event, error=error.slug, message=error.message)
    if isinstance(error, MemoryError):
        message = "There is not enough memory for this picture."
        return attrs.evolve(event, error="worker_died", message=message)
    return attrs.evolve(event, error="internal_error", message=f"An unexpected error occurred: {error!r}.")


def _results(job: Job, source: ByteSource) -> dict[str, Result[bytes]]:
    from imgsvc_core.processing import process_variants

    return process_variants(source, job.variants, limits=job.limits, threads=1, watermarks=job.watermarks)


def _write_all(job: Job, task: Task, results: Mapping[str, Result], digest: str) -> tuple[Output, ...]:
    """Write every variant; or none, where one of them cannot be written."""
    outputs = _outputs(job, task, results, digest)
    new: list[str] = []
    try:
        for output in outputs:
            data = results[output.variant].data
            assert data is not None
            taken = output.path in task.taken
            replace = not taken and (job.overwrite or output.path in task.owned)
            media_type = FORMATS[output.format].media_type
            place = job.target, output.path
            origin = {"location": task.location, "token": job.token}
            try:
                if write(*place, data, media_type, **origin, replace=replace):
                    new.append(output.path)
            except NameCollision as error:
                if not taken:
                    raise
                raise named_alike(output.path) from error
    except TargetError:
        for path in new:
            if path not in task.owned:
                remove(job.target, path)
                release(job.target, path, location=task.location, token=job.token)
        raise
    return outputs


def _outputs(job: Job, task: Task, results: Mapping[str, Result], digest: str) -> tuple[Output, ...]:
    """What is to be written: results that are the same and have one name are one.

    Raises `TargetError` where a result may not have its name, or others that differ have it.
    """
    outputs: dict[str, Output] = {}
    for variant, result in results.items():
        output = _output(job, task, variant, result, digest)
        check_path(job.target, output.path, job.reserved)
        first = outputs.setdefault(output.path, output)
        if results[first.variant].data != result.data:
            raise NameCollision(
                f"Its result '{output.path}' of variant '{variant}' has the name of that of variant "
                f"'{first.variant}': use a template that tells them apart."
            )
    return tuple(outputs.values())


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
