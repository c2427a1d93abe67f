"""What a batch would do, without doing it."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import attrs

from imgsvc_batch.inputs import Input, check, find, find_again
from imgsvc_batch.manifest import Manifest
from imgsvc_batch.planning import Batch
from imgsvc_batch.running import folder_of, settled_states
from imgsvc_batch.starting import (
    check_asked,
    check_manifest,
    check_same,
    check_target,
    is_listed,
    run_before,
)
from imgsvc_batch.work import Job
from imgsvc_batch.writing import check_path, is_claimed, named_alike
from imgsvc_core.errors import TargetError

_LONGEST_NAME_BYTES = 255


def preview(batch: Batch, *, resume: bool = False, retry: bool = False) -> Iterator[tuple[Input, bool]]:
    """Every input, and whether it would be worked on; nothing is written.

    Inputs whose results could not have their names bear the ``problem``, as far as names are known before the
    pictures are read. Raises what `run` raises.
    """
    check_asked(resume=resume, retry=retry)
    job = batch.job()
    known = batch.manifest_path.exists()
    if not known:
        check(batch.source)
    check_target(batch.target)
    check_manifest(batch.manifest_path)
    with contextlib.ExitStack() as stack:
        manifest = stack.enter_context(Manifest(batch.manifest_path, reading=True)) if known else None
        taken: set[int] = set()
        for item, wanted in _found(batch, job, manifest, resume=resume, retry=retry):
            problem = item.problem or _problem(batch, job, manifest, item, taken, wanted=wanted)
            yield attrs.evolve(item, problem=problem), wanted


def _found(
    batch: Batch, job: Job, manifest: Manifest | None, *, resume: bool, retry: bool
) -> Iterator[tuple[Input, bool]]:
    work, states = batch.work_of(job), settled_states(batch, resume=resume)
    if manifest is not None and (resume or retry):
        check_same(manifest, batch, job, asked="retry" if retry else "resume")
        if retry or is_listed(manifest, batch, job):
            for item in manifest.left(batch.source, work, failed=retry):
                yield item, True
            if retry:
                for item in find_again(batch.source, manifest.unlisted(batch.source), beside=batch.target):
                    yield item, not manifest.is_settled(item, work)
            return
    after = 0
    if manifest is not None and batch.force:
        after = run_before(manifest, batch, job, goes_on=resume)
    for item in find(batch.source, beside=batch.target):
        settled = manifest is not None and manifest.is_settled(
            item, work, states, after=after, folder=folder_of(batch)
        )
        yield item, not settled and not retry


def _problem(
    batch: Batch, job: Job, manifest: Manifest | None, item: Input, taken: set[int], *, wanted: bool
) -> str:
    """Why a result cannot have its name, which is ``taken`` from here on."""
    paths = batch.foreseen(item.key)
    marks = {hash(path) for path in paths}
    collides = not marks.isdisjoint(taken)
    if batch.overwrite and manifest is not None:
        collides |= bool(manifest.taken(batch.source, item.key, paths))
    taken |= marks
    if not wanted:
        return ""
    folder, owned = folder_of(batch), manifest.owned(item) if manifest is not None else frozenset()
    for path in paths:
        if collides:
            return named_alike(path).message
        try:
            check_path(batch.target, path, job.reserved)
        except TargetError as error:
            return error.message
        if folder is None:
            continue
        place = folder / path
        replaces = (
            batch.overwrite
            or path in owned
            or is_claimed(batch.target, path, location=item.location, token=job.token)
        )
        hindrance = _hindrance(place, replaces=replaces)
        if hindrance is not None:
            return f"Target '{place}' cannot be written: {os.strerror(hindrance)}."
        if not replaces and os.path.lexists(place):
            known = manifest is not None and manifest.may_be_alike(item, batch.work_of(job), path)
            if known and place.is_file():
                continue  # only a run finds out
            return f"Target '{place}' exists already, and is not from this input."
    return ""


def _hindrance(place: Path, *, replaces: bool) -> int | None:
    """The error of the system where no file can be put into a place, or ``replace`` what is there."""
    if any(len(os.fsencode(part)) > _LONGEST_NAME_BYTES for part in place.parts):
        return errno.ENAMETOOLONG
    if not next(folder for folder in place.parents if os.path.lexists(folder)).is_dir():
        return errno.ENOTDIR
    return errno.EISDIR if replaces and place.is_dir() and not place.is_symlink() else None
