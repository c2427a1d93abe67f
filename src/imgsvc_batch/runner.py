"""Run a batch: list the source, hand inputs to workers, and settle their results."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Unpack

import attrs

from imgsvc_batch.arguments import Batch, BatchOptions, InPlaceOptions
from imgsvc_batch.checks import check_same_batch, mode_of, prepare
from imgsvc_batch.events import DONE, FAILED, UNCHANGED, Event, Progress, Summary
from imgsvc_batch.executors import Executor, ProcessExecutor, ThreadExecutor
from imgsvc_batch.in_place import Replacing
from imgsvc_batch.inputs import Input, PassedOver, unlistable_folder
from imgsvc_batch.listing import Listing
from imgsvc_batch.manifest import Known, Manifest
from imgsvc_batch.own_format import keep_smaller
from imgsvc_batch.placing import Placing
from imgsvc_batch.results import sync_folder
from imgsvc_batch.selection import Selection
from imgsvc_batch.signals import ending_after_batch
from imgsvc_batch.work import Job, Task, TaskResult
from imgsvc_core import ImgsvcError, Request, SourceUnreachable, TargetError, UnsupportedOperation, parse
from imgsvc_core.sources import shown_url
from imgsvc_core.targets import unwritable

_TICK_SECONDS, _LISTING_TICK_SECONDS = 0.2, 0.02
_FEW = 24  # pictures, which take less time than loading the code of all formats
_FINISHING_SECONDS = 1.0  # an interrupted batch ends within two seconds
_CHOSEN_AT_ONCE = 1000  # between two reports of the progress

OnEvent = Callable[[Event], None]
OnProgress = Callable[[Progress], None]


def run(
    source: str | Path | Sequence[str | Path],
    target: str | Path,
    variants: Mapping[str, Request],
    *,
    resume: bool = False,
    retry: bool = False,
    on_event: OnEvent | None = None,
    on_progress: OnProgress | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Unpack[BatchOptions],
) -> Summary:
    """Process many pictures.

    Args:
        source: a folder, a pattern with wildcards, a file, an fsspec URL of one, or a list of paths.
        target: a folder or an fsspec URL of one.
        variants: specs by name.
        resume: continue an interrupted run: leave inputs that failed.
        retry: process only inputs that failed.
        on_event: called with the outcome of each input.
        on_progress: called with the state of the batch a few times a second.
        stop: called as often; return True to interrupt the batch.
        options: see `Batch`.

    A ``KeyboardInterrupt`` interrupts the batch too. In the main thread, so do SIGTERM and SIGHUP, which
    then end the process, unless the program ignores or handles them. The next run processes the remaining
    inputs.

    Raises:
        SpecError: an argument is wrong, or the batch to resume is another one.
        SourceError: the source cannot be listed, or a watermark cannot be read.
        LimitExceeded: a watermark is too large.
        TargetError: the target or the manifest cannot be written, or the cluster is lost.
        ImgsvcError: the cluster cannot be used.
    """
    batch = Batch(source=source, target=target, variants=variants, **options)
    return run_batch(batch, resume=resume, retry=retry, on_event=on_event, on_progress=on_progress, stop=stop)


def run_in_place(
    source: str | Path | Sequence[str | Path],
    request: Request | None = None,
    *,
    if_smaller: bool = True,
    resume: bool = False,
    retry: bool = False,
    on_event: OnEvent | None = None,
    on_progress: OnProgress | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Unpack[InPlaceOptions],
) -> Summary:
    """Replace many pictures by their results, where they lie.

    Each file is the original or the result at any time, also if the batch is killed. It keeps its format, and
    is left alone if its bytes do not change. Links are passed over, unless they are named as the source.

    Args:
        source: a folder, a pattern with wildcards, a file, an fsspec URL of one, or a list of paths.
        request: what is done to each picture; without one, it is only encoded again.
        if_smaller: set ``output.if_smaller``: a picture that encoding makes larger keeps its pixels.
        resume: as in `run`.
        retry: as in `run`.
        on_event: as in `run`.
        on_progress: as in `run`.
        stop: as in `run`.
        options: see `Batch`.

    Raises what `run` raises.
    """
    spec = parse({} if request is None else request)
    variants = {"": keep_smaller(spec) if if_smaller else spec}
    batch = Batch(source=source, in_place=True, variants=variants, **options)
    return run_batch(batch, resume=resume, retry=retry, on_event=on_event, on_progress=on_progress, stop=stop)


def run_batch(
    batch: Batch,
    *,
    resume: bool = False,
    retry: bool = False,
    on_event: OnEvent | None = None,
    on_progress: OnProgress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Summary:
    """Run a batch; see `run`."""
    mode = mode_of(resume=resume, retry=retry)
    passed_over = PassedOver()
    job, fingerprint, inputs = prepare(batch, passed_over)
    has_secrets = any(shown_url(place) != place for place in (batch.source, batch.target))
    with Manifest(batch.manifest_path, private=has_secrets) as manifest:
        check_same_batch(manifest, batch, fingerprint, mode)
        manifest.begin(batch.source, fingerprint, batch.target, force=batch.force and mode != "resume")
        run = _Run(
            batch,
            job,
            manifest,
            Selection(batch, fingerprint, manifest, mode),
            (Replacing if batch.in_place else Placing)(batch, fingerprint, manifest),
            on_event or (lambda _: None),
            passed_over,
        )
        with ending_after_batch() as interrupts:
            return run.go(
                inputs,
                on_progress or (lambda _: None),
                lambda: interrupts.stop() or (stop is not None and stop()),
            )


@contextlib.contextmanager
def _staging(folder: str, *, private: bool) -> Iterator[None]:
    """Make the staging folder, and remove the files that a killed run left there.

    It is ``private`` if results of files that others cannot read may lie there.
    """
    if not folder:
        yield
        return
    shutil.rmtree(folder, ignore_errors=True)
    try:
        os.makedirs(folder, mode=0o700 if private else 0o777, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _executor(batch: Batch, job: Job, listing: Listing) -> Executor:
    if batch.in_memory:
        return ThreadExecutor(job, batch.workers)
    if batch.cluster is not None:
        from imgsvc_batch.cluster import ClusterExecutor

        return ClusterExecutor(job, batch.cluster)
    return ProcessExecutor(job, batch.workers, few=listing.is_short(_FEW, _LISTING_TICK_SECONDS))


@attrs.define
class _Counts:
    done: int = 0
    failed: int = 0
    skipped: int = 0
    failed_before: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    kept: int = 0
    notes: dict[str, int] = attrs.field(factory=dict)

    def add(self, event: Event) -> None:
        if event.outcome == DONE:
            self.done += 1
            self.bytes_in += event.bytes
            self.bytes_out += sum(output.bytes for output in event.outputs)
            self.kept += event.kept
            for note in event.notes:
                self.notes[note] = self.notes.get(note, 0) + 1
        elif event.outcome == UNCHANGED:
            self.skipped += 1
        else:
            self.failed += 1


Submitted = tuple[tuple[Input, Task], ...]
Running = Future[list[TaskResult]]


@attrs.define
class _Run:
    """The state of one run."""

    _batch: Batch
    _job: Job
    _manifest: Manifest
    _selection: Selection
    _placing: Placing | Replacing
    _on_event: OnEvent
    _passed_over: PassedOver
    _listing: Listing = attrs.field(init=False)
    _executor: Executor = attrs.field(init=False)
    _counts: _Counts = attrs.field(init=False, factory=_Counts)
    _started: float = attrs.field(init=False, factory=time.monotonic)
    _under_way: dict[Running, Submitted] = attrs.field(init=False, factory=dict)
    _finished: queue.SimpleQueue[Future[list[TaskResult]]] = attrs.field(
        init=False, factory=queue.SimpleQueue
    )
    _chunk: int = attrs.field(init=False)  # inputs of a task
    _missing: dict[str, Known] = attrs.field(init=False)  # failed before, and not found yet
    _unlisted: list[str] = attrs.field(init=False, factory=list)  # folders that cannot be listed

    def go(self, inputs: Iterator[Input], on_progress: OnProgress, stop: Callable[[], bool]) -> Summary:
        self._missing = dict(self._selection.failed)
        self._listing = Listing(inputs)
        interrupted = False
        with contextlib.ExitStack() as stack:
            stack.callback(self._listing.stop)
            try:
                stack.enter_context(_staging(self._batch.staging_folder, private=self._batch.in_place))
                self._executor = _executor(self._batch, self._job, self._listing)
                stack.callback(self._executor.stop)
                self._chunk = min(2 * self._job.at_once, self._executor.max_task_inputs)
                told_at = self._started
                while not (interrupted := stop()) and self._step():
                    if time.monotonic() >= told_at + _TICK_SECONDS:
                        on_progress(self._progress())
                        told_at = time.monotonic()
            except KeyboardInterrupt:
                interrupted = True
            if interrupted:
                with contextlib.suppress(KeyboardInterrupt):  # a second interrupt does not wait for this
                    self._finish_some()
            else:
                self._executor.close()
            if self._counts.done and self._job.staging_folder and not self._job.in_place:
                sync_folder(self._job.staging_folder)
        on_progress(self._progress())
        return Summary(**attrs.asdict(self._progress()), interrupted=interrupted)

    def _step(self) -> bool:
        """Choose, hand out and settle some inputs. Return False at the end."""
        self._refill()
        if not self._under_way:
            return not self._listing.ended
        seconds = _TICK_SECONDS if self._listing.ended else _LISTING_TICK_SECONDS
        self._collect(self._take_finished(seconds))
        return True

    def _take_finished(self, seconds: float) -> list[Running]:
        """Return the tasks that finished. Wait some seconds for the first of them.

        ``concurrent.futures.wait`` takes locks that a ``KeyboardInterrupt`` would leave locked.
        """
        finished = []
        with contextlib.suppress(queue.Empty):
            finished.append(self._finished.get(timeout=seconds))
            while True:
                finished.append(self._finished.get_nowait())
        return finished

    def _refill(self) -> None:
        """Hand out inputs until workers have enough of them."""
        room = self._executor.max_queued_tasks * self._chunk - self._inputs_under_way
        if room < self._chunk or self._listing.ended:
            return
        chosen: list[tuple[Input, Task]] = []
        broken: list[tuple[Input, TaskResult]] = []
        for _ in range(_CHOSEN_AT_ONCE):
            item = self._listing.take(wait=not (chosen or broken or self._under_way))
            if item is None:
                break
            self._missing.pop(item.key, None)
            task = self._selection.choose(item)
            if task is None:
                self._counts.skipped += 1
                self._counts.failed_before += item.key in self._selection.failed
            elif item.problem:
                event = Event(key=item.key, outcome=FAILED, bytes=item.size)
                broken.append((item, TaskResult(event.failed(SourceUnreachable(item.problem)))))
                if (folder := unlistable_folder(item.key)) is not None:
                    self._unlisted.append(folder)
            else:
                chosen.append((item, task))
            if len(chosen) == room:
                break
        self._settle(broken)
        self._hand_out(chosen)
        if self._listing.ended:
            self._forget_gone()

    def _hand_out(self, chosen: list[tuple[Input, Task]]) -> None:
        while chosen:
            size = self._chunk
            if self._listing.listed:  # smaller tasks at the end, so that all workers end at the same time
                size = max(1, min(size, self._left // (2 * self._executor.parallel)))
            self._submit(tuple(chosen[:size]))
            del chosen[:size]

    def _submit(self, chosen: Submitted) -> None:
        future = self._executor.submit(tuple(task for _, task in chosen))
        self._under_way[future] = chosen
        future.add_done_callback(self._finished.put)

    @property
    def _inputs_under_way(self) -> int:
        return sum(map(len, self._under_way.values()))

    @property
    def _left(self) -> int:
        """The number of inputs that were not handed out yet."""
        counts = self._counts
        settled = counts.done + counts.failed + counts.skipped
        return self._listing.found - settled - self._inputs_under_way

    def _collect(self, finished: Iterable[Running]) -> None:
        settled: list[tuple[Input, TaskResult]] = []
        for future in finished:
            submitted = self._under_way.pop(future)
            items = [item for item, _ in submitted]
            try:
                outcomes = future.result()
            except ConnectionError as error:
                raise TargetError(
                    f"The cluster is lost ({error}): start it again, and run the same batch with resume."
                ) from error
            except UnsupportedOperation:  # a worker differs from this machine
                raise
            except ImgsvcError as error:
                if len(submitted) > 1:  # one of them ended the worker
                    for one in submitted:
                        self._submit((one,))
                else:
                    event = Event(key=items[0].key, outcome=FAILED, bytes=items[0].size)
                    settled.append((items[0], TaskResult(event.failed(error))))
            else:
                settled += zip(items, outcomes, strict=True)
                self._chunk = inputs_per_task(self._job, outcomes, self._executor)
        self._settle(settled)

    def _settle(self, settled: list[tuple[Input, TaskResult]]) -> None:
        for event in self._placing.settle(settled) if settled else ():
            self._counts.add(event)
            self._on_event(event)

    def _finish_some(self) -> None:
        """Settle inputs that are nearly finished."""
        end = time.monotonic() + _FINISHING_SECONDS
        while self._under_way and (left := end - time.monotonic()) > 0:
            finished = self._take_finished(left)
            self._collect([future for future in finished if future.exception() is None])

    def _forget_gone(self) -> None:
        """Forget inputs that failed and no longer exist. Those below unlistable folders may exist."""
        unlisted = tuple(self._unlisted)
        gone = [known.id for key, known in self._missing.items() if not key.startswith(unlisted)]
        if gone:
            with self._manifest.change():
                self._manifest.delete_inputs(gone)

    def _progress(self) -> Progress:
        return Progress(
            **attrs.asdict(self._counts),
            total=self._listing.found,
            listed=self._listing.listed,
            seconds=time.monotonic() - self._started,
            passed_over=dict(self._passed_over),
        )


def inputs_per_task(job: Job, outcomes: list[TaskResult], executor: Executor) -> int:
    """Return how many inputs a worker does in the time of one task, by the speed of a finished task."""
    needed = sum(outcome.event.seconds for outcome in outcomes) / job.at_once
    wanted = int(executor.task_seconds * len(outcomes) / needed) if needed else executor.max_task_inputs
    return min(executor.max_task_inputs, max(2 * job.at_once, wanted))
