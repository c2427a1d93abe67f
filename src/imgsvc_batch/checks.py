"""Refuse batches that cannot work, before anything is written. A dry run makes the same checks."""

from __future__ import annotations

import errno
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from imgsvc_batch.arguments import Batch
from imgsvc_batch.inputs import Input, PassedOver, find
from imgsvc_batch.manifest import Manifest
from imgsvc_batch.places import split_pattern
from imgsvc_batch.work import Job
from imgsvc_core import TargetError
from imgsvc_core.errors import invalid, os_reason
from imgsvc_core.sources import is_url, missing_package, open_filesystem, shown_url
from imgsvc_core.targets import store_of

Mode = Literal["all", "resume", "retry"]
"""The inputs that a run processes: ``all`` that are new, changed or failed; with ``resume`` only those not
tried yet, with ``retry`` only those that failed.
"""


def mode_of(*, resume: bool, retry: bool) -> Mode:
    """Return the mode of a run. Raise `SpecError` if both are asked for."""
    if resume and retry:
        message = "Batch 'retry' parameter must be given without 'resume', got both: do one after the other"
        raise invalid("retry", message)
    return "resume" if resume else "retry" if retry else "all"


def prepare(batch: Batch, passed_over: PassedOver | None = None) -> tuple[Job, str, Iterator[Input]]:
    """Return the job, its fingerprint and the inputs, after finding the first input.

    The inputs count the files that are passed over as they are found.

    Raise the errors that `run` raises before it opens the manifest.
    """
    job = batch.read_job()
    left_out = "" if batch.in_place else batch.target
    if batch.in_place and is_url(batch.target):
        _check_store(batch.target)
    inputs = _peek(find(batch.source, target=left_out, passed_over=passed_over, in_place=batch.in_place))
    if not batch.in_place:
        check_target(batch.target)
    check_manifest(batch.manifest_path)
    return job, batch.fingerprint(job), inputs


def check_same_batch(manifest: Manifest, batch: Batch, fingerprint: str, mode: Mode) -> None:
    """Raise `SpecError` if the batch to resume or retry is another one, for example with other specs."""
    if mode != "all" and not manifest.has_run(batch.source, fingerprint):
        message = (
            "The source, specs, watermarks, names or target have changed since the last run of manifest "
            f"'{manifest.path}': run without {mode} to process everything again"
        )
        raise invalid(mode, message)


def _peek(inputs: Iterator[Input]) -> Iterator[Input]:
    """Find the first input, to refuse a source that cannot be listed before anything is made."""
    first = next(inputs, None)
    return inputs if first is None else itertools.chain((first,), inputs)


def check_target(target: str) -> None:
    """Raise `TargetError` if the target cannot be made, and `MissingDependency` if its package is missing."""
    try:
        if is_url(target):
            open_filesystem(target)
        elif not os.path.lexists(target):
            _write_into(Path(target).parent)
        elif not os.path.isdir(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    except ImportError as error:
        raise missing_package("Target", target, error) from error
    except (OSError, ValueError) as error:
        raise TargetError(f"Target '{shown_url(target)}' cannot be made: {os_reason(error)}.") from error


def _check_store(source: str) -> None:
    """Raise `TargetError` unless objects of the source can be replaced in one step."""
    try:
        fs, _ = open_filesystem(split_pattern(source)[0])
    except ImportError as error:
        raise missing_package("Target", source, error) from error
    if store_of(fs) is None:
        raise TargetError(
            f"Source '{shown_url(source)}' cannot be replaced in one step: in place is for folders, and for "
            "objects of s3, gs, az and oss."
        )


def check_manifest(path: Path) -> None:
    """Raise `TargetError` if a manifest cannot be written."""
    try:
        _write_into(path.parent)
    except OSError as error:
        raise TargetError(f"Manifest '{path}' cannot be opened: {os_reason(error)}.") from error


def _write_into(folder: Path) -> None:
    """Write an unnamed file into a folder. If the folder does not exist, write into its nearest parent."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    with tempfile.TemporaryFile(dir=there) as file:
        file.write(b"1")
