"""The choice of the inputs that a run processes."""

from __future__ import annotations

import os

from imgsvc_batch.arguments import Batch
from imgsvc_batch.checks import Mode
from imgsvc_batch.inputs import Input, unlistable_folder
from imgsvc_batch.manifest import Known, Manifest
from imgsvc_batch.work import Task
from imgsvc_core.sources import is_url


class Selection:
    """Chooses inputs by their outcomes in earlier runs.

    Args:
        batch: what is asked.
        fingerprint: a digest of what is done to each input.
        manifest: the outcomes of earlier runs.
        mode: all; ``resume`` leaves inputs that failed, ``retry`` takes nothing else.
    """

    def __init__(self, batch: Batch, fingerprint: str, manifest: Manifest, mode: Mode) -> None:
        self._batch = batch
        self._fingerprint = fingerprint
        self._manifest = manifest
        self._force = batch.force and mode != "resume"  # a resumed run skips the inputs that it forced
        self._mode = mode
        self._is_folder = not is_url(batch.target)
        self.failed = manifest.failures_of(batch.source)
        self._unlisted = tuple(
            folder
            for key, known in self.failed.items()
            if (folder := unlistable_folder(key)) is not None and known.fingerprint == fingerprint
        )

    def choose(self, item: Input) -> Task | None:
        """Return the task of an input, or None if the input is skipped."""
        known = self._manifest.find(item)
        if known is None or known.fingerprint != self._fingerprint:
            below_unlisted = item.key.startswith(self._unlisted)
            return self._task(item) if below_unlisted or self._mode != "retry" else None
        if self._mode == "retry":
            return self._task(item) if known.error else None
        if self._force:
            return self._task(item)
        unchanged = item.stamp != "" and item.stamp == known.stamp
        if known.error:
            return None if unchanged and self._mode == "resume" else self._task(item)
        if not self._has_results(known):
            return self._task(item)
        return None if unchanged else self._task(item, digest=known.digest)

    def _has_results(self, known: Known) -> bool:
        """Return False if the file of a result is gone, or was emptied by a power failure.

        Results in stores are not checked: that would cost a request for each.
        """
        if not self._is_folder:
            return True
        paths = self._manifest.current_paths(known.id)
        return all(_has_content(os.path.join(self._batch.target, path)) for path in paths)

    def _task(self, item: Input, *, digest: str = "") -> Task:
        # In folders the batch decides what is replaced, and not the worker.
        owned = frozenset() if self._is_folder else self._manifest.output_paths(item)
        return Task(
            key=item.key,
            location=item.location,
            size=item.size,
            member=item.member,
            owned=owned,
            digest=digest,
        )


def _has_content(place: str) -> bool:
    try:
        return os.stat(place).st_size > 0
    except OSError:
        return False
