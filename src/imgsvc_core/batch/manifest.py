"""The memory of a batch: every input, what became of it, and its outputs, in an SQLite file.

One process writes it. Killed at any point, it is right: what is not marked as done is done again.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Self

import attrs

from imgsvc_core.batch.events import DONE, FAILED, UNCHANGED, Event, Output
from imgsvc_core.batch.inputs import Input
from imgsvc_core.errors import TargetError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS inputs (
    key TEXT PRIMARY KEY,
    location TEXT NOT NULL,
    size INTEGER NOT NULL,
    stamp TEXT NOT NULL,
    digest TEXT NOT NULL DEFAULT '',
    work TEXT NOT NULL,
    source TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL,
    error TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    seconds REAL NOT NULL DEFAULT 0,
    run INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS inputs_by_state ON inputs (state, key);
CREATE TABLE IF NOT EXISTS outputs (
    path TEXT NOT NULL,
    key TEXT NOT NULL,
    variant TEXT NOT NULL,
    format TEXT NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    stale INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (path, key)
);
CREATE INDEX IF NOT EXISTS outputs_by_key ON outputs (key);
"""

WAITING, STARTED = "waiting", "started"

# What failed, and what an interrupted retry has left of it; or what an interrupted run has left.
_LEFT = {
    True: f"(state = '{FAILED}' OR (state IN ('{WAITING}', '{STARTED}') AND error != ''))",
    False: f"state IN ('{WAITING}', '{STARTED}')",
}
_OF_THIS_WORK = "source = ? AND work = ?"
_NO_FOLDER = "key NOT LIKE '%/'"
_PARTICULARS = re.compile(r"'[^']*'|\([^)]*\)|\d[\d,.]*")

_PAGES_AT_ONCE = 250  # of 4 kB, in the write-ahead log
_DISK_SHARE = 3  # of what is free
_RESERVE_BYTES, _RESERVE_PER_INPUT = 2**20, 800


def _writer(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path, timeout=1, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_AT_ONCE}")
    db.executescript(_SCHEMA)
    if "source" not in {row[1] for row in db.execute("PRAGMA table_info(inputs)")}:  # of an earlier version
        db.execute("ALTER TABLE inputs ADD COLUMN source TEXT NOT NULL DEFAULT ''")
        db.execute(
            "UPDATE inputs SET source = (SELECT value FROM settings WHERE name = 'source') "
            "WHERE run = (SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'run')"
        )
    return db


def _reader(path: Path) -> sqlite3.Connection:
    place = path.absolute().as_uri()
    try:
        return _opened(f"{place}?mode=ro")
    except sqlite3.OperationalError:  # readers share a file beside it, which cannot be made
        return _opened(f"{place}?immutable=1")


