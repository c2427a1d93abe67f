"""Show what a batch would do, without doing it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

import attrs

from imgsvc_batch.arguments import Batch
from imgsvc_batch.checks import check_asked, check_begun, check_manifest, check_target
from imgsvc_batch.inputs import Input, find
from imgsvc_batch.manifest import Manifest
from imgsvc_batch.placing import check_reserved, is_rival, named_alike
from imgsvc_batch.results import check_path, taken, unwritable
from imgsvc_batch.selection import Selection
from imgsvc_core import TargetError
from imgsvc_core.sources import is_url


def preview(batch: Batch, *, resume: bool = False, retry: bool = False) -> Iterator[tuple[Input, bool]]:
    """Return every input, and whether it would be processed. Nothing is written.

    Inputs whose results could not have their names come with the ``problem``, if the names are known before
    the pictures are read. Raises what `run` raises.
    """
    check_asked(resume=resume, retry=retry)
    work = batch.work(batch.job())
    check_target(batch.target)
    check_manifest(batch.manifest_path)
    with Manifest(batch.manifest_path, reading=True) as manifest:
        check_begun(manifest, batch, work, resume=resume, retry=retry)
        selection = Selection(batch, work, manifest, resume=resume, retry=retry)
        names = _Names(batch, work, manifest)
        for item in find(batch.source, target=batch.target):
            is_chosen = selection.choose(item) is not None
            problem = item.problem or names.problem(item)
            yield attrs.evolve(item, problem=problem if is_chosen else ""), is_chosen


class _Names:
    """The names of results that are known before their inputs are read."""

    def __init__(self, batch: Batch, work: str, manifest: Manifest) -> None:
        self._batch = batch
        self._work = work
        self._manifest = manifest
        self._reserved = batch.reserved()
        self._keys: dict[int, str] = {}  # of the first input with a name, by the hash of that

    def problem(self, item: Input) -> str:
        """Return why a result cannot have its name. From here on, the input has its names."""
        try:
            for path in self._batch.foreseen(item.key):
                first = self._keys.setdefault(hash(path), item.key)
                if first != item.key:
                    raise named_alike(path, first)
                self._check(item, path)
        except TargetError as error:
            return error.message
        return ""

    def _check(self, item: Input, path: str) -> None:
        check_path(path)
        owner = self._manifest.owner(path)
        is_own = owner is not None and (owner.key, owner.location) == (item.key, item.location)
        if owner is not None and not is_own and is_rival(self._batch, owner):
            raise named_alike(path, owner.key)
        if is_url(self._batch.target):
            return
        place = os.path.join(self._batch.target, path)
        check_reserved(place, self._reserved)
        try:
            found = os.lstat(place)
        except FileNotFoundError:
            return
        except OSError as error:  # its name is too long, or its folder is a file
            raise unwritable(place, error) from error
        if is_own or self._batch.overwrite:
            if stat.S_ISDIR(found.st_mode):
                raise unwritable(place, IsADirectoryError(errno.EISDIR, ""))
            return
        may_be_alike = owner is not None and (owner.work, owner.size) == (self._work, item.size)
        if not (may_be_alike and stat.S_ISREG(found.st_mode)):
            raise taken(place)
