"""What one run remembers: the inputs that it found, those that it began, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from imgsvc_batch.events import DONE, FAILED, UNCHANGED, Event
from imgsvc_batch.inputs import Input
from imgsvc_batch.manifest import GONE, NO_FOLDER, STARTED, WAITING, Manifest
from imgsvc_batch.work import Task

RESUMED, RETRIED = "resumed", "retried"

# The inputs of a run that nobody has begun: those that it found, and what it takes up from earlier ones.
_TODO = {
    "": f"batch = :batch AND state = '{WAITING}' AND run = :run",
    RESUMED: f"batch = :batch AND state = '{WAITING}' AND {NO_FOLDER}",
    RETRIED: f"batch = :batch AND {NO_FOLDER} AND ((state = '{FAILED}' AND run < :run) "
    f"OR (state = '{WAITING}' AND (run = :run OR error != '')))",
}

_RESERVE_BYTES, _RESERVE_PER_INPUT = 2**20, 800
_MOST_RESERVED_BYTES = 2**24  # about as much as is written in no time


@attrs.frozen(kw_only=True)
class _Rival:
    """Another input that a result belongs to; perhaps of a picture that is the same."""

    number: int
    key: str
    path: str
    alike: bool
    of_this_source: bool
    of_this_batch: bool


class Journal:
    """A run of some work on a source, in a manifest.

    Args:
        manifest: what is written.
        source: what is searched.
        work: a digest of what is done to each input.
        settings: what else is to be known of the last run.
        takes_up: what is left of earlier runs of the same work that this one takes up: nothing, what was
            ``RESUMED``, or what is ``RETRIED``.

    What a dead run had started waits again.
    """

    def __init__(
        self, manifest: Manifest, *, source: str, work: str, settings: dict[str, str], takes_up: str = ""
    ) -> None:
        self._manifest = manifest
        self._file = manifest.file
        self._db = manifest.file.db
        self._source, self._work = source, work
        run = int(manifest.setting("run") or 0) + 1
        with self._file.change() as db:
            db.execute("UPDATE inputs SET state = ? WHERE state = ?", (WAITING, STARTED))
            for name, value in {**settings, "source": source, "work": work, "run": str(run)}.items():
                db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))
            db.execute("INSERT OR IGNORE INTO batches (source, work) VALUES (?, ?)", (source, work))
            (batch,) = db.execute(
                "SELECT id FROM batches WHERE source = ? AND work = ?", (source, work)
            ).fetchone()
        self._run = {"batch": batch, "run": run}
        self._todo = _TODO[takes_up]
        self._file.reserve(_RESERVE_BYTES)

    def waiting_count(self) -> int:
        """How many inputs nobody has begun."""
        (count,) = self._db.execute(f"SELECT count(*) FROM inputs WHERE {self._todo}", self._run).fetchone()
        return int(count)

    def note(
        self,
        found: Sequence[Input],
        *,
        settled: Sequence[str] = (DONE,),
        after: int = 0,
        folder: Path | None = None,
    ) -> int:
        """Take up inputs that were found; how many of them need nothing.

        Args:
            found: the inputs.
            settled: states in which an input that has not changed stays as it is.
            after: the number of a run, since which it came into that state.
            folder: of the results, which must still be there; nothing where that would take too long.
        """
        skipped = 0
        with self._file.change() as db:
            for item in found:
                if self._manifest.is_settled(item, self._work, settled, after=after, folder=folder):
                    db.execute(
                        "UPDATE inputs SET run = :run, batch = :batch "
                        "WHERE key = :key AND location = :location",
                        {**self._run, "key": item.key, "location": item.location},
                    )
                    skipped += 1
                    continue
                db.execute(
                    "INSERT INTO inputs (key, location, size, stamp, batch, run, state) "
                    "VALUES (:key, :location, :size, :stamp, :batch, :run, :state) "
                    "ON CONFLICT (key, location) DO UPDATE SET "
                    "digest = CASE WHEN :keep AND state = 'done' AND (stamp != excluded.stamp OR stamp = '') "
                    "AND batch IN (SELECT id FROM batches WHERE work = :work) THEN digest ELSE '' END, "
                    "size = excluded.size, stamp = excluded.stamp, "
                    "batch = excluded.batch, run = excluded.run, state = excluded.state",
                    {
                        **self._run,
                        **attrs.asdict(item),
                        "state": WAITING,
                        "work": self._work,
                        "keep": DONE in settled and self._manifest.has_results(item, folder),
                    },
                )
        return skipped

    def finish_listing(self) -> None:
        """Remember that all inputs of this run are known, and forget failures of those that are gone."""
        with self._file.change() as db:
            db.execute("INSERT OR REPLACE INTO settings VALUES ('listed', 'yes')")
            self._forget(self._missing())
        room = _RESERVE_BYTES + self.waiting_count() * _RESERVE_PER_INPUT
        self._file.reserve(min(room, _MOST_RESERVED_BYTES))

    def finish_folders(self, folders: Sequence[str]) -> None:
        """Forget that folders could not be listed, unless this run met that again."""
        with self._file.change() as db:
            for key in folders:
                rows = db.execute(
                    "SELECT id FROM inputs WHERE key = :key AND state = :state AND run < :run AND "
                    "batch IN (SELECT id FROM batches WHERE source = :source)",
                    {**self._run, "key": key, "state": FAILED, "source": self._source},
                )
                self._forget([row[0] for row in rows])

    def is_taken_up(self, item: Input) -> bool:
        """Whether an input is one of this run already."""
        row = self._db.execute(
            "SELECT 1 FROM inputs WHERE key = :key AND location = :location "
            f"AND ((run = :run AND batch = :batch) OR ({self._todo}))",
            {**self._run, "key": item.key, "location": item.location},
        ).fetchone()
        return row is not None

    def waiting(self, *, most: int) -> list[Task]:
        """Some inputs, marked as started; with the digests of those that may be the same."""
        with self._file.change() as db:
            rows = db.execute(
                "SELECT id, key, location, size, CASE WHEN run = :run THEN digest ELSE '' END "
                f"FROM inputs WHERE {self._todo} LIMIT :most",
                {**self._run, "most": most},
            ).fetchall()
            db.executemany(
                "UPDATE inputs SET state = ?, run = ? WHERE id = ?",
                [(STARTED, self._run["run"], row[0]) for row in rows],
            )
        return [
            Task(key=key, location=location, size=size, digest=digest, owned=self._owned(number))
            for number, key, location, size, digest in rows
        ]

    def still_waiting(self) -> Iterator[Input]:
        """The inputs that nobody has begun; nothing is marked."""
        rows = self._db.execute(
            f"SELECT key, location, size, stamp FROM inputs WHERE {self._todo}", self._run
        )
        for key, location, size, stamp in rows:
            yield Input(key=key, location=location, size=size, stamp=stamp)

    def is_settled(self, item: Input, settled: Sequence[str], *, after: int = 0) -> bool:
        """Whether an input needs nothing; see `Manifest.is_settled`."""
        return self._manifest.is_settled(item, self._work, settled, after=after)

    def has_left(self) -> bool:
        """Whether any batch has left something to be done."""
        rows = self._db.execute("SELECT 1 FROM inputs WHERE state IN (?, ?) LIMIT 1", (WAITING, STARTED))
        return rows.fetchone() is not None

    def settle(self, events: Iterable[Event], *, overwrite: bool = False) -> tuple[list[Event], int]:
        """Remember outcomes.

        Returns them as they are now, where an output that belongs to another input is a failure; and how many
        inputs of this run are to be done again, as such an output may have replaced theirs. Those of another
        source lose it instead where that was allowed (``overwrite``), or where it is the same.
        """
        settled, reopened = [], 0
        with self._file.change():
            for event in events:
                number = self._number(event.key)
                rivals = self._rivals(number, event)
                refused = [
                    rival for rival in rivals if not rival.alike and (rival.of_this_source or not overwrite)
                ]
                if refused:
                    event = _collision(event, refused[0])
                    reopened += sum(self._reopen(rival) for rival in refused)
                for rival in () if refused else rivals:
                    if not rival.of_this_source:
                        self._take_from(rival)
                self._remember(number, event)
                settled.append(event)
        return settled, reopened

    def _number(self, key: str) -> int:
        """The input of this run that has a key: all of them are of one source, where each has its own."""
        (number,) = self._db.execute(
            "SELECT id FROM inputs WHERE key = :key AND batch = :batch ORDER BY run DESC LIMIT 1",
            {**self._run, "key": key},
        ).fetchone()
        return int(number)

    def _owned(self, number: int) -> frozenset[str]:
        rows = self._db.execute("SELECT path FROM outputs WHERE input = ?", (number,))
        return frozenset(row[0] for row in rows)

    def _rivals(self, number: int, event: Event) -> list[_Rival]:
        """Whoever else has the results of an input."""
        return [
            _Rival(
                number=other,
                key=key,
                path=output.path,
                alike=digest == event.digest,
                of_this_source=source == self._source,
                of_this_batch=batch == self._run["batch"],
            )
            for output in event.outputs
            for other, key, digest, source, batch in self._db.execute(
                "SELECT inputs.id, key, digest, source, batch FROM outputs JOIN inputs ON inputs.id = input "
                "JOIN batches ON batches.id = batch WHERE path = ? AND input != ? AND NOT stale",
                (output.path, number),
            ).fetchall()
        ]

    def _reopen(self, rival: _Rival) -> int:
        """Let an input be done again; how many more this run has to do."""
        run = ", run = :run" if rival.of_this_batch else ""
        reopened = self._db.execute(
            f"UPDATE inputs SET state = :waiting, digest = ''{run} WHERE id = :number AND state = :done",
            {**self._run, "waiting": WAITING, "number": rival.number, "done": DONE},
        ).rowcount
        return reopened if rival.of_this_batch else 0

    def _take_from(self, rival: _Rival) -> None:
        self._db.execute("DELETE FROM outputs WHERE path = ? AND input = ?", (rival.path, rival.number))
        self._db.execute(
            "UPDATE inputs SET state = ?, digest = '' WHERE id = ? AND state = ?", (GONE, rival.number, DONE)
        )

    def _remember(self, number: int, event: Event) -> None:
        state = DONE if event.outcome == UNCHANGED else event.outcome
        self._db.execute(
            "UPDATE inputs SET state = ?, size = ?, digest = ?, error = ?, message = ?, seconds = ? "
            "WHERE id = ?",
            (state, event.bytes, event.digest, event.error, event.message, event.seconds, number),
        )
        if event.outcome == DONE:
            # Results of other work on this input stay its own, for when that work is done again.
            self._db.execute("UPDATE outputs SET stale = 1 WHERE input = ?", (number,))
            self._db.executemany(
                "INSERT OR REPLACE INTO outputs (path, input, variant, format, width, height, bytes) "
                "VALUES (:path, :input, :variant, :format, :width, :height, :bytes)",
                [{**attrs.asdict(output), "input": number} for output in event.outputs],
            )

    def _missing(self) -> list[int]:
        """What failed or waits, and was not found again, though its folder could be listed."""
        unlisted = self._db.execute(
            "SELECT key FROM inputs WHERE batch = :batch AND run = :run AND state = :failed "
            f"AND NOT ({NO_FOLDER})",
            {**self._run, "failed": FAILED},
        )
        hidden = tuple("" if key == "./" else key for (key,) in unlisted)
        rows = self._db.execute(
            "SELECT id, key FROM inputs WHERE state IN (:failed, :waiting) AND run < :run AND "
            "batch IN (SELECT id FROM batches WHERE source = :source)",
            {**self._run, "failed": FAILED, "waiting": WAITING, "source": self._source},
        )
        return [number for number, key in rows if not key.startswith(hidden)]

    def _forget(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._db.execute("UPDATE outputs SET stale = 1 WHERE input = ?", (number,))
            self._db.execute("UPDATE inputs SET state = ? WHERE id = ?", (GONE, number))


def _collision(event: Event, rival: _Rival) -> Event:
    message = (
        f"Its result '{rival.path}' has the name of the result of '{rival.key}': use a template that tells "
        "them apart."
    )
    return attrs.evolve(event, outcome=FAILED, outputs=(), error="name_collision", message=message)