def _opened(uri: str) -> sqlite3.Connection:
    db = sqlite3.connect(uri, uri=True, timeout=1, isolation_level=None)
    try:
        db.execute("SELECT value FROM settings").fetchone()
    except BaseException:
        db.close()
        raise
    return db


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
    """The manifest in a file, only to be read if ``reading``.

    Raises `TargetError` where it cannot be opened, or another batch uses it.
    """

    def __init__(self, path: Path, *, reading: bool = False) -> None:
        self.path = path
        try:
            self._db = _reader(path) if reading else _writer(path)
        except (OSError, sqlite3.Error) as error:
            raise TargetError(f"Manifest '{path}' cannot be opened: {error}.") from error
        self._lock: sqlite3.Connection | None = None

    def lock(self) -> None:
        """Keep other batches from writing it; the lock ends with the process."""
        lock = sqlite3.connect(self.path.with_name(self.path.name + ".lock"), timeout=0, isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            lock.close()
            raise TargetError(f"Manifest '{self.path}' is used by a batch that is running.") from error
        self._lock = lock

    def begin(self, settings: dict[str, str]) -> int:
        """Start a run; its number. What a dead one had started waits again."""
        run = int(self.setting("run") or 0) + 1
        with self._change():
            self._db.execute("UPDATE inputs SET state = ? WHERE state = ?", (WAITING, STARTED))
            for name, value in {**settings, "run": str(run)}.items():
                self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))
        self._reserve(_RESERVE_BYTES)
        return run

    def finish_listing(self, source: str, run: int) -> None:
        """Remember that all inputs of this run are known, and forget failures of those that are gone."""
        with self._change():
            self._db.execute("INSERT OR REPLACE INTO settings VALUES ('listed', 'yes')")
            self._forget(self._gone(source, run))
        (count,) = self._db.execute("SELECT count(*) FROM inputs WHERE state = ?", (WAITING,)).fetchone()
        self._reserve(_RESERVE_BYTES + count * _RESERVE_PER_INPUT)

    def setting(self, name: str) -> str | None:
        """A setting of the last run."""
        row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def note(
        self,
        found: Sequence[Input],
        work: str,
        run: int,
        *,
        source: str,
        settled: Sequence[str] = (DONE,),
        folder: Path | None = None,
    ) -> int:
        """Take up inputs that were found; how many of them need nothing.

        Args:
            found: the inputs.
            work: a digest of what is done to them.
            run: the number of the run.
            source: what was searched.
            settled: states in which an input that has not changed stays as it is.
            folder: of the results, which must still be there; nothing where that would take too long.
        """
        skipped = 0
        with self._change():
            for item in found:
                if self.is_settled(item, work, settled, folder=folder):
                    self._db.execute(
                        "UPDATE inputs SET run = ?, source = ? WHERE key = ?", (run, source, item.key)
                    )
                    skipped += 1
                    continue
                # What another source's file of this name has given is not this one's to replace.
                self._db.execute(
                    "DELETE FROM outputs WHERE key = ? AND EXISTS "
                    "(SELECT 1 FROM inputs WHERE inputs.key = outputs.key AND location != ?)",
                    (item.key, item.location),
                )
                keep_digest = DONE in settled and self._has_results(item.key, folder)
                self._db.execute(
                    "INSERT INTO inputs (key, location, size, stamp, work, source, state, run) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
                    "ON CONFLICT (key) DO UPDATE SET digest = CASE WHEN ? AND state = 'done' AND "
                    "work = excluded.work AND location = excluded.location "
                    "AND (stamp != excluded.stamp OR stamp = '') THEN digest ELSE '' END, "
                    "location = excluded.location, size = excluded.size, "
                    "stamp = excluded.stamp, work = excluded.work, source = excluded.source, "
                    "state = excluded.state, run = excluded.run",
                    (item.key, item.location, item.size, item.stamp, work, source, WAITING, run, keep_digest),
                )
        return skipped

    def is_settled(
        self, item: Input, work: str, settled: Sequence[str] = (DONE,), *, folder: Path | None = None
    ) -> bool:
        """Whether the same work brought an input into one of these states, and nothing has changed since."""
        row = self._db.execute(
            "SELECT state FROM inputs WHERE key = ? AND location = ? AND stamp = ? AND work = ?",
            (item.key, item.location, item.stamp, work),
        ).fetchone()
        if row is None or not item.stamp or row[0] not in settled:
            return False
        return row[0] != DONE or self._has_results(item.key, folder)

    def wait_again(self, source: str, work: str, run: int, *, failed: bool) -> int:
        """Take up what an earlier run of the same work has left, or the files that failed; how many."""
        with self._change():
            return self._db.execute(
                "UPDATE inputs SET run = ?, state = ?, digest = '' "
                f"WHERE {_LEFT[failed]} AND {_OF_THIS_WORK} AND {_NO_FOLDER}",
                (run, WAITING, source, work),
            ).rowcount

    def left(self, source: str, work: str, *, failed: bool) -> Iterator[Input]:
        """What `wait_again` would take up."""
        for row in self._db.execute(
            "SELECT key, location, size, stamp FROM inputs "
            f"WHERE {_LEFT[failed]} AND {_OF_THIS_WORK} AND {_NO_FOLDER}",
            (source, work),
        ):
            yield Input(key=row[0], location=row[1], size=row[2], stamp=row[3])

    def unlisted(self, source: str) -> list[str]:
        """The keys of the folders of a source that could not be listed."""
        rows = self._db.execute(
            f"SELECT key FROM inputs WHERE state = ? AND source = ? AND NOT ({_NO_FOLDER}) ORDER BY key",
            (FAILED, source),
        )
        return [row[0] for row in rows]

    def finish_folders(self, folders: Sequence[str], run: int) -> None:
        """Forget that folders could not be listed, unless this run met that again."""
        with self._change():
            self._forget(
                key
                for key in folders
                if self._db.execute("SELECT 1 FROM inputs WHERE key = ? AND run < ?", (key, run)).fetchone()
            )

    def is_taken_up(self, key: str, run: int) -> bool:
        """Whether an input is one of this run already."""
        row = self._db.execute("SELECT 1 FROM inputs WHERE key = ? AND run = ?", (key, run)).fetchone()
        return row is not None

    def waiting(self, run: int, *, most: int) -> list[tuple[Input, str]]:
        """Some inputs of a run, marked as started; and the digests of those that may be the same."""
        with self._change():
            rows = self._db.execute(
                "SELECT key, location, size, stamp, digest FROM inputs WHERE state = ? AND run = ? LIMIT ?",
                (WAITING, run, most),
            ).fetchall()
            self._db.executemany(
                "UPDATE inputs SET state = ? WHERE key = ?", [(STARTED, row[0]) for row in rows]
            )
        return [
            (Input(key=key, location=location, size=size, stamp=stamp), digest)
            for key, location, size, stamp, digest in rows
        ]

    def still_waiting(self, run: int) -> Iterator[Input]:
        """The inputs of a run that nobody has begun; nothing is marked."""
        rows = self._db.execute(
            "SELECT key, location, size, stamp FROM inputs WHERE state = ? AND run = ?", (WAITING, run)
        )
        for key, location, size, stamp in rows:
            yield Input(key=key, location=location, size=size, stamp=stamp)

    def owned(self, key: str) -> frozenset[str]:
        """The outputs that an input had before, which may be replaced."""
        rows = self._db.execute("SELECT path FROM outputs WHERE key = ?", (key,))
        return frozenset(row[0] for row in rows)

    def settle(self, events: Iterable[Event]) -> tuple[list[Event], int]:
        """Remember outcomes.

        Returns them as they are now, where an output that belongs to another input is a failure; and how many
        inputs are to be done again, as such an output may have replaced theirs.
        """
        settled, reopened = [], 0
        with self._change():
            for event in events:
                found = next(filter(None, (self._collision(event, output) for output in event.outputs)), None)
                if found is not None:
                    event, owner = found
                    reopened += self._reopen(owner, event.key)
                self._remember(event)
                settled.append(event)
        return settled, reopened

    def digest(self, key: str) -> str | None:
        """The SHA-256 of an input when it was worked on last."""
        row = self._db.execute("SELECT digest FROM inputs WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else None

    def totals(self) -> Totals:
        """Numbers over all runs."""
        inputs, done, failed, size = self._db.execute(
            "SELECT count(*), count(*) FILTER (WHERE state = 'done'), "
            "count(*) FILTER (WHERE state = 'failed'), "
            "coalesce(sum(size) FILTER (WHERE state = 'done'), 0) FROM inputs"
        ).fetchone()
        (written,) = self._db.execute(
            "SELECT coalesce(sum(bytes), 0) FROM (SELECT DISTINCT path, bytes FROM outputs WHERE NOT stale)"
        ).fetchone()
        return Totals(inputs=inputs, done=done, failed=failed, bytes_in=size, bytes_out=written)

    def reasons(self, *, keys: int = 5) -> list[Reason]:
        """Why inputs failed, the most frequent first; names and numbers do not make reasons differ."""
        found: dict[tuple[str, str], Reason] = {}
        for key, error, message in self.failures():
            alike = error, _PARTICULARS.sub("", message)
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
            "SELECT inputs.key, location, size FROM inputs JOIN outputs ON outputs.key = inputs.key "
            "WHERE state = ? AND NOT stale GROUP BY inputs.key ORDER BY size - max(bytes) DESC LIMIT ?",
            (DONE, most),
        ).fetchall()
        return [(key, location, size, self._outputs(key)) for key, location, size in rows]

    def close(self) -> None:
        """Close the file, and give up the lock."""
        self._db.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reopen(self, owner: str, beside: str) -> int:
        """Let an input be done again; in the run of another, and counted, if the work is the same."""
        reopened = self._db.execute(
            "UPDATE inputs SET state = ?, digest = '' WHERE key = ? AND state = ?", (WAITING, owner, DONE)
        )
        if not reopened.rowcount:
            return 0
        return self._db.execute(
            "UPDATE inputs SET run = other.run FROM (SELECT run, source, work FROM inputs WHERE key = ?) "
            "AS other WHERE key = ? AND inputs.source = other.source AND inputs.work = other.work",
            (beside, owner),
        ).rowcount

    def _has_results(self, key: str, folder: Path | None) -> bool:
        """Whether the results of an input are there, as far as that can be told in no time."""
        return folder is None or all((folder / output.path).exists() for output in self._outputs(key))

    def _gone(self, source: str, run: int) -> list[str]:
        """What failed or waits, and was not found again, though its folder could be listed."""
        hidden = tuple(
            "" if key == "./" else key for key in self.unlisted(source) if self.is_taken_up(key, run)
        )
        rows = self._db.execute(
            "SELECT key FROM inputs WHERE state IN (?, ?) AND source = ? AND run < ?",
            (FAILED, WAITING, source, run),
        )
        return [row[0] for row in rows if not row[0].startswith(hidden)]

    def _forget(self, keys: Iterable[str]) -> None:
        for key in tuple(keys):
            self._db.execute("UPDATE outputs SET stale = 1 WHERE key = ?", (key,))
            self._db.execute("DELETE FROM inputs WHERE key = ?", (key,))

    def _reserve(self, size: int) -> None:
        """Take room for what is to be remembered, so that even on a full disk failures are told.

        On a small disk that is less, and on a full one nothing.
        """
        size = min(size, shutil.disk_usage(self.path.parent).free // _DISK_SHARE)
        (free,) = self._db.execute("PRAGMA freelist_count").fetchone()
        (page,) = self._db.execute("PRAGMA page_size").fetchone()
        if free * page >= size:
            return
        part = max(8 * page, min(size // 4, _RESERVE_BYTES))  # the log takes as much as each
        self._db.execute(f"PRAGMA wal_autocheckpoint = {min(_PAGES_AT_ONCE, max(8, part // page // 2))}")
        with contextlib.suppress(TargetError):
            with self._change():
                self._db.execute("CREATE TABLE IF NOT EXISTS reserve (room BLOB)")
            for _ in range(size // part):
                with self._change():
                    self._db.execute("INSERT INTO reserve VALUES (zeroblob(?))", (part,))
                self._db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        with contextlib.suppress(TargetError):
            with self._change():
                self._db.execute("DROP TABLE IF EXISTS reserve")
            self._db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()

    def _remember(self, event: Event) -> None:
        state = DONE if event.outcome == UNCHANGED else event.outcome
        self._db.execute(
            "UPDATE inputs SET state = ?, size = ?, digest = ?, error = ?, message = ?, seconds = ? "
            "WHERE key = ?",
            (state, event.bytes, event.digest, event.error, event.message, event.seconds, event.key),
        )
        if event.outcome == DONE:
            # Results of other work on this input stay its own, for when that work is done again.
            self._db.execute("UPDATE outputs SET stale = 1 WHERE key = ?", (event.key,))
            self._db.executemany(
                "INSERT OR REPLACE INTO outputs (path, key, variant, format, width, height, bytes) "
                "VALUES (:path, :key, :variant, :format, :width, :height, :bytes)",
                [{**attrs.asdict(output), "key": event.key} for output in event.outputs],
            )

    def _collision(self, event: Event, output: Output) -> tuple[Event, str] | None:
        """The failure that an event is where one of its outputs belongs to another input; and that one."""
        row = self._db.execute(
            "SELECT key FROM outputs JOIN inputs USING (key) "
            "WHERE path = ? AND key != ? AND NOT stale AND digest != ?",
            (output.path, event.key, event.digest),
        ).fetchone()
        if row is None:  # or from a copy of this input, whose result is the same
            return None
        message = (
            f"Its result '{output.path}' has the name of the result of '{row[0]}': use a template that "
            "tells them apart."
        )
        failure = attrs.evolve(event, outcome=FAILED, outputs=(), error="name_collision", message=message)
        return failure, str(row[0])

    @contextlib.contextmanager
    def _change(self) -> Iterator[None]:
        """All of a change, or nothing of it."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except BaseException as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise TargetError(
                    f"Manifest '{self.path}' cannot be written: {error}. Mend that, and go on with --resume."
                ) from error
            raise

    def _outputs(self, key: str) -> list[Output]:
        with closing(
            self._db.execute(
                "SELECT variant, path, format, width, height, bytes FROM outputs "
                "WHERE key = ? AND NOT stale ORDER BY path",
                (key,),
            )
        ) as rows:
            return [
                Output(variant=variant, path=path, format=format_, width=width, height=height, bytes=size)
                for variant, path, format_, width, height, size in rows
            ]
