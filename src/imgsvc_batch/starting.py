"""What has to hold before a batch begins: its target can be written, and it is the one to go on with."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from imgsvc_batch.manifest import Manifest
from imgsvc_batch.manifest_file import FULL, room_to_open
from imgsvc_batch.planning import Batch
from imgsvc_batch.work import Job
from imgsvc_core.errors import Problem, SpecError, TargetError
from imgsvc_core.sources import is_url


def check_asked(*, resume: bool, retry: bool) -> None:
    """Raise `SpecError` for two ways at once to go on."""
    if resume and retry:
        message = "Batch 'retry' parameter must be given without 'resume', got both: do one after the other"
        raise SpecError([Problem("retry", message)])


def check_same(manifest: Manifest, batch: Batch, job: Job, *, asked: str) -> None:
    """Raise `SpecError` where a manifest knows others, and nothing of this source or this work."""
    if manifest.setting("work") is None or _is_last(manifest, batch, job):
        return
    if not manifest.knows(batch.source, batch.work_of(job)):
        message = (
            f"Batch '{asked}' parameter must be given with the source, target, specs and name as before, "
            f"got others for manifest '{manifest.path}': do all with neither --resume nor --retry"
        )
        raise SpecError([Problem(asked, message)])


def is_listed(manifest: Manifest, batch: Batch, job: Job) -> bool:
    """Whether the last run was of the same source and work, and all inputs are known."""
    return _is_last(manifest, batch, job) and manifest.setting("listed") == "yes"


def run_before(manifest: Manifest, batch: Batch, job: Job, *, goes_on: bool) -> int:
    """The number of the run before this one, or before the one that this goes on with."""
    goes_on = goes_on and _is_last(manifest, batch, job)
    return int((manifest.setting("before") if goes_on else None) or manifest.setting("run") or 0)


def _is_last(manifest: Manifest, batch: Batch, job: Job) -> bool:
    last = manifest.setting("source"), manifest.setting("work")
    return last == (batch.source, batch.work_of(job))


def prepare_target(target: str) -> None:
    """Make the folder of the results; `TargetError` where that cannot be, or the store is unknown."""
    try:
        if is_url(target):
            _open(target)
        else:
            Path(target).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError, ImportError) as error:
        raise _cannot_be_made(target, error) from error


def check_target(target: str) -> None:
    """Raise `TargetError` where `prepare_target` would, and make nothing."""
    try:
        if is_url(target):
            _open(target)
        else:
            place = Path(target)
            if place.exists() and not place.is_dir():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            if not place.exists():
                _try(place.parent)
    except (OSError, ValueError, ImportError) as error:
        raise _cannot_be_made(target, error) from error


def check_manifest(path: Path) -> None:
    """Raise `TargetError` where a manifest could not be written for its folder, and make nothing."""
    try:
        _try(path.parent, room_to_open(path))
    except OSError as error:
        reason = FULL if error.errno == errno.ENOSPC else error.strerror
        raise TargetError(f"Manifest '{path}' cannot be opened: {reason}.") from error


def _open(url: str) -> None:
    import fsspec

    fsspec.core.url_to_fs(url)


def _try(folder: Path, size: int = 0) -> None:
    """Make a file that has no name, where the system knows such, in what there is of a folder."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    with tempfile.TemporaryFile(dir=there) as file:
        file.write(bytes(size))
        file.flush()


def _cannot_be_made(target: str, error: Exception) -> TargetError:
    reason = getattr(error, "strerror", None) or str(error)
    return TargetError(f"Target '{target}' cannot be made: {reason}.")
