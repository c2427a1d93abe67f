"""Refuse what cannot work before anything is written. A dry run refuses the same."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from imgsvc_batch.arguments import Batch
from imgsvc_batch.manifest import Manifest
from imgsvc_core import Problem, SpecError, TargetError
from imgsvc_core.errors import os_reason
from imgsvc_core.sources import is_url
from imgsvc_core.urls import missing_package


def check_asked(*, resume: bool, retry: bool) -> None:
    """Raise `SpecError` for ``resume`` together with ``retry``."""
    if resume and retry:
        message = "Batch 'retry' parameter must be given without 'resume', got both: do one after the other"
        raise SpecError([Problem("retry", message)])


def check_begun(manifest: Manifest, batch: Batch, work: str, *, resume: bool, retry: bool) -> None:
    """Raise `SpecError` for ``resume`` or ``retry`` of what was not begun, as after a change of the specs."""
    if (resume or retry) and not manifest.begun(batch.source, work):
        asked = "retry" if retry else "resume"
        message = (
            "The source, specs, watermarks, names or target have changed since the last run of manifest "
            f"'{manifest.path}': run without {asked} to process everything again"
        )
        raise SpecError([Problem(asked, message)])


def check_target(target: str) -> None:
    """Raise `TargetError` if the target cannot be made, `MissingDependency` if that needs a package."""
    try:
        if is_url(target):
            import fsspec

            fsspec.core.url_to_fs(target)
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
