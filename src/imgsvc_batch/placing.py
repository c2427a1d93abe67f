"""Decide which results may take their places, write that into the manifest, and move them there.

One process decides for all inputs, one after the other. A result is its input's own before it is moved, and
the outcome is written afterwards: what a killed batch left half done is done again, and its files are never
taken for those of somebody else.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterable

import attrs

from imgsvc_batch.arguments import Batch
from imgsvc_batch.events import FAILED, Event, Output
from imgsvc_batch.inputs import Input, belongs
from imgsvc_batch.manifest import Known, Manifest
from imgsvc_batch.results import move, remove, taken
from imgsvc_batch.work import Outcome
from imgsvc_core import NameCollision, TargetError


@attrs.frozen
class _Move:
    """A result on its way from ``unfinished`` to ``place``; ``is_new`` if the input did not own the path."""

    output: Output
    unfinished: str
    place: str
    is_new: bool


@attrs.frozen
class _Admitted:
    item: Input
    event: Event
    moves: tuple[_Move, ...] = ()


class Placing:
    """Puts results into place, and writes outcomes into the manifest."""

    def __init__(self, batch: Batch, work: str, manifest: Manifest) -> None:
        self._batch = batch
        self._work = work
        self._manifest = manifest
        self._reserved = batch.reserved()

    def settle(self, outcomes: Iterable[tuple[Input, Outcome]]) -> list[Event]:
        """Put the results of inputs into place, and write their outcomes.

        Return the events. Inputs whose results cannot have their places have failed.
        """
        with self._manifest.change():
            admitted = [self._admit(item, outcome) for item, outcome in outcomes]
        placed = [(one, self._place(one)) for one in admitted]
        with self._manifest.change():
            for one, event in placed:
                if event.outcome == FAILED:
                    self._manifest.disown(move.output.path for move in one.moves if move.is_new)
                self._manifest.remember(one.item, self._work, event)
        return [event for _, event in placed]

    def _admit(self, item: Input, outcome: Outcome) -> _Admitted:
        """Write that results belong to an input. It has failed if one of them may not have its place."""
        event, moves = outcome.event, []
        try:
            for number, output in enumerate(event.outputs):
                unfinished = outcome.unfinished[number] if outcome.unfinished else ""
                moves.append(self._check(item, event, output, unfinished))
        except TargetError as error:
            for path in outcome.unfinished:
                remove(path)
            return _Admitted(item, event.failed(error))
        if moves:
            self._manifest.claim(item, event)
        return _Admitted(item, event, tuple(moves))

    def _check(self, item: Input, event: Event, output: Output, unfinished: str) -> _Move:
        """Return how a result gets to its place; `TargetError` if it may not have it."""
        place = os.path.join(self._batch.target, output.path) if unfinished else ""
        owner = self._manifest.owner(output.path)
        if owner is not None and (owner.key, owner.location) == (item.key, item.location):
            return _Move(output, unfinished, place, is_new=False)
        if owner is not None and is_rival(self._batch, owner) and owner.digest != event.digest:
            if not unfinished:  # the object was written already, perhaps over the owner's
                self._manifest.forget([owner.id])
            raise named_alike(output.path, owner.key)
        if unfinished:
            check_reserved(place, self._reserved)
            if os.path.lexists(place) and not self._batch.overwrite and not _is_alike(unfinished, place):
                raise taken(place)
        if owner is not None and not is_rival(self._batch, owner):
            self._manifest.forget([owner.id])
        return _Move(output, unfinished, place, is_new=True)

    def _place(self, admitted: _Admitted) -> Event:
        """Move all results of an input to their places, or none. Return the event."""
        done: list[_Move] = []
        try:
            for one in admitted.moves:
                if one.unfinished:
                    move(one.unfinished, one.place)
                    done.append(one)
        except TargetError as error:
            for one in admitted.moves:
                if one not in done:
                    remove(one.unfinished)
                elif one.is_new:
                    remove(one.place)
            return admitted.event.failed(error)
        return admitted.event


def is_rival(batch: Batch, owner: Known) -> bool:
    """Return True for an input of the same source."""
    return belongs(batch.source, owner.key, owner.location)


def check_reserved(place: str, reserved: frozenset[str]) -> None:
    """Raise `NameCollision` for a file of the manifest."""
    folder, name = os.path.split(place)
    alike = any(path.endswith(f"/{name}") for path in reserved)  # most names need no look at the disk
    if alike and os.path.join(os.path.realpath(folder), name) in reserved:
        raise NameCollision(
            f"Target '{place}' is a file of the batch's manifest: use a template that gives another name, or "
            "another manifest."
        )


def named_alike(path: str, key: str) -> NameCollision:
    """Return the error for a result whose name another input of the source has."""
    return NameCollision(
        f"Its result '{path}' has the name of the result of '{key}': use a template that tells them apart."
    )


def _is_alike(unfinished: str, place: str) -> bool:
    """Return True if the file in a place has the same content. A link is never the same."""
    try:
        return not os.path.islink(place) and filecmp.cmp(unfinished, place, shallow=False)
    except OSError:
        return False
