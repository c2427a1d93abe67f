"""The memory of a batch: every input, what became of it, and its outputs, in an SQLite file.

One process writes it. Killed at any point, it is right: what is not marked as done is done again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Self

import attrs

from imgsvc_core.batch.events import Event, Output
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
    state TEXT NOT NULL,
    error TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    seconds REAL NOT NULL DEFAULT 0,
    run INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS inputs_by_state ON inputs (state, key);
CREATE TABLE IF NOT EXISTS outputs (
    path TEXT PRIMARY KEY,
    key TEXT NOT NULL,
    variant TEXT NOT NULL,
    format TEXT NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    bytes INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS outputs_by_key ON outputs (key);
"""

WAITING, STARTED, DONE, FAILED = "waiting", "started", "done", "failed"


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
    """The manifest in a file; `TargetError` where it cannot be opened, or another batch uses it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=1, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.executescript(_SCHEMA)
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
        """Start a run; its number."""
        with self._db:
            run = int(self.setting("run") or 0) + 1
            for name, value in {**settings, "run": str(run)}.items():
                self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))
        return run

    def setting(self, name: str) -> str | None:
        """A setting of the last run."""
        row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def note(self, found: Sequence[Input], work: str, run: int, *, force: bool = False) -> int:
        """Take up inputs that were found; how many of them are done already and have not changed since.

        ``work`` is a digest of what is done to them.
        """
        skipped = 0
        self._db.execute("BEGIN")
        for item in found:
            if not force and self.is_done(item, work):
                self._db.execute("UPDATE inputs SET run = ? WHERE key = ?", (run, item.key))
                skipped += 1
                continue
            row = self._db.execute("SELECT state FROM inputs WHERE key = ?", (item.key,)).fetchone()
            # What was under way when a process died may have left outputs that nobody knows of.
            state = STARTED if row == (STARTED,) else WAITING
            self._db.execute(
                "INSERT INTO inputs (key, location, size, stamp, work, state, run) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET location = excluded.location, size = excluded.size, "
                "stamp = excluded.stamp, work = excluded.work, state = excluded.state, run = excluded.run",
                (item.key, item.location, item.size, item.stamp, work, state, run),
            )
        self._db.execute("COMMIT")
        return skipped

    def is_done(self, item: Input, work: str) -> bool:
        """Whether an input was done by the same work, and has not changed since."""
        row = self._db.execute("SELECT stamp, work, state FROM inputs WHERE key = ?", (item.key,)).fetchone()
        return row == (item.stamp, work, DONE) and bool(item.stamp)

    def wait_again(self, run: int, *, failed: bool) -> int:
        """Take up what an earlier run has left, or what failed; how much there is."""
        states = (FAILED,) if failed else (WAITING, STARTED)
        marks = ", ".join("?" * len(states))
        changed = self._db.execute(
            "UPDATE inputs SET run = ?, state = CASE state WHEN ? THEN ? ELSE ? END "
            f"WHERE state IN ({marks})",
            (run, STARTED, STARTED, WAITING, *states),
        )
        return changed.rowcount

    def waiting(self, run: int, *, most: int) -> list[tuple[Input, bool]]:
        """Some inputs of a run to work on, marked as started; and whether each was started before."""
        rows = self._db.execute(
            "SELECT key, location, size, stamp, state FROM inputs "
            "WHERE run = ? AND state IN (?, ?) AND key NOT IN (SELECT key FROM under_way) "
            "ORDER BY key LIMIT ?",
            (run, WAITING, STARTED, most),
        ).fetchall()
        self._db.execute("BEGIN")
        for row in rows:
            self._db.execute("UPDATE inputs SET state = ? WHERE key = ?", (STARTED, row[0]))
            self._db.execute("INSERT INTO under_way VALUES (?)", (row[0],))
        self._db.execute("COMMIT")
        return [
            (Input(key=key, location=location, size=size, stamp=stamp), state == STARTED)
            for key, location, size, stamp, state in rows
        ]

    def owned(self, key: str) -> frozenset[str]:
        """The outputs that an input had before, which may be replaced."""
        rows = self._db.execute("SELECT path FROM outputs WHERE key = ?", (key,))
        return frozenset(row[0] for row in rows)

    def settle(self, events: Iterable[Event]) -> list[Event]:
        """Remember outcomes; as they are now: an output that belongs to another input is a failure."""
        settled = []
        self._db.execute("BEGIN")
        for event in events:
            for output in event.outputs:
                owner = self._owner(output)
                if owner not in (None, event.key):
                    event = _collision(event, output, owner or "")
                    break
            state = DONE if event.outcome == DONE else FAILED
            self._db.execute(
                "UPDATE inputs SET state = ?, digest = ?, error = ?, message = ?, seconds = ? WHERE key = ?",
                (state, event.digest, event.error, event.message, event.seconds, event.key),
            )
            self._db.execute("DELETE FROM under_way WHERE key = ?", (event.key,))
            if state == DONE:
                self._db.execute("DELETE FROM outputs WHERE key = ?", (event.key,))
                self._db.executemany(
                    "INSERT INTO outputs VALUES (:path, :key, :variant, :format, :width, :height, :bytes)",
                    [{**attrs.asdict(output), "key": event.key} for output in event.outputs],
                )
            settled.append(event)
        self._db.execute("COMMIT")
        return settled

    def clear_under_way(self) -> None:
        """Forget what this process had under way; at the start of a run."""
        self._db.execute("CREATE TEMP TABLE IF NOT EXISTS under_way (key TEXT PRIMARY KEY)")
        self._db.execute("DELETE FROM under_way")

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
        (written,) = self._db.execute("SELECT coalesce(sum(bytes), 0) FROM outputs").fetchone()
        return Totals(inputs=inputs, done=done, failed=failed, bytes_in=size, bytes_out=written)

    def reasons(self, *, keys: int = 5) -> list[Reason]:
        """Why inputs failed, the most frequent first."""
        rows = self._db.execute(
            "SELECT error, min(message), count(*) FROM inputs WHERE state = ? GROUP BY error "
            "ORDER BY count(*) DESC, error",
            (FAILED,),
        ).fetchall()
        found = []
        for error, message, count in rows:
            some = self._db.execute(
                "SELECT key FROM inputs WHERE state = ? AND error = ? ORDER BY key LIMIT ?",
                (FAILED, error, keys),
            )
            names = tuple(row[0] for row in some)
            found.append(Reason(error=error, message=message, count=count, keys=names))
        return found

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
            "WHERE state = ? GROUP BY inputs.key ORDER BY size - max(bytes) DESC LIMIT ?",
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

    def _owner(self, output: Output) -> str | None:
        row = self._db.execute("SELECT key FROM outputs WHERE path = ?", (output.path,)).fetchone()
        return str(row[0]) if row else None

    def _outputs(self, key: str) -> list[Output]:
        with closing(
            self._db.execute(
                "SELECT variant, path, format, width, height, bytes FROM outputs WHERE key = ? ORDER BY path",
                (key,),
            )
        ) as rows:
            return [
                Output(variant=variant, path=path, format=format_, width=width, height=height, bytes=size)
                for variant, path, format_, width, height, size in rows
            ]


def _collision(event: Event, output: Output, owner: str) -> Event:
    message = (
        f"Its result '{output.path}' has the name of the result of '{owner}': use a template that tells "
        "them apart."
    )
    return attrs.evolve(event, outcome=FAILED, outputs=(), error="name_collision", message=message)
