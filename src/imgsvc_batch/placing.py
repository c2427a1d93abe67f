"""Decide which results may take their places, write that into the manifest, and move them there.

One process decides for all inputs, one after the other. A result is recorded as its input's own before it is
moved, and the outcome is written afterwards. The next run repeats the half-done inputs of a killed batch,
and recognizes their files.
"""

from __future__ import annotations

import filecmp
import os
import stat
from collections.abc import Iterable

import attrs

from imgsvc_batch.arguments import Batch
from imgsvc_batch.events import FAILED, Event, Output
from imgsvc_batch.inputs import Input, belonging
from imgsvc_batch.manifest import Manifest
from imgsvc_batch.results import move, remove, taken
from imgsvc_batch.work import TaskResult
from imgsvc_core import NameCollision, TargetError


@attrs.frozen
class _Move:
    """A result on its way from a ``staged`` file to its ``place``; ``is_new`` if the input did not own it."""

    output: Output
    staged: str
    place: str
    is_new: bool


@attrs.frozen
class _Admitted:
    item: Input
    event: Event
    moves: tuple[_Move, ...] = ()


class Placing:
    """Puts results into place, and writes outcomes into the manifest."""

    def __init__(self, batch: Batch, fingerprint: str, manifest: Manifest) -> None:
        self._batch = batch
        self._fingerprint = fingerprint
        self._manifest = manifest
        self._reserved = batch.reserved()
        self._belongs = belonging(batch.source)

    def settle(self, results: Iterable[tuple[Input, TaskResult]]) -> list[Event]:
        """Put the results of inputs into place, and write their outcomes.

        Return the events. An input fails if its results cannot have their places.
        """
        with self._manifest.change():
            admitted = [self._admit(item, result) for item, result in results]
        placed = [(one, self._place(one)) for one in admitted]
        with self._manifest.change():
            for one, event in placed:
                if event.outcome == FAILED:
                    self._manifest.delete_outputs(move.output.path for move in one.moves if move.is_new)
                self._manifest.record_outcome(one.item, self._fingerprint, event)
        return [event for _, event in placed]

    def _admit(self, item: Input, result: TaskResult) -> _Admitted:
        """Record the results of an input. The input fails if one of its results may not have its place."""
        event, moves = result.event, []
        try:
            for output in event.outputs:
                staged = result.staged.get(output.path, "")
                moves.append(self._check(item, event, output, staged))
        except TargetError as error:
            for path in result.staged.values():
                remove(path)
            return _Admitted(item, event.failed(error))
        if moves:
            self._manifest.record_outputs(item, event)
        return _Admitted(item, event, tuple(moves))

    def _check(self, item: Input, event: Event, output: Output, staged: str) -> _Move:
        """Return the move of a result to its place. Raise `TargetError` if the place is taken."""
        place = os.path.join(self._batch.target, output.path) if staged else ""
        owner = self._manifest.input_of_output(output.path)
        if owner is not None and owner.is_input(item):
            return _Move(output, staged, place, is_new=False)
        is_ours = owner is not None and self._belongs(owner.key, owner.location)
        if owner is not None and is_ours and owner.digest != event.digest:
            if not staged:  # the object was written already, perhaps over the owner's
                self._manifest.clear_outcome([owner.id])
            raise named_alike(output.path, owner.key)
        if staged:
            check_reserved(place, self._reserved)
            if os.path.lexists(place) and not self._batch.overwrite and not _may_replace(place, staged):
                raise taken(place)
        if owner is not None and not is_ours:
            self._manifest.clear_outcome([owner.id])
        return _Move(output, staged, place, is_new=True)

    def _place(self, admitted: _Admitted) -> Event:
        """Move all results of an input to their places, or none. Return the event."""
        done: list[_Move] = []
        try:
            for one in admitted.moves:
                if one.staged:
                    move(one.staged, one.place)
                    done.append(one)
        except TargetError as error:
            for one in admitted.moves:
                if one not in done:
                    remove(one.staged)
                elif one.is_new:
                    remove(one.place)
            return admitted.event.failed(error)
        return admitted.event


def check_reserved(place: str, reserved: frozenset[str]) -> None:
    """Raise `NameCollision` for a file of the manifest."""
    folder, name = os.path.split(place)
    alike = any(path.endswith(f"/{name}") for path in reserved)  # few names need a look at the disk
    if alike and os.path.join(os.path.realpath(folder), name) in reserved:
        raise NameCollision(
            f"Target '{place}' is a file of the batch's manifest: use a template that gives another name, or "
            "another manifest."
        )


def named_alike(path: str, key: str) -> NameCollision:
    """Return the error for a result whose name belongs to another input of the source."""
    return NameCollision(
        f"Its result '{path}' has the name of the result of '{key}': use a template that tells them apart."
    )


def _may_replace(place: str, staged: str) -> bool:
    """Return True if the file in a place has the same content, or none, as a power failure leaves it."""
    try:
        found = os.lstat(place)
        return stat.S_ISREG(found.st_mode) and (
            not found.st_size or filecmp.cmp(staged, place, shallow=False)
        )
    except OSError:
        return False
