"""Which inputs a run processes."""

from __future__ import annotations

import os

from imgsvc_batch.arguments import Batch
from imgsvc_batch.inputs import Input
from imgsvc_batch.manifest import Known, Manifest
from imgsvc_batch.work import Task
from imgsvc_core.sources import is_url


class Selection:
    """Chooses inputs by what the manifest knows of them.

    Args:
        batch: what is asked.
        work: a digest of what is done to each input.
        manifest: the outcomes of earlier runs.
        resume: leave inputs that failed.
        retry: take only inputs that failed.
    """

    def __init__(self, batch: Batch, work: str, manifest: Manifest, *, resume: bool, retry: bool) -> None:
        self._batch = batch
        self._work = work
        self._manifest = manifest
        self._force = batch.force and not resume  # a forced run that is resumed leaves what it has done
        self._resume = resume
        self._retry = retry
        self._is_folder = not is_url(batch.target)
        self.failed = manifest.failures_of(batch.source)
        self._unlisted = tuple(
            key.removeprefix("./")
            for key, known in self.failed.items()
            if key.endswith("/") and known.work == work
        )

    def choose(self, item: Input) -> Task | None:
        """Return the task of an input; None if it is to be left as it is."""
        known = self._manifest.known(item)
        if known is None or known.work != self._work:
            below_unlisted = item.key.startswith(self._unlisted)
            return self._task(item) if below_unlisted or not self._retry else None
        if self._retry:
            return self._task(item) if known.error else None
        if self._force:
            return self._task(item)
        unchanged = item.stamp != "" and item.stamp == known.stamp
        if known.error:
            return None if unchanged and self._resume else self._task(item)
        if not self._has_results(known):
            return self._task(item)
        return None if unchanged else self._task(item, digest=known.digest)

    def _has_results(self, known: Known) -> bool:
        """Return False if a result is gone. In stores, that would cost a request for each result."""
        if not self._is_folder:
            return True
        paths = self._manifest.current_paths(known.id)
        return all(os.path.exists(os.path.join(self._batch.target, path)) for path in paths)

    def _task(self, item: Input, *, digest: str = "") -> Task:
        if self._is_folder:  # the batch decides what is replaced, and not the worker
            return Task(key=item.key, location=item.location, size=item.size, digest=digest)
        owned = self._manifest.owned(item)
        return Task(key=item.key, location=item.location, size=item.size, digest=digest, owned=owned)
