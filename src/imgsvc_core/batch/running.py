"""A batch from its first input to its last."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import attrs

from imgsvc_core.batch.events import Event, Progress, Summary
from imgsvc_core.batch.inputs import Input, find
from imgsvc_core.batch.manifest import DONE, Manifest
from imgsvc_core.batch.naming import Template
from imgsvc_core.batch.work import Job, Task, clear_unfinished, digest_of
from imgsvc_core.errors import ImgsvcError, Problem, SpecError, TargetError
from imgsvc_core.limits import Limits
from imgsvc_core.sources import is_url
from imgsvc_core.spec import Spec, parse

_LISTED_AT_ONCE = 500
_TICK_SECONDS = 0.2
_FINISHING_SECONDS = 1.0

OnEvent = Callable[[Event], None]
OnProgress = Callable[[Progress], None]


class Hands(Protocol):
    """Whoever does the work: takes ``chunk`` inputs a task, and ``in_flight`` inputs at a time."""

    chunk: int
    in_flight: int

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[Event]]:
        """Work on some inputs."""

    def close(self) -> None:
        """End when all is done."""

    def stop(self) -> None:
        """End now."""


def _variants(value: Mapping[str, Any]) -> dict[str, Spec]:
    problems: list[Problem] = []
    parsed: dict[str, Spec] = {}
    for name, spec in value.items():
        try:
            parsed[name] = parse(spec)
        except SpecError as error:
            problems += [
                attrs.evolve(problem, path=f"{name}.{problem.path}".strip("."), message=problem.message)
                for problem in error.problems
            ]
    if not value:
        problems.append(Problem("variants", "Batch 'variants' parameter must name one spec or more"))
    if problems:
        raise SpecError(problems)
    return parsed


@attrs.frozen(kw_only=True)
class Batch:
    """What is to be done, checked before anything is.

    Attributes:
        source: a folder, a pattern with wildcards, a file, or an fsspec URL of one.
        target: a folder or an fsspec URL of one.
        variants: specs by name; each input gives one result for each.
        template: how results are named.
        manifest: the file that remembers; in the target where nothing is said, or beside for a URL.
        workers: processes on this machine, one for each core where nothing is said.
        cluster: address of a Dask scheduler, to work there instead.
        limits: how much work one picture may cause.
        watermarks: pictures by the ids that specs use.
        overwrite: whether files that are not from this batch may be replaced.
        force: whether inputs are done again that have not changed.
    """

    source: str = attrs.field(converter=str)
    target: str = attrs.field(converter=str)
    variants: Mapping[str, Spec] = attrs.field(converter=_variants)
    template: Template | None = None
    manifest: Path | None = None
    workers: int | None = None
    cluster: str | None = None
    limits: Limits = attrs.field(factory=Limits)
    watermarks: Mapping[str, str] = attrs.field(factory=dict)
    overwrite: bool = False
    force: bool = False

    def __attrs_post_init__(self) -> None:
        self.naming.check(len(self.variants))

    @property
    def naming(self) -> Template:
        """The template, or the usual one."""
        return self.template or Template.usual(len(self.variants))

    @property
    def manifest_path(self) -> Path:
        """Where the manifest is."""
        if self.manifest is not None:
            return self.manifest
        return (
            Path("imgsvc-batch.sqlite") if is_url(self.target) else Path(self.target) / ".imgsvc-batch.sqlite"
        )

    @property
    def job(self) -> Job:
        """The work as workers see it."""
        return Job(
            variants=self.variants,
            target=self.target,
            template=self.naming,
            limits=self.limits,
            watermarks=self.watermarks,
            token=secrets.token_hex(4),
        )

    def hands(self, job: Job) -> Hands:
        """Whoever does the work."""
        if self.cluster is not None:
            from imgsvc_core.batch.cluster import ClusterHands

            return ClusterHands(job, self.cluster)
        from imgsvc_core.batch.local import LocalHands

        return LocalHands(job, self.workers)


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
        resume: go on with what an earlier run has left, without looking for inputs again.
        retry: work on nothing but what failed before.
        on_event: told what became of each input.
        on_progress: told where the batch stands, a few times a second.
        options: see `Batch`.

    An interrupt (``KeyboardInterrupt``) ends it cleanly, and says so in the summary.

    Raises:
        SpecError: a spec or a template is wrong.
        SourceUnreachable: the source cannot be listed.
        TargetError: the target or the manifest cannot be written.
        ImgsvcError: the cluster cannot be used.
    """
    batch = Batch(source=source, target=target, variants=variants, **options)
    _prepare_target(batch.target)
    with Manifest(batch.manifest_path) as manifest:
        manifest.lock()
        return _Run(batch, manifest, on_event, on_progress).go(resume=resume, retry=retry)


def preview(batch: Batch) -> Iterator[tuple[Input, bool]]:
    """Every input, and whether it would be worked on; nothing is written."""
    known = batch.manifest_path.exists()
    work = digest_of(batch.job)
    with contextlib.ExitStack() as stack:
        manifest = stack.enter_context(Manifest(batch.manifest_path)) if known else None
        for item in find(batch.source, beside=batch.target):
            fresh = manifest is not None and manifest.is_done(item, work)
            yield item, batch.force or not fresh


