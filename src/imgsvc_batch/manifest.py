"""The memory of a batch: the outcome of each input and the owner of each result, in an SQLite file.

The file holds outcomes only. The next run processes inputs without an outcome, so a crash leaves nothing to
repair.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import starmap
from pathlib import Path, PurePosixPath
from typing import Self

import attrs

from imgsvc_batch.events import Event, Output
from imgsvc_batch.inputs import Input, belonging
from imgsvc_core import TargetError
from imgsvc_core.errors import os_reason

_VERSION = 1

# Sources may overlap and share a target, so an input is identified by its path below the source and by its
# location. An input without a fingerprint has no recorded outcome, but keeps its results: no other input may
# replace them. It also keeps the outputs of earlier runs, which are not current.
_TABLES = f"""
BEGIN IMMEDIATE;
CREATE TABLE batches (
    source TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    target TEXT NOT NULL,
    PRIMARY KEY (source, fingerprint)
);
CREATE TABLE inputs (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    location TEXT NOT NULL,
    fingerprint TEXT NOT NULL DEFAULT '',
    size INTEGER NOT NULL DEFAULT 0,
    stamp TEXT NOT NULL DEFAULT '',
    digest TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    UNIQUE (key, location)
);
CREATE INDEX failures ON inputs (key) WHERE error != '';
CREATE TABLE outputs (
    path TEXT PRIMARY KEY,
    input INTEGER NOT NULL,
    variant TEXT NOT NULL,
    format TEXT NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    facts TEXT NOT NULL,
    current INTEGER NOT NULL DEFAULT TRUE
) WITHOUT ROWID;
CREATE INDEX outputs_by_input ON outputs (input);
PRAGMA user_version = {_VERSION};
COMMIT
"""
_BESIDE = "", "-wal", "-shm", "-journal", ".lock"
"""The suffixes of the files that SQLite and the lock put beside a manifest."""

_PARTICULARS = re.compile(r"'[^']*'|\([^)]*\)|\d[\d,.]*")


@attrs.frozen
class Known:
    """The record of an input in the manifest."""

    id: int
    key: str
    location: str
    fingerprint: str
    size: int
    stamp: str
    digest: str
    error: str

    def is_input(self, item: Input) -> bool:
        """Return True if the record belongs to this input."""
        return (self.key, self.location) == (item.key, item.location)


_OF_OUTPUT = tuple(attrs.fields_dict(Output))
_OUTPUT = ", ".join(_OF_OUTPUT)
_KNOWN = "id, key, location, fingerprint, size, stamp, digest, error"


@attrs.frozen(kw_only=True)
class Reason:
    """An error that inputs failed with, and some of those inputs."""

    error: str
    message: str
    count: int
    keys: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Totals:
    """The number of inputs by outcome, and the bytes of the done ones before and after."""

    inputs: int
    done: int
    failed: int
    bytes_in: int
    bytes_out: int


class Manifest:
    """A manifest in a file. Only one process at a time can open it for writing.

    With ``reading``, a file that does not exist is an empty manifest. Only its owner can read a ``private``
    one, as it holds URLs with secrets.

    Raise `TargetError` if the file cannot be opened or is in use.
    """

    def __init__(self, path: Path, *, reading: bool = False, private: bool = False) -> None:
        self.path = path
        self._lock = -1
        try:
            self._db = _open_to_read(path) if reading else self._open_to_write(private)
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
        except (OSError, sqlite3.Error) as error:
            self._unlock()
            raise TargetError(f"Manifest '{path}' cannot be opened: {os_reason(error)}.") from error
        if version != _VERSION:
            self.close()
            raise TargetError(
                f"Manifest '{path}' is of another version of imgsvc: use that one, or another manifest."
            )

    def _open_to_write(self, private: bool) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it ends with the process
        except BlockingIOError as error:
            raise OSError("a batch that is running uses it") from error
        if private:  # SQLite gives the files beside it the same mode
            self.path.touch(0o600)
            self.path.chmod(0o600)
        db = sqlite3.connect(self.path, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            if not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                db.executescript(_TABLES)
        except BaseException:
            db.close()
            raise
        return db

    def begin(self, source: str, fingerprint: str, target: str, *, force: bool) -> None:
        """Record that a batch began. With ``force``, all of its inputs are processed again."""
        with self.change():
            self._db.execute("INSERT OR REPLACE INTO batches VALUES (?, ?, ?)", (source, fingerprint, target))
            if force:
                rows = self._db.execute(f"SELECT {_KNOWN} FROM inputs WHERE fingerprint = ?", (fingerprint,))
                belongs = belonging(source)
                again = [(known.id,) for known in starmap(Known, rows) if belongs(known.key, known.location)]
                self._db.executemany("UPDATE inputs SET stamp = '', digest = '' WHERE id = ?", again)

    @contextlib.contextmanager
    def change(self) -> Iterator[None]:
        """Write all changes of the block or none. Raise `TargetError` if they cannot be written."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except BaseException as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise TargetError(
                    f"Manifest '{self.path}' cannot be written: {os_reason(error)}. "
                    "Repair that, and run the same batch with resume."
                ) from error
            raise

    def record_outputs(self, item: Input, event: Event) -> None:
        """Record the outputs of an input. The input has no outcome until `record` writes it."""
        (id,) = self._db.execute(
            "INSERT INTO inputs (key, location, digest) VALUES (?, ?, ?) ON CONFLICT (key, location) "
            "DO UPDATE SET fingerprint = '', error = '', digest = excluded.digest RETURNING id",
            (item.key, item.location, event.digest),
        ).fetchone()
        self._db.execute("UPDATE outputs SET current = FALSE WHERE input = ?", (id,))
        self._db.executemany(
            f"INSERT OR REPLACE INTO outputs ({_OUTPUT}, input) "
            "VALUES (:variant, :path, :format, :width, :height, :bytes, :facts, :input)",
            [{**attrs.asdict(made), "facts": json.dumps(made.facts), "input": id} for made in event.outputs],
        )

    def record_outcome(self, item: Input, fingerprint: str, event: Event) -> None:
        """Write the outcome of an input."""
        self._db.execute(
            "INSERT INTO inputs (key, location, fingerprint, size, stamp, digest, error, message) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key, location) DO UPDATE SET "
            "fingerprint = excluded.fingerprint, size = excluded.size, stamp = excluded.stamp, "
            "digest = excluded.digest, error = excluded.error, message = excluded.message",
            (
                item.key, item.location, fingerprint, event.bytes, item.stamp, event.digest,
                event.error, event.message,
            ),
        )  # fmt: skip

    def record_stamp(self, item: Input) -> None:
        """Write the stamp of an input whose content has not changed."""
        self._db.execute(
            "UPDATE inputs SET stamp = ? WHERE key = ? AND location = ?",
            (item.stamp, item.key, item.location),
        )

    def delete_outputs(self, paths: Iterable[str]) -> None:
        """Delete outputs by their paths. No input owns these paths afterwards."""
        self._db.executemany("DELETE FROM outputs WHERE path = ?", [(path,) for path in paths])

    def clear_outcome(self, ids: Iterable[int]) -> None:
        """Delete the outcomes of inputs. The inputs keep their outputs."""
        self._db.executemany(
            "UPDATE inputs SET fingerprint = '', error = '' WHERE id = ?", [(id,) for id in ids]
        )

    def delete_inputs(self, ids: Iterable[int]) -> None:
        """Delete inputs and their outputs."""
        rows = [(id,) for id in ids]
        self._db.executemany("DELETE FROM outputs WHERE input = ?", rows)
        self._db.executemany("DELETE FROM inputs WHERE id = ?", rows)

    def has_run(self, source: str, fingerprint: str) -> bool:
        """Return True if a batch with this fingerprint was run on this source, or no batch at all."""
        row = self._db.execute(
            "SELECT count(*), coalesce(sum(source = ? AND fingerprint = ?), 0) FROM batches",
            (source, fingerprint),
        ).fetchone()
        return bool(row[0] == 0 or row[1])

    def find(self, item: Input) -> Known | None:
        """Return the record of an input."""
        return self._known("key = ? AND location = ?", item.key, item.location)

    def input_of_output(self, path: str) -> Known | None:
        """Return the input that an output belongs to."""
        return self._known("id = (SELECT input FROM outputs WHERE path = ?)", path)

    def _known(self, condition: str, *values: str) -> Known | None:
        row = self._db.execute(f"SELECT {_KNOWN} FROM inputs WHERE {condition}", values).fetchone()
        return None if row is None else Known(*row)

    def output_paths(self, item: Input) -> frozenset[str]:
        """Return the paths of an input's outputs, including outputs of earlier runs."""
        rows = self._db.execute(
            "SELECT path FROM outputs JOIN inputs ON id = input WHERE key = ? AND location = ?",
            (item.key, item.location),
        )
        return frozenset(path for (path,) in rows)

    def current_paths(self, id: int) -> list[str]:
        """Return the paths of the results of an input's last run."""
        rows = self._db.execute("SELECT path FROM outputs WHERE input = ? AND current", (id,))
        return [path for (path,) in rows]

    def failures_of(self, source: str) -> dict[str, Known]:
        """Return the inputs of a source that failed, by key."""
        rows = self._db.execute(f"SELECT {_KNOWN} FROM inputs WHERE error != ''")
        belongs = belonging(source)
        return {known.key: known for known in starmap(Known, rows) if belongs(known.key, known.location)}

    def target(self) -> str | None:
        """Return the target of the last batch."""
        row = self._db.execute("SELECT target FROM batches ORDER BY rowid DESC LIMIT 1").fetchone()
        return str(row[0]) if row else None

    def totals(self) -> Totals:
        """Return the numbers over all batches."""
        inputs, done, failed, bytes_in = self._db.execute(
            "SELECT count(*), count(*) FILTER (WHERE error = ''), count(*) FILTER (WHERE error != ''), "
            "coalesce(sum(size) FILTER (WHERE error = ''), 0) FROM inputs WHERE fingerprint != ''"
        ).fetchone()
        (bytes_out,) = self._db.execute(
            "SELECT coalesce(sum(bytes), 0) FROM outputs JOIN inputs ON id = input "
            "WHERE current AND error = '' AND fingerprint != ''"
        ).fetchone()
        return Totals(inputs=inputs, done=done, failed=failed, bytes_in=bytes_in, bytes_out=bytes_out)

    def reasons(self, *, keys: int = 5) -> list[Reason]:
        """Return the errors of failed inputs, most frequent first. Names and numbers make no difference."""
        found: dict[tuple[str, str], Reason] = {}
        for key, error, message in self.failures():
            without_name = message.replace(f"{PurePosixPath(key).name}'", "'")  # it may hold quotes
            alike = error, _PARTICULARS.sub("", without_name)
            reason = found.get(alike) or Reason(error=error, message=message, count=0, keys=())
            named = (*reason.keys, key)[:keys]
            found[alike] = attrs.evolve(reason, count=reason.count + 1, keys=named)
        return sorted(found.values(), key=lambda reason: -reason.count)

    def failures(self) -> Iterator[tuple[str, str, str]]:
        """Return key, slug of the error and message of every input that failed."""
        yield from self._db.execute("SELECT key, error, message FROM inputs WHERE error != '' ORDER BY key")

    def done(self, *, most: int) -> list[tuple[str, str, int, list[Output]]]:
        """Return key, location, size and outputs of the done inputs that saved the most bytes."""
        rows = self._db.execute(
            "SELECT id, key, location, size FROM inputs JOIN outputs ON input = id "
            "WHERE fingerprint != '' AND error = '' AND current "
            "GROUP BY id ORDER BY size - max(bytes) DESC LIMIT ?",
            (most,),
        ).fetchall()
        return [(key, location, size, self._outputs(id)) for id, key, location, size in rows]

    def close(self) -> None:
        """Close the file, and let other processes open it."""
        self._db.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _outputs(self, id: int) -> list[Output]:
        query = f"SELECT {_OUTPUT} FROM outputs WHERE input = ? AND current ORDER BY path"
        found = [dict(zip(_OF_OUTPUT, row, strict=True)) for row in self._db.execute(query, (id,))]
        return [Output(**{**row, "facts": json.loads(row["facts"])}) for row in found]


def files_of(manifest: Path) -> frozenset[str]:
    """Return the paths of all files of a manifest, and of the file that a link leads to.

    Links to folders are resolved in these paths.
    """
    return frozenset(
        os.path.join(os.path.realpath(path.parent), path.name + suffix)
        for path in (manifest, Path(os.path.realpath(manifest)))
        for suffix in _BESIDE
    )


def _open_to_read(path: Path) -> sqlite3.Connection:
    if not path.exists():
        db = sqlite3.connect(":memory:", isolation_level=None)
        db.executescript(_TABLES)
        return db
    place = path.absolute().as_uri()
    try:
        db = _try_to_read(f"{place}?mode=rw")  # a writer removes the files beside it at the end
        db.execute("PRAGMA query_only = ON")
        return db
    except sqlite3.OperationalError:  # a read-only disk cannot hold the file that readers share
        return _try_to_read(f"{place}?immutable=1")


def _try_to_read(uri: str) -> sqlite3.Connection:
    db = sqlite3.connect(uri, uri=True, isolation_level=None)
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BaseException:
        db.close()
        raise
    return db
