"""The work on an input: read it, make every variant, write the results."""

from __future__ import annotations

import contextlib
import hashlib
import io
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import attrs

from imgsvc_batch.events import DONE, FAILED, UNCHANGED, Event, Output
from imgsvc_batch.naming import Template
from imgsvc_batch.own_format import in_own_format
from imgsvc_batch.results import check_path, remove, remove_object, stage, write_object
from imgsvc_core import FORMATS, ImageInfo, Limits, NameCollision, Spec, inspect
from imgsvc_core._runtime.logs import silence
from imgsvc_core.sources import ByteSource, open_bytes

_IN_MEMORY_BYTES = 2**25  # larger files are read as libvips decodes them
_REMOTE_AT_ONCE = 16
_GRACE_SECONDS = 2.0
TRANSFER_SECONDS = 60.0


@attrs.frozen(kw_only=True)
class Job:
    """The job of a batch: the same for every input.

    Attributes:
        variants: specs by name.
        target: the folder of the results, or its URL.
        template: how results are named.
        limits: how much work one picture may cause.
        watermarks: encoded pictures by the ids that specs use, and those of layers by their places.
        overwrite: replace objects that are not results of the same input.
        staging_folder: the folder for results that are not in place yet; empty if the target is a URL.
        remote: inputs or results cross a network.
        packed: inputs are in an archive, whose index each process reads.
        in_place: the result of an input takes its place.
    """

    variants: Mapping[str, Spec]
    target: str
    template: Template
    limits: Limits
    watermarks: Mapping[str, bytes] = attrs.field(factory=dict)
    overwrite: bool = False
    staging_folder: str = ""
    remote: bool = False
    packed: bool = False
    in_place: bool = False

    @property
    def at_once(self) -> int:
        """Return how many inputs a worker holds at a time: it computes one, and transfers the others."""
        return _REMOTE_AT_ONCE if self.remote else 1

    def grace(self, inputs: int) -> float:
        """Return the extra seconds, beyond one picture's time limit, after which the task counts as hung.

        A task that hangs is split into its inputs.
        """
        return _GRACE_SECONDS * inputs + (TRANSFER_SECONDS if self.remote or self.packed else 0.0)


@attrs.frozen(kw_only=True)
class Task:
    """One input to process.

    Attributes:
        key: its path below the source.
        location: its path or URL.
        size: in bytes, as listed.
        owned: the paths of its earlier results, which it may replace.
        member: what finds it in an archive.
        digest: the SHA-256 that it had when it was processed; an input that still has it is skipped.
    """

    key: str
    location: str
    size: int
    member: object = None
    owned: frozenset[str] = frozenset()
    digest: str = ""


@attrs.frozen
class TaskResult:
    """A worker's report on one input: the event, and the files to move by the paths of their outputs.

    In place, ``digest`` is the SHA-256 of the result.
    """

    event: Event
    staged: Mapping[str, str] = attrs.field(factory=dict)
    digest: str = ""


@attrs.frozen
class _Encoded:
    """A result of a variant: its facts, its bytes, and what it could not keep."""

    output: ImageInfo
    data: bytes
    notes: tuple[str, ...]


def run_silently(job: Job, tasks: Sequence[Task]) -> list[TaskResult]:
    """Process several inputs in a process of its own, whose libraries log nothing."""
    silence()
    return run_tasks(job, tasks)


def run_tasks(job: Job, tasks: Sequence[Task]) -> list[TaskResult]:
    """Process several inputs. Across a network, some are read and written while one is computed."""
    if not job.remote or len(tasks) == 1:
        return [run_task(job, task) for task in tasks]
    one_at_a_time = threading.Lock()
    with ThreadPoolExecutor(min(job.at_once, len(tasks))) as threads:
        return list(threads.map(lambda task: run_task(job, task, one_at_a_time), tasks))


