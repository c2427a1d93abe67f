"""The memory of a batch: every input, what became of it, and its outputs, in an SQLite file.

One process writes it. Killed at any point, it is right: what is not marked as done is done again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Self

import attrs

from imgsvc_batch.events import DONE, FAILED, Output
from imgsvc_batch.inputs import Input
from imgsvc_batch.manifest_file import ManifestFile

WAITING, STARTED = "waiting", "started"
GONE = "gone"
"""Of an input that was deleted, or whose results another one replaced: it counts no more."""

# What failed, and what an interrupted retry has left of it; or what an interrupted run has left.
_LEFT = {
    True: f"(state = '{FAILED}' OR (state IN ('{WAITING}', '{STARTED}') AND error != ''))",
    False: f"state IN ('{WAITING}', '{STARTED}')",
}
NO_FOLDER = "key NOT LIKE '%/'"
"""Of the keys of inputs, other than those of folders that could not be listed."""

_PARTICULARS = re.compile(r"'[^']*'|\([^)]*\)|\d[\d,.]*")


@attrs.frozen(kw_only=True)
class Reason:
    """Why inputs failed, and some of them."""

    error: str
    message: str
    count: int
    keys: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Totals:
    """How many inputs are in each state, and their bytes before and after."""

    inputs: int
    done: int
    failed: int
    bytes_in: int
    bytes_out: int


class Manifest:
    """The manifest in a file, only to be read if ``reading``: what it tells. A `Journal` writes it.

    Raises `TargetError` where it cannot be opened.
    """

    def __init__(self, path: Path, *, reading: bool = False) -> None:
        self.path = path
        self.file = ManifestFile(path, reading=reading)
        self._db = self.file.db

    def lock(self) -> None:
        """Keep other batches from writing it; the lock ends with the process.

        Raises `TargetError` where one does.
        """
        self.file.lock()

    def setting(self, name: str) -> str | None:
        """A setting of the last run."""
        row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def knows(self, source: str, work: str) -> bool:
        """Whether there are inputs of a source on which this work was to be done last."""
        row = self._db.execute(
            "SELECT 1 FROM inputs JOIN batches ON batches.id = batch WHERE source = ? AND work = ? LIMIT 1",
            (source, work),
        ).fetchone()
        return row is not None

    def is_settled(
        self,
        item: Input,
        work: str,
        settled: Sequence[str] = (DONE,),
        *,
        after: int = 0,
        folder: Path | None = None,
    ) -> bool:
        """Whether the same work brought an input into one of these states, and nothing has changed since.

        That must have been in a run ``after`` the one of this number, and its results must still be in the
        ``folder``, if one is given.
        """
        row = self._db.execute(
            "SELECT inputs.id, state FROM inputs JOIN batches ON batches.id = batch "
            "WHERE key = ? AND location = ? AND stamp = ? AND work = ? AND run > ?",
            (item.key, item.location, item.stamp, work, after),
        ).fetchone()
        if row is None or not item.stamp or row[1] not in settled:
            return False
        return row[1] != DONE or self._are_there(row[0], folder)

    def has_results(self, item: Input, folder: Path | None) -> bool:
        """Whether the results of an input are there, as far as that can be told in no time."""
        row = self._db.execute(
            "SELECT id FROM inputs WHERE key = ? AND location = ?", (item.key, item.location)
        ).fetchone()
        return row is not None and self._are_there(row[0], folder)

    def owned(self, item: Input) -> frozenset[str]:
        """The outputs that an input had before, which may be replaced."""
        rows = self._db.execute(
            "SELECT path FROM outputs JOIN inputs ON inputs.id = input WHERE key = ? AND location = ?",
            (item.key, item.location),
        )
        return frozenset(row[0] for row in rows)

    def taken(self, source: str, key: str, paths: Iterable[str]) -> frozenset[str]:
        """Which of some paths are those of results of other inputs of a source."""
        query = (
            "SELECT 1 FROM outputs JOIN inputs ON inputs.id = input JOIN batches ON batches.id = batch "
            "WHERE path = ? AND NOT stale AND source = ? AND key != ? LIMIT 1"
        )
        return frozenset(path for path in paths if self._db.execute(query, (path, source, key)).fetchone())

    def may_be_alike(self, item: Input, work: str, path: str) -> bool:
        """Whether a result is of the same work on an input that is as large, and perhaps the same picture."""
        row = self._db.execute(
            "SELECT 1 FROM outputs JOIN inputs ON inputs.id = input JOIN batches ON batches.id = batch "
            "WHERE path = ? AND NOT stale AND size = ? AND work = ? LIMIT 1",
            (path, item.size, work),
        ).fetchone()
        return row is not None

    def left(self, source: str, work: str, *, failed: bool) -> Iterator[Input]:
        """What an earlier run of the same work has left, or the files that failed."""
        for row in self._db.execute(
            "SELECT key, location, size, stamp FROM inputs JOIN batches ON batches.id = batch "
            f"WHERE {_LEFT[failed]} AND source = ? AND work = ? AND {NO_FOLDER}",
            (source, work),
        ):
            yield Input(key=row[0], location=row[1], size=row[2], stamp=row[3])

    def unlisted(self, source: str) -> list[str]:
        """The keys of the folders of a source that could not be listed."""
        rows = self._db.execute(
            "SELECT DISTINCT key FROM inputs WHERE state = ? AND batch IN "
            f"(SELECT id FROM batches WHERE source = ?) AND NOT ({NO_FOLDER}) ORDER BY key",
            (FAILED, source),
        )
        return [row[0] for row in rows]

    def digest(self, key: str) -> str | None:
        """The SHA-256 of an input when it was worked on last."""
        row = self._db.execute(
            "SELECT digest FROM inputs WHERE key = ? ORDER BY run DESC LIMIT 1", (key,)
        ).fetchone()
        return str(row[0]) if row else None

    def totals(self) -> Totals:
        """Numbers over all runs."""
        inputs, done, failed, size = self._db.execute(
            "SELECT count(*), count(*) FILTER (WHERE state = 'done'), "
            "count(*) FILTER (WHERE state = 'failed'), "
            "coalesce(sum(size) FILTER (WHERE state = 'done'), 0) FROM inputs WHERE state != ?",
            (GONE,),
        ).fetchone()
        (written,) = self._db.execute(
            "SELECT coalesce(sum(bytes), 0) FROM (SELECT DISTINCT path, bytes FROM outputs WHERE NOT stale)"
        ).fetchone()
        return Totals(inputs=inputs, done=done, failed=failed, bytes_in=size, bytes_out=written)

    def reasons(self, *, keys: int = 5) -> list[Reason]:
        """Why inputs failed, the most frequent first; names and numbers do not make reasons differ."""
        found: dict[tuple[str, str], Reason] = {}
        for key, error, message in self.failures():
            without_name = message.replace(f"{PurePosixPath(key).name}'", "'")  # it may hold quotes
            alike = error, _PARTICULARS.sub("", without_name)
            reason = found.get(alike) or Reason(error=error, message=message, count=0, keys=())
            named = (*reason.keys, key)[:keys]
            found[alike] = attrs.evolve(reason, count=reason.count + 1, keys=named)
        return sorted(found.values(), key=lambda reason: -reason.count)

    def failures(self) -> Iterator[tuple[str, str, str]]:
        """Key, kind of error and message of every input that failed."""
        rows = self._db.execute(
            "SELECT key, error, message FROM inputs WHERE state = ? ORDER BY key", (FAILED,)
        )
        yield from rows

    def done(self, *, most: int) -> list[tuple[str, str, int, list[Output]]]:
        """Key, location, size and outputs of inputs that are done; those that saved most come first."""
        rows = self._db.execute(
            "SELECT inputs.id, key, location, size FROM inputs JOIN outputs ON input = inputs.id "
            "WHERE state = ? AND NOT stale GROUP BY inputs.id ORDER BY size - max(bytes) DESC LIMIT ?",
            (DONE, most),
        ).fetchall()
        return [(key, location, size, self._outputs(number)) for number, key, location, size in rows]

    def close(self) -> None:
        """Close the file, and give up the lock."""
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _are_there(self, number: int, folder: Path | None) -> bool:
        return folder is None or all((folder / output.path).exists() for output in self._outputs(number))

    def _outputs(self, number: int) -> list[Output]:
        with closing(
            self._db.execute(
                "SELECT variant, path, format, width, height, bytes FROM outputs "
                "WHERE input = ? AND NOT stale ORDER BY path",
                (number,),
            )
        ) as rows:
            return [
                Output(variant=variant, path=path, format=format_, width=width, height=height, bytes=size)
                for variant, path, format_, width, height, size in rows
            ]
