"""A batch from its first input to its last."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import Any

import attrs

from imgsvc_batch.events import DONE, FAILED, UNCHANGED, Event, Progress, Summary, failure
from imgsvc_batch.hands import Hands
from imgsvc_batch.inputs import Input, check, find, find_again
from imgsvc_batch.journal import RESUMED, RETRIED, Journal
from imgsvc_batch.listing import Listing
from imgsvc_batch.manifest import Manifest
from imgsvc_batch.planning import Batch
from imgsvc_batch.starting import (
    check_asked,
    check_manifest,
    check_same,
    is_listed,
    prepare_target,
    run_before,
)
from imgsvc_batch.work import Job, Task
from imgsvc_batch.writing import clear_unfinished, release
from imgsvc_core.errors import (
    ImgsvcError,
    SourceUnreachable,
    TargetError,
    UnsupportedOperation,
    WorkerDied,
)
from imgsvc_core.sources import is_url
from imgsvc_core.spec import Spec

_TICK_SECONDS = 0.2
_LISTING_TICK_SECONDS = 0.02
_FINISHING_SECONDS = 1.0
_SHARES = 2

OnEvent = Callable[[Event], None]
OnProgress = Callable[[Progress], None]


def run(
    source: str | Path,
    target: str | Path,
    variants: Mapping[str, Spec | Mapping[str, Any]],
    *,
    resume: bool = False,
    retry: bool = False,
    on_event: OnEvent | None = None,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> Summary:
    """Process many pictures.

    Args:
        source: a folder, a pattern with wildcards, a file, or an fsspec URL of one.
        target: a folder or an fsspec URL of one.
        variants: specs by name.
        resume: go on with what an interrupted run of the same work has left, and leave what failed.
        retry: work on nothing but what failed in a run of the same work.
        on_event: told what became of each input.
        on_progress: told where the batch stands, a few times a second.
        options: see `Batch`.

    An interrupt ends it cleanly, and says so in the summary; a second one is a ``KeyboardInterrupt`` at once.

    Raises:
        SpecError: a spec or a template is wrong, or there is other work to resume.
        SourceError: the source cannot be listed, or a watermark cannot be read.
        LimitExceeded: a watermark is too large.
        TargetError: the target or the manifest cannot be written.
        ImgsvcError: the cluster cannot be used.
    """
    check_asked(resume=resume, retry=retry)
    batch = Batch(source=source, target=target, variants=variants, **options)
    job = batch.job()
    if not batch.manifest_path.exists():
        check(batch.source)
    prepare_target(batch.target)
    check_manifest(batch.manifest_path)
    with Manifest(batch.manifest_path) as manifest:
        manifest.lock()
        if resume or retry:
            check_same(manifest, batch, job, asked="retry" if retry else "resume")
        return _Run(batch, job, manifest, on_event, on_progress).go(resume=resume, retry=retry)


class _Run:
    """One run: finds inputs, hands them out, remembers what became of them."""

    def __init__(
        self,
        batch: Batch,
        job: Job,
        manifest: Manifest,
        on_event: OnEvent | None,
        on_progress: OnProgress | None,
    ) -> None:
        self._batch = batch
        self._job = job
        self._work = batch.work_of(job)
        self._manifest = manifest
        self._journal: Journal
        self._on_event = on_event or (lambda _: None)
        self._on_progress = on_progress or (lambda _: None)
        self._started = time.monotonic()
        self._total = self._done = self._failed = self._skipped = 0
        self._bytes_in = self._bytes_out = self._forgotten = 0
        self._settled = settled_states(batch, resume=False)
        self._settled_after = 0  # the run of this number
        self._listing: Listing | None = None
        self._folders: tuple[str, ...] = ()  # that are listed again
        self._under_way: dict[Future[list[Event]], tuple[Task, ...]] = {}
        self._suspects: deque[Task] = deque()
        self._full = ""  # why the manifest can take nothing more
        self._alone: Task | None = None
        self._stop = threading.Event()

    def go(self, *, resume: bool, retry: bool) -> Summary:
        all_known = self._begin(resume=resume, retry=retry)
        hands: Hands | None = None
        interrupted = ended = False
        try:
            hands = self._batch.hands(self._job)
            clear_unfinished(self._batch.target, self._job.token, claims=False)
            with interrupts() as self._stop:
                self._look_for_inputs(all_known=all_known, resume=resume, retry=retry)
                while not self._stop.is_set() and self._step(hands):
                    self._on_progress(self._progress())
                interrupted = self._stop.is_set()
                if interrupted:
                    self._finish_some(hands)
                else:
                    hands.close()
                    ended = True
        except BaseException as error:
            if hands is not None:
                hands.stop()
            if not isinstance(error, KeyboardInterrupt):
                raise
            interrupted = True
        finally:
            if self._listing is not None:
                self._listing.stop()
            nothing_left = ended and not self._journal.has_left()
            clear_unfinished(self._batch.target, self._job.token, claims=nothing_left)
        self._on_progress(self._progress())
        progress = attrs.asdict(self._progress())
        return Summary(**progress, interrupted=interrupted, forgotten=self._forgotten)

    def _begin(self, *, resume: bool, retry: bool) -> bool:
        """Remember that this run began, so that it can be resumed; whether all of its inputs are known."""
        batch, manifest = self._batch, self._manifest
        listed = (resume or retry) and is_listed(manifest, batch, self._job)
        all_known = retry or listed
        before = run_before(manifest, batch, self._job, goes_on=resume or retry)
        if batch.force:
            self._settled_after = before
        settings = {"target": batch.target, "listed": "yes" if listed else "no", "before": str(before)}
        self._journal = Journal(
            manifest,
            source=batch.source,
            work=self._work,
            settings=settings,
            takes_up=RETRIED if retry else RESUMED if all_known else "",
        )
        return all_known

    def _look_for_inputs(self, *, all_known: bool, resume: bool, retry: bool) -> None:
        """Take up what is left, and look for inputs unless all of them are known."""
        batch = self._batch
        if not all_known:
            self._settled = settled_states(batch, resume=resume)
            self._listing = Listing(find(batch.source, beside=batch.target))
            return
        self._total = self._journal.waiting_count()
        if retry and (folders := self._manifest.unlisted(batch.source)):
            self._folders = tuple(folders)
            self._listing = Listing(find_again(batch.source, folders, beside=batch.target))

    def _step(self, hands: Hands) -> bool:
        """List, hand out, and settle a little; whether there is more to do."""
        if self._listing is not None:
            self._take_up(self._listing)
        room = hands.in_flight - self._inputs_under_way
        if self._suspects:
            self._try_alone(hands)
        elif room >= hands.chunk:
            self._hand_out(hands, room)
        if not self._under_way:
            return self._listing is not None
        patience = _TICK_SECONDS if self._listing is None else _LISTING_TICK_SECONDS
        finished, _ = wait(self._under_way, patience, FIRST_COMPLETED)
        self._settle(finished, hands)
        return True

    def _take_up(self, listing: Listing) -> None:
        found = listing.take(0 if self._under_way else _TICK_SECONDS)
        if listing.ended:
            self._finish_listing()
            self._listing = None
        if self._folders:
            found = [item for item in found if not self._journal.is_taken_up(item)]
        self._total += len(found)
        try:
            if not self._full:
                folder = folder_of(self._batch)
                self._skipped += self._journal.note(
                    found, settled=self._settled, after=self._settled_after, folder=folder
                )
        except TargetError as error:
            self._begin_no_more(error)
        if self._full:
            self._tell_without_note(found)
            return
        broken = [item for item in found if item.problem]
        self._remember([failure(item.key, item.size, _UNREADABLE, item.problem) for item in broken], {})

    def _finish_listing(self) -> None:
        if self._full:  # inputs are missing in the manifest
            return
        try:
            if self._folders:
                self._journal.finish_folders(self._folders)
            else:
                self._journal.finish_listing()
        except TargetError as error:
            self._begin_no_more(error)

    def _begin_no_more(self, error: TargetError) -> None:
        """Nobody would remember it."""
        self._full = error.message
        self._tell_without_note(self._journal.still_waiting())

    def _tell_without_note(self, items: Iterable[Input]) -> None:
        for item in items:
            if self._stop.is_set():
                return
            if self._journal.is_settled(item, self._settled, after=self._settled_after):
                self._skipped += 1
                continue
            self._forgotten += 1
            self._tell(failure(item.key, item.size, TargetError.slug, item.problem or self._full))

    def _waiting(self, room: int) -> list[Task]:
        if self._full:
            return []
        try:
            tasks = self._journal.waiting(most=room)
        except TargetError as error:
            self._begin_no_more(error)
            return []
        return [self._restrained(task) for task in tasks] if self._batch.overwrite else tasks

    def _restrained(self, task: Task) -> Task:
        """Leave to replace files is none to replace those of other inputs of the source."""
        batch = self._batch
        taken = self._manifest.taken(batch.source, task.key, batch.foreseen(task.key))
        return attrs.evolve(task, taken=taken)

    def _hand_out(self, hands: Hands, room: int) -> None:
        tasks = self._waiting(room)
        left = len(tasks)
        if self._listing is None:
            left = self._total - self._done - self._failed - self._skipped - self._inputs_under_way
        while tasks:
            # Smaller ones to the end, so that all workers end at the same time.
            size = max(1, min(hands.chunk, left // (_SHARES * hands.parallel)))
            self._submit(hands, tuple(tasks[:size]))
            del tasks[:size]
            left -= size

    @property
    def _inputs_under_way(self) -> int:
        return sum(map(len, self._under_way.values()))

    def _submit(self, hands: Hands, tasks: tuple[Task, ...]) -> None:
        self._under_way[hands.submit(tasks)] = tasks

    def _try_alone(self, hands: Hands) -> None:
        """Find out which input of a task ends workers; where that cannot be told, with nothing beside it."""
        while self._suspects and (hands.culprit or not self._under_way):
            self._alone = self._suspects.popleft()
            self._submit(hands, (self._alone,))

    def _settle(self, finished: set[Future[list[Event]]], hands: Hands) -> None:
        events: list[Event] = []
        locations: dict[str, str] = {}
        for future in finished:
            tasks = self._under_way.pop(future)
            locations |= {task.key: task.location for task in tasks}
            try:
                told = future.result()
                events += told
                keys = {event.key for event in told}
                if left := tuple(task for task in tasks if task.key not in keys):
                    self._submit(hands, left)
            except ConnectionError as error:
                raise TargetError(
                    f"The cluster is lost ({error}): start it again, and go on with --resume."
                ) from error
            except UnsupportedOperation:  # a worker that is not like this machine
                raise
            except ImgsvcError as error:
                if isinstance(error, WorkerDied) and self._stop.is_set():
                    continue  # what told this process to stop may have ended that one
                if len(tasks) > 1 or not (hands.culprit or tasks[0] is self._alone):
                    self._suspects += tasks
                else:
                    events.append(failure(tasks[0].key, tasks[0].size, error.slug, error.message))
        self._remember(events, locations)

    def _remember(self, events: list[Event], locations: Mapping[str, str]) -> None:
        if not events:
            return
        try:
            settled, reopened = self._journal.settle(events, overwrite=self._batch.overwrite)
        except TargetError:  # they are done again with --resume
            settled, reopened, remembered = events, 0, False
            self._forgotten += len(events)
        else:
            remembered = True
        self._total += reopened
        for event in settled:
            for output in event.outputs if remembered else ():
                origin = {"location": locations[event.key], "token": self._job.token}
                release(self._batch.target, output.path, **origin)
            self._tell(event)

    def _tell(self, event: Event) -> None:
        self._count(event)
        self._on_event(event)

    def _finish_some(self, hands: Hands) -> None:
        """Let what is nearly done end, and stop the rest."""
        finished, _ = wait(self._under_way, _FINISHING_SECONDS)
        self._settle({future for future in finished if future.exception() is None}, hands)
        hands.stop()

    def _count(self, event: Event) -> None:
        if event.outcome == DONE:
            self._done += 1
            self._bytes_in += event.bytes
            self._bytes_out += sum(output.bytes for output in event.outputs)
        elif event.outcome == UNCHANGED:
            self._skipped += 1
        else:
            self._failed += 1

    def _progress(self) -> Progress:
        return Progress(
            total=self._total,
            listed=self._listing is None,
            done=self._done,
            failed=self._failed,
            skipped=self._skipped,
            bytes_in=self._bytes_in,
            bytes_out=self._bytes_out,
            seconds=time.monotonic() - self._started,
        )


_UNREADABLE = SourceUnreachable.slug


def settled_states(batch: Batch, *, resume: bool) -> tuple[str, ...]:
    """The states in which an input that has not changed stays as it is."""
    if resume:
        return DONE, FAILED
    return () if batch.force else (DONE,)


def folder_of(batch: Batch) -> Path | None:
    """Where results can be looked for in no time."""
    return None if is_url(batch.target) else Path(batch.target)


@contextlib.contextmanager
def interrupts() -> Iterator[threading.Event]:
    """Take an interrupt as the wish to stop, a second as the order; unless that is another's to decide."""
    stop = threading.Event()

    def wish(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not ours:
        yield stop
        return
    signal.signal(signal.SIGINT, wish)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