def run_task(
    job: Job, task: Task, computing: contextlib.AbstractContextManager[object] | None = None
) -> TaskResult:
    """Process one input. Report any problem of the input or the target as a failure of this input."""
    started = time.perf_counter()
    event = Event(key=task.key, outcome=FAILED, bytes=task.size)
    staged: Mapping[str, str] = {}
    digest = ""
    try:
        source = open_bytes(task.location, job.limits, member=task.member)
        if source.size <= _IN_MEMORY_BYTES:
            source = ByteSource(source.read(), name=source.name)
        event = attrs.evolve(event, bytes=source.size, digest=source.sha256())
        if event.digest == task.digest:
            event = attrs.evolve(event, outcome=UNCHANGED)
        else:
            with computing or contextlib.nullcontext():
                results = _process(job, source)
            notes = tuple(dict.fromkeys(note for result in results.values() for note in result.notes))
            outputs = _name(job, task, results, event.digest)
            if job.in_place:
                data = results[outputs[0].variant].data
                digest = hashlib.sha256(data).hexdigest()
                event = attrs.evolve(event, kept=digest == event.digest)
                staged = {} if event.kept else {task.location: stage(job.staging_folder, data, synced=True)}
            else:
                staged = _write(job, task, outputs, results)
            event = attrs.evolve(event, outcome=DONE, outputs=outputs, notes=notes)
    except Exception as error:  # a batch continues after any exception of a codec or store
        event = event.failed(error)
    return TaskResult(attrs.evolve(event, seconds=time.perf_counter() - started), staged, digest)


def _process(job: Job, source: ByteSource) -> dict[str, _Encoded]:
    from imgsvc_core import process_variants

    variants = job.variants
    if job.in_place:
        info = inspect(source, limits=job.limits)
        variants = {name: in_own_format(spec, info) for name, spec in variants.items()}
    files = {variant: io.BytesIO() for variant in variants}  # targets, so that no pixels are kept
    results = process_variants(
        source, variants, files, limits=job.limits, threads=1, watermarks=job.watermarks
    )
    return {
        variant: _Encoded(result.output, files[variant].getvalue(), result.notes)
        for variant, result in results.items()
    }


def _name(job: Job, task: Task, results: Mapping[str, _Encoded], digest: str) -> tuple[Output, ...]:
    """Name the results. Variants with the same name and the same content share one output."""
    outputs: dict[str, Output] = {}
    for variant, result in results.items():
        output = _output(job, task, variant, result, digest)
        if not job.in_place:
            check_path(output.path)
        first = outputs.setdefault(output.path, output)
        if results[first.variant].data != result.data:
            raise NameCollision(
                f"Its result '{output.path}' of variant '{variant}' has the same name as "
                f"the result of variant '{first.variant}': use a template that tells them apart."
            )
    return tuple(outputs.values())


def _output(job: Job, task: Task, variant: str, result: _Encoded, digest: str) -> Output:
    made = result.output
    suffix = FORMATS[made.format].suffix
    size = {"width": made.width, "height": made.height}
    path = task.location
    if not job.in_place:
        path = job.template.path(task.key, variant=variant, suffix=suffix, digest=digest, **size)
    facts = made.facts if made.look is None else {"look": made.look, **made.facts}
    return Output(variant=variant, path=path, format=made.format, bytes=made.bytes, facts=facts, **size)


def _write(
    job: Job, task: Task, outputs: Sequence[Output], results: Mapping[str, _Encoded]
) -> dict[str, str]:
    """Write all results or none. Return the files that are to be moved to their places, by output path."""
    undo = contextlib.ExitStack()
    staged: dict[str, str] = {}
    with undo:
        for output in outputs:
            data = results[output.variant].data
            if job.staging_folder:
                staged[output.path] = stage(job.staging_folder, data)
                undo.callback(remove, staged[output.path])
                continue
            owned = output.path in task.owned
            media_type = FORMATS[output.format].media_type
            is_new = write_object(job.target, output.path, data, media_type, replace=job.overwrite or owned)
            if is_new and not owned:
                undo.callback(remove_object, job.target, output.path)
        undo.pop_all()
    return staged
