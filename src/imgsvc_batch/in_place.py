"""Replace files and objects by their results, where they lie.

A batch in place repeats nothing after a kill: the digest of a result is in the manifest before the result is
in its place, so the next run finds either the original, or a file that it knows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from imgsvc_batch.arguments import Batch
from imgsvc_batch.events import DONE, FAILED, UNCHANGED, Event
from imgsvc_batch.inputs import Input, stamp_of_object
from imgsvc_batch.manifest import Manifest
from imgsvc_batch.objects import replace_object
from imgsvc_batch.results import remove
from imgsvc_batch.work import TaskResult
from imgsvc_core import FORMATS, TargetError
from imgsvc_core.sources import is_url, object_info, open_filesystem, shown_url
from imgsvc_core.targets import changed_meanwhile, replace_file, stamp_of, unwritable, writing_to

_PUTS_AT_ONCE = 16

_LINKED = "Its other hard links still lead to the original."


@attrs.frozen
class _Replaced:
    """An input whose result is in place or not, and the stamp of what lies there now."""

    item: Input
    result: TaskResult
    event: Event
    stamp: str = ""


class Replacing:
    """Puts results into the places of their inputs, and writes outcomes into the manifest."""

    def __init__(self, batch: Batch, fingerprint: str, manifest: Manifest) -> None:
        self._fingerprint = fingerprint
        self._manifest = manifest
        self._is_remote = is_url(batch.source)

    def settle(self, results: Iterable[tuple[Input, TaskResult]]) -> list[Event]:
        """Replace inputs by their results, and write their outcomes. Return the events."""
        settled = list(results)
        with self._manifest.change():
            for item, result in settled:
                if result.event.outcome == DONE:
                    made = attrs.evolve(result.event, digest=result.digest)
                    self._manifest.record_outputs(item, made)
                    # Without a stamp the next run compares digests, whether or not the result got its place.
                    self._manifest.record_outcome(attrs.evolve(item, stamp=""), self._fingerprint, made)
        replaced = self._replace_all(settled)
        with self._manifest.change():
            for one in replaced:
                self._record(one)
        return [one.event for one in replaced]

    def _replace_all(self, settled: Sequence[tuple[Input, TaskResult]]) -> list[_Replaced]:
        if not self._is_remote or len(settled) < 2:
            return [_replace(*one) for one in settled]
        with ThreadPoolExecutor(min(_PUTS_AT_ONCE, len(settled))) as threads:
            return list(threads.map(lambda one: _replace(*one), settled))

    def _record(self, one: _Replaced) -> None:
        item = attrs.evolve(one.item, stamp=one.stamp)
        if one.event.outcome == UNCHANGED:
            self._manifest.record_stamp(item)
        elif one.event.outcome == FAILED:
            self._manifest.record_outcome(item, self._fingerprint, one.event)
        else:
            made = attrs.evolve(one.event, digest=one.result.digest)
            self._manifest.record_outcome(item, self._fingerprint, made)


def _replace(item: Input, result: TaskResult) -> _Replaced:
    """Put the result of an input into its place, unless nothing changes."""
    staged = result.staged.get(item.location)
    if result.event.outcome != DONE or staged is None:
        return _Replaced(item, result, result.event, item.stamp)
    try:
        if is_url(item.location):
            return _Replaced(item, result, result.event, _replace_object(item, result.event, staged))
        stamp, notes = _replace_file(item, staged)
        event = attrs.evolve(result.event, notes=(*result.event.notes, *notes))
        return _Replaced(item, result, event, stamp)
    except TargetError as error:
        return _Replaced(item, result, result.event.failed(error), item.stamp)
    finally:
        remove(staged)


def _replace_file(item: Input, staged: str) -> tuple[str, tuple[str, ...]]:
    """Replace a file, and return its new stamp and notes. A link still leads to it afterwards."""
    path = Path(os.path.realpath(item.location))
    try:
        links = path.stat().st_nlink
        replace_file(path, Path(staged), stamp=item.stamp)
        return stamp_of(path.stat()), (_LINKED,) if links > 1 else ()
    except OSError as error:
        raise unwritable(item.location, error) from error


def _replace_object(item: Input, event: Event, staged: str) -> str:
    """Replace an object by one put, and return its new stamp."""
    url = item.location
    with writing_to(url):
        fs, place = open_filesystem(url)
        before = object_info(fs, place)
        if _plain(stamp_of_object(before)) != _plain(item.stamp):
            raise changed_meanwhile(shown_url(url))
        media_type = FORMATS[event.outputs[0].format].media_type
        replace_object(fs, place, Path(staged).read_bytes(), media_type, before)
        fs.invalidate_cache()
        return stamp_of_object(object_info(fs, place))


def _plain(stamp: str) -> str:
    """Return a stamp without the quotes of an ETag, which only some answers of a store have."""
    return stamp.replace('"', "")
