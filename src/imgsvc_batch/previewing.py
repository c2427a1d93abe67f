"""Show what a batch would do, without doing it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

import attrs

from imgsvc_batch.arguments import Batch
from imgsvc_batch.checks import check_same_batch, mode_of, prepare
from imgsvc_batch.inputs import Input, belonging
from imgsvc_batch.manifest import Manifest
from imgsvc_batch.placing import check_reserved, named_alike
from imgsvc_batch.results import check_path, taken
from imgsvc_batch.selection import Selection
from imgsvc_core import FORMATS, Spec, TargetError
from imgsvc_core.sources import is_url
from imgsvc_core.targets import unwritable


def preview(batch: Batch, *, resume: bool = False, retry: bool = False) -> Iterator[tuple[Input, bool]]:
    """Return every input, and whether it would be processed. Nothing is written.

    If names of results are known before the pictures are read, inputs whose results could not have their
    names have a ``problem``. Raise the errors that `run` raises.
    """
    mode = mode_of(resume=resume, retry=retry)
    _, fingerprint, inputs = prepare(batch)
    with Manifest(batch.manifest_path, reading=True) as manifest:
        check_same_batch(manifest, batch, fingerprint, mode)
        selection = Selection(batch, fingerprint, manifest, mode)
        names = _Names(batch, fingerprint, manifest)
        for item in inputs:
            is_chosen = selection.choose(item) is not None
            problem = item.problem or names.problem(item)
            yield attrs.evolve(item, problem=problem if is_chosen else ""), is_chosen


class _Names:
    """The names of results that are known before their inputs are read."""

    def __init__(self, batch: Batch, fingerprint: str, manifest: Manifest) -> None:
        self._batch = batch
        self._fingerprint = fingerprint
        self._manifest = manifest
        self._reserved = batch.reserved()
        self._belongs = belonging(batch.source)
        self._keys: dict[int, str] = {}  # the first input of each name, by the hash of the name

    def problem(self, item: Input) -> str:
        """Return why a result cannot have its name. Afterwards the names belong to the input."""
        if self._batch.in_place:
            return ""
        try:
            for path in _foreseen_paths(self._batch, item.key):
                first = self._keys.setdefault(hash(path), item.key)
                if first != item.key:
                    raise named_alike(path, first)
                self._check(item, path)
        except TargetError as error:
            return error.message
        return ""

    def _check(self, item: Input, path: str) -> None:
        check_path(path)
        owner = self._manifest.input_of_output(path)
        is_own = owner is not None and owner.is_input(item)
        if owner is not None and not is_own and self._belongs(owner.key, owner.location):
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
        may_be_alike = owner is not None and (owner.fingerprint, owner.size) == (self._fingerprint, item.size)
        if not (stat.S_ISREG(found.st_mode) and (may_be_alike or not found.st_size)):
            raise taken(place)


def _foreseen_paths(batch: Batch, key: str) -> tuple[str, ...]:
    """Return the paths of an input's results that are known before it is read."""
    fields = batch.naming.fields
    if fields & {"width", "height", "digest"}:
        return ()
    suffixes = {name: _suffix_of(spec) for name, spec in batch.variants.items()}
    return tuple(
        batch.naming.path(key, variant=name, width=1, height=1, suffix=suffix, digest="")
        for name, suffix in suffixes.items()
        if suffix or "format" not in fields
    )


def _suffix_of(spec: Spec) -> str:
    """Return the suffix of results, or an empty text if it depends on the input."""
    row = None if spec.output is None else FORMATS.get(spec.output.format or "")
    return "" if row is None else row.suffix
