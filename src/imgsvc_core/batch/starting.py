"""What has to hold before a batch begins: its target can be written, and it is the one to go on with."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from imgsvc_core.batch.manifest import Manifest
from imgsvc_core.batch.planning import Batch
from imgsvc_core.batch.work import Job
from imgsvc_core.errors import Problem, SpecError, TargetError
from imgsvc_core.sources import is_url


def check_same(manifest: Manifest, batch: Batch, job: Job) -> None:
    """Raise `SpecError` where the last run of a manifest was of another source or other work."""
    before = manifest.setting("source"), manifest.setting("work")
    if before not in ((None, None), (batch.source, batch.work_of(job))):
        message = (
            "Batch 'resume' parameter must be given with the source, target, specs and name as before, "
            f"got others for manifest '{manifest.path}': do all with neither --resume nor --retry"
        )
        raise SpecError([Problem("resume", message)])


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
        _try(path.parent)
    except OSError as error:
        raise TargetError(f"Manifest '{path}' cannot be opened: {error.strerror}.") from error


def _open(url: str) -> None:
    import fsspec

    fsspec.core.url_to_fs(url)


def _try(folder: Path) -> None:
    """Make a file that has no name, where the system knows such, in what there is of a folder."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    with tempfile.TemporaryFile(dir=there):
        return


def _cannot_be_made(target: str, error: Exception) -> TargetError:
    reason = getattr(error, "strerror", None) or str(error)
    return TargetError(f"Target '{target}' cannot be made: {reason}.")
