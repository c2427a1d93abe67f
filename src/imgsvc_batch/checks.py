"""Refuse what cannot work before anything is written. A dry run refuses the same."""

from __future__ import annotations

import errno
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from imgsvc_batch.arguments import Batch
from imgsvc_batch.inputs import Input, find
from imgsvc_batch.manifest import Manifest
from imgsvc_batch.work import Job
from imgsvc_core import Problem, SpecError, TargetError
from imgsvc_core.errors import os_reason
from imgsvc_core.targets.io import is_url, missing_package, open_filesystem

Mode = Literal["all", "resume", "retry"]
"""Process what is new, has changed or failed; only what was not tried yet; only what failed."""


def mode_of(*, resume: bool, retry: bool) -> Mode:
    """Return the mode of a run. `SpecError` for both at once."""
    if resume and retry:
        message = "Batch 'retry' parameter must be given without 'resume', got both: do one after the other"
        raise SpecError([Problem("retry", message)])
    return "resume" if resume else "retry" if retry else "all"


def prepare(batch: Batch) -> tuple[Job, str, Iterator[Input]]:
    """Return the job, its fingerprint and the inputs, of which the first is found.

    Raises what `run` raises before it opens the manifest.
    """
    job = batch.read_job()
    inputs = _peek(find(batch.source, target=batch.target))
    check_target(batch.target)
    check_manifest(batch.manifest_path)
    return job, batch.fingerprint(job), inputs


def check_same_batch(manifest: Manifest, batch: Batch, fingerprint: str, mode: Mode) -> None:
    """Raise `SpecError` if there is another batch to resume or to retry, as after a change of the specs."""
    if mode != "all" and not manifest.has_run(batch.source, fingerprint):
        message = (
            "The source, specs, watermarks, names or target have changed since the last run of manifest "
            f"'{manifest.path}': run without {mode} to process everything again"
        )
        raise SpecError([Problem(mode, message)])


def _peek(inputs: Iterator[Input]) -> Iterator[Input]:
    """Find the first input, so that a source which cannot be listed is refused before anything is made."""
    first = next(inputs, None)
    return inputs if first is None else itertools.chain((first,), inputs)


def check_target(target: str) -> None:
    """Raise `TargetError` if the target cannot be made, `MissingDependency` if that needs a package."""
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
        raise TargetError(f"Target '{target}' cannot be made: {os_reason(error)}.") from error


def check_manifest(path: Path) -> None:
    """Raise `TargetError` if a manifest cannot be written."""
    try:
        _write_into(path.parent)
    except OSError as error:
        raise TargetError(f"Manifest '{path}' cannot be opened: {os_reason(error)}.") from error


def _write_into(folder: Path) -> None:
    """Write a file without a name into a folder, or into the folder that it would be made in."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    with tempfile.TemporaryFile(dir=there) as file:
        file.write(b"1")
