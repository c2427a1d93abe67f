"""What a batch would do, without doing it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import attrs

from imgsvc_core.batch.inputs import Input, find, find_again
from imgsvc_core.batch.manifest import Manifest
from imgsvc_core.batch.planning import Batch
from imgsvc_core.batch.running import folder_of, settled_states
from imgsvc_core.batch.starting import check_same

_LONGEST_NAME_BYTES = 255


def preview(batch: Batch, *, resume: bool = False, retry: bool = False) -> Iterator[tuple[Input, bool]]:
    """Every input, and whether it would be worked on; nothing is written.

    Inputs whose results could not have their names bear the ``problem``, as far as names are known before the
    pictures are read. Raises what `run` raises.
    """
    with contextlib.ExitStack() as stack:
        known = batch.manifest_path.exists()
        manifest = stack.enter_context(Manifest(batch.manifest_path, reading=True)) if known else None
        taken: set[int] = set()
        for item, wanted in _found(batch, manifest, resume=resume, retry=retry):
            problem = item.problem or _problem(batch, manifest, item, taken, wanted=wanted)
            yield attrs.evolve(item, problem=problem), wanted


def _found(
    batch: Batch, manifest: Manifest | None, *, resume: bool, retry: bool
) -> Iterator[tuple[Input, bool]]:
    job = batch.job()
    work, states = batch.work_of(job), settled_states(batch, resume=resume)
    if manifest is not None and (resume or retry):
        check_same(manifest, batch, job)
        if retry or manifest.setting("listed") == "yes":
            for item in manifest.left(batch.source, work, failed=retry):
                yield item, True
            if retry:
                for item in find_again(batch.source, manifest.unlisted(batch.source), beside=batch.target):
                    yield item, not manifest.is_settled(item, work)
            return
    for item in find(batch.source, beside=batch.target):
        settled = manifest is not None and manifest.is_settled(item, work, states, folder=folder_of(batch))
        yield item, not settled and not retry


def _problem(batch: Batch, manifest: Manifest | None, item: Input, taken: set[int], *, wanted: bool) -> str:
    """Why a result cannot have its name, which is ``taken`` from here on."""
    paths = batch.foreseen(item.key)
    marks = {hash(path) for path in paths}
    collides = not marks.isdisjoint(taken)
    taken |= marks
    if not wanted:
        return ""
    folder, owned = folder_of(batch), manifest.owned(item) if manifest is not None else frozenset()
    for path in paths:
        if collides:
            return (
                f"Its result '{path}' has the name of another input's: use a template that tells them apart."
            )
        if folder is None:
            continue
        if any(len(os.fsencode(part)) > _LONGEST_NAME_BYTES for part in path.split("/")):
            return f"Target '{folder / path}' cannot be written: File name too long."
        if not batch.overwrite and path not in owned and (folder / path).exists():
            return f"Target '{folder / path}' exists already, and is not from this input."
    return ""