class _Run:
    """One run: finds inputs, hands them out, remembers what became of them."""

    def __init__(
        self, batch: Batch, manifest: Manifest, on_event: OnEvent | None, on_progress: OnProgress | None
    ) -> None:
        self._batch = batch
        self._job = batch.job
        self._manifest = manifest
        self._on_event = on_event or (lambda _: None)
        self._on_progress = on_progress or (lambda _: None)
        self._started = time.monotonic()
        self._total = self._done = self._failed = self._skipped = 0
        self._bytes_in = self._bytes_out = 0
        self._listed = False
        self._under_way: dict[Future[list[Event]], tuple[Task, ...]] = {}

    def go(self, *, resume: bool, retry: bool) -> Summary:
        manifest, batch = self._manifest, self._batch
        manifest.clear_under_way()
        number = manifest.begin({"source": batch.source, "target": batch.target})
        if resume or retry:
            self._total = manifest.wait_again(number, failed=retry)
            listing: Iterator[Input] = iter(())
        else:
            listing = find(batch.source, beside=batch.target)
        hands = batch.hands(self._job)
        interrupted = False
        try:
            while self._step(listing, hands, number):
                self._on_progress(self._progress())
            hands.close()
        except KeyboardInterrupt:
            interrupted = True
            self._finish_some(hands)
        except BaseException:
            hands.stop()
            raise
        self._on_progress(self._progress())
        return Summary(**attrs.asdict(self._progress()), interrupted=interrupted)

    def _step(self, listing: Iterator[Input], hands: Hands, number: int) -> bool:
        """List, hand out, and settle a little; whether there is more to do."""
        if not self._listed:
            found = list(islice(listing, _LISTED_AT_ONCE))
            self._listed = len(found) < _LISTED_AT_ONCE
            self._total += len(found)
            work = digest_of(self._job)
            self._skipped += self._manifest.note(found, work, number, force=self._batch.force)
        room = hands.in_flight - sum(map(len, self._under_way.values()))
        if room >= hands.chunk:
            self._hand_out(hands, number, room)
        if not self._under_way:
            return not self._listed
        finished, _ = wait(self._under_way, _TICK_SECONDS if self._listed else 0, FIRST_COMPLETED)
        self._settle(finished, hands)
        return True

    def _hand_out(self, hands: Hands, number: int, room: int) -> None:
        waiting = self._manifest.waiting(number, most=room)
        clear_unfinished(self._batch.target, [item.key for item, again in waiting if again])
        tasks = [
            Task(
                key=item.key,
                location=item.location,
                size=item.size,
                owned=self._manifest.owned(item.key),
                replace=again or self._batch.overwrite,
            )
            for item, again in waiting
        ]
        for start in range(0, len(tasks), hands.chunk):
            chunk = tuple(tasks[start : start + hands.chunk])
            self._under_way[hands.submit(chunk)] = chunk

    def _settle(self, finished: set[Future[list[Event]]], hands: Hands) -> None:
        events: list[Event] = []
        for future in finished:
            tasks = self._under_way.pop(future)
            try:
                events += future.result()
            except ImgsvcError as error:
                if len(tasks) > 1:  # one of them cost the worker its life: which is found out one by one
                    self._under_way.update({hands.submit((task,)): (task,) for task in tasks})
                    continue
                clear_unfinished(self._batch.target, [tasks[0].key])
                events.append(_lost(tasks[0], error))
            except ConnectionError as error:
                raise TargetError(
                    f"The cluster is lost ({error}): start it again, and go on with --resume."
                ) from error
        for event in self._manifest.settle(events):
            self._count(event)
            self._on_event(event)

    def _finish_some(self, hands: Hands) -> None:
        """Let what is nearly done end, and stop the rest."""
        finished, _ = wait(self._under_way, _FINISHING_SECONDS)
        self._settle({future for future in finished if future.exception() is None}, hands)
        left = [task.key for tasks in self._under_way.values() for task in tasks]
        hands.stop()
        clear_unfinished(self._batch.target, left)

    def _count(self, event: Event) -> None:
        if event.outcome == DONE:
            self._done += 1
            self._bytes_in += event.bytes
            self._bytes_out += sum(output.bytes for output in event.outputs)
        else:
            self._failed += 1

    def _progress(self) -> Progress:
        return Progress(
            total=self._total,
            listed=self._listed,
            done=self._done,
            failed=self._failed,
            skipped=self._skipped,
            bytes_in=self._bytes_in,
            bytes_out=self._bytes_out,
            seconds=time.monotonic() - self._started,
        )


def _lost(task: Task, error: ImgsvcError) -> Event:
    return Event(key=task.key, outcome="failed", bytes=task.size, error=error.slug, message=error.message)


def _prepare_target(target: str) -> None:
    if is_url(target):
        return
    try:
        Path(target).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TargetError(f"Target '{target}' cannot be made: {error.strerror or error}.") from error
