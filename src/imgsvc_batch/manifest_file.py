"""The file of a manifest: its tables, how it is opened, locked and changed, and room that is kept in it."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from imgsvc_core.errors import TargetError

FULL = "the disk is full"

_VERSION = 1

# An input is told from others by where it is, as several sources may share a target; and by its key, as one
# of the sources may be a folder of the other. Its batch is what was searched when it was found last, and for
# what work. A result of earlier work is stale: still its own, but none of what there is now.
_TABLES = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE batches (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    work TEXT NOT NULL,
    UNIQUE (source, work)
);
CREATE TABLE inputs (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    location TEXT NOT NULL,
    size INTEGER NOT NULL,
    stamp TEXT NOT NULL,
    digest TEXT NOT NULL DEFAULT '',
    batch INTEGER NOT NULL,
    run INTEGER NOT NULL,
    state TEXT NOT NULL,
    error TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    seconds REAL NOT NULL DEFAULT 0,
    UNIQUE (key, location)
);
CREATE INDEX inputs_by_state ON inputs (state, batch, run);
CREATE TABLE outputs (
    path TEXT NOT NULL,
    input INTEGER NOT NULL,
    variant TEXT NOT NULL,
    format TEXT NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    stale INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (path, input)
) WITHOUT ROWID;
CREATE INDEX outputs_by_input ON outputs (input);
"""

# Of version 1.0, where a key was all that told an input from others.
_SET_ASIDE = """
DROP TABLE IF EXISTS reserve;
DROP INDEX inputs_by_state;
DROP INDEX outputs_by_key;
ALTER TABLE settings RENAME TO earlier_settings;
ALTER TABLE inputs RENAME TO earlier_inputs;
ALTER TABLE outputs RENAME TO earlier_outputs;
"""
_TAKE_OVER = """
INSERT INTO settings SELECT name, value FROM earlier_settings;
INSERT INTO batches (source, work) SELECT DISTINCT source, work FROM earlier_inputs;
INSERT INTO inputs (key, location, size, stamp, digest, batch, run, state, error, message, seconds)
    SELECT key, location, size, stamp, digest, batches.id, run, state, error, message, seconds
    FROM earlier_inputs JOIN batches USING (source, work);
INSERT INTO outputs (path, input, variant, format, width, height, bytes, stale)
    SELECT path, inputs.id, variant, format, width, height, bytes, stale
    FROM earlier_outputs JOIN inputs USING (key);
DROP TABLE earlier_settings;
DROP TABLE earlier_inputs;
DROP TABLE earlier_outputs;
"""
_ADD_SOURCE = """
ALTER TABLE inputs ADD COLUMN source TEXT NOT NULL DEFAULT '';
UPDATE inputs SET source = (SELECT value FROM settings WHERE name = 'source')
    WHERE run = (SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'run');
"""

_PAGES_AT_ONCE = 250  # of 4 kB, in the write-ahead log
_DISK_SHARE = 3  # of what is free
_STEP_BYTES = 2**20
_ROOM_FOR_NEW, _ROOM_FOR_KNOWN = 112 * 2**10, 48 * 2**10  # the tables, the log, and what its readers share
_NO_ROOM = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
_BESIDE = "-wal", "-shm", "-journal"  # what SQLite puts beside a file
_STEPS_BETWEEN_SIGNALS = 10_000  # of SQLite's machine: some milliseconds


class ManifestFile:
    """An SQLite file that one process writes, and only to be read if ``reading``.

    One of an earlier version is brought to this one; where it is only to be read, in memory.

    Raises `TargetError` where it cannot be opened, is of a later version, or is of an earlier one and used by
    another batch.
    """

    def __init__(self, path: Path, *, reading: bool) -> None:
        self.path = path
        self._lock: sqlite3.Connection | None = None
        try:
            self.db = _reader(path) if reading else self._writer()
        except (OSError, sqlite3.Error) as error:
            raise TargetError(f"Manifest '{path}' cannot be opened: {_reason(error, path)}.") from error

    def lock(self) -> None:
        """Keep other batches from writing it; the lock ends with the process."""
        lock = None
        try:
            lock = sqlite3.connect(_lock_of(self.path), timeout=0, isolation_level=None)
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if lock is not None:
                lock.close()
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise TargetError(f"Manifest '{self.path}' is used by a batch that is running.") from error
            raise TargetError(
                f"Manifest '{self.path}' cannot be locked by '{_lock_of(self.path)}': "
                f"{_reason(error, self.path)}."
            ) from error
        self._lock = lock

    def unlock(self) -> None:
        """Give up the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def close(self) -> None:
        """Close the file, and give up the lock."""
        self.db.close()
        self.unlock()

    @contextlib.contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """All of a change, or nothing of it; `TargetError` where it cannot be written."""
        try:
            self.db.execute("BEGIN IMMEDIATE")
            yield self.db
            self.db.execute("COMMIT")
        except BaseException as error:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                reason = _reason(error, self.path)
                raise TargetError(
                    f"Manifest '{self.path}' cannot be written: {reason}. Mend that, and go on with --resume."
                ) from error
            raise

    def reserve(self, size: int) -> None:
        """Take room for what is to be remembered, so that even on a full disk failures are told.

        On a small disk that is less, and on a full one nothing.
        """
        size = min(size, shutil.disk_usage(self.path.parent).free // _DISK_SHARE)
        (free,) = self.db.execute("PRAGMA freelist_count").fetchone()
        (page,) = self.db.execute("PRAGMA page_size").fetchone()
        if free * page >= size:
            return
        part = max(8 * page, min(size // 4, _STEP_BYTES))  # the log takes as much as each
        self.db.execute(f"PRAGMA wal_autocheckpoint = {min(_PAGES_AT_ONCE, max(8, part // page // 2))}")
        with contextlib.suppress(TargetError, sqlite3.Error):
            with self.change() as db:
                db.execute("CREATE TABLE IF NOT EXISTS reserve (room BLOB)")
            for _ in range(size // part):
                with self.change() as db:
                    db.execute("INSERT INTO reserve VALUES (zeroblob(?))", (part,))
                self.db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        with contextlib.suppress(TargetError, sqlite3.Error):
            with self.change() as db:
                db.execute("DROP TABLE IF EXISTS reserve")
            self.db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()

    def _writer(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=1, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_AT_ONCE}")
            if _version(db, self.path) < _VERSION:
                self.lock()  # from a batch of an earlier version that is running
                _bring_up(db)
        except BaseException:
            db.close()
            raise
        finally:
            self.unlock()
        return db


def places_of(manifest: Path) -> frozenset[str]:
    """Where a manifest is, what it leads to where it is a link, and all that is beside them.

    The folders of these places are no links.
    """
    files = [file for path in (manifest, Path(os.path.realpath(manifest))) for file in (path, _lock_of(path))]
    return frozenset(
        os.path.join(os.path.realpath(file.parent), file.name + ending)
        for file in files
        for ending in ("", *_BESIDE)
    )


def room_to_open(path: Path) -> int:
    """How many bytes of its disk a run takes before it can begin."""
    if path.with_name(path.name + "-shm").exists():  # from a run that was killed
        return 0
    return _ROOM_FOR_KNOWN if path.exists() else _ROOM_FOR_NEW


def _reason(error: Exception, path: Path) -> str:
    """What an error says; of a full disk, SQLite sometimes says less."""
    with contextlib.suppress(OSError):
        starved = isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in _NO_ROOM
        if starved and shutil.disk_usage(path.parent).free < _ROOM_FOR_NEW:
            return FULL
    return str(error)


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _reader(path: Path) -> sqlite3.Connection:
    place = path.absolute().as_uri()
    try:
        db = _opened(f"{place}?mode=ro")
    except sqlite3.OperationalError:  # readers share a file beside it, which cannot be made
        db = _opened(f"{place}?immutable=1")
    try:
        if _version(db, path) == _VERSION:
            return db
        with closing(db):
            copy = sqlite3.connect(":memory:", isolation_level=None)
            db.backup(copy)
        _bring_up(copy)
    except BaseException:
        db.close()
        raise
    return copy


def _opened(uri: str) -> sqlite3.Connection:
    db = sqlite3.connect(uri, uri=True, timeout=1, isolation_level=None)
    try:
        db.execute("SELECT value FROM settings").fetchone()
    except BaseException:
        db.close()
        raise
    return db


def _version(db: sqlite3.Connection, path: Path) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        raise TargetError(
            f"Manifest '{path}' is of a later version of imgsvc: use that one, or another manifest."
        )
    return int(version)


def _bring_up(db: sqlite3.Connection) -> None:
    """Make the tables; what stands in those of an earlier version is taken over."""
    columns = {row[1] for row in db.execute("PRAGMA table_info(inputs)")}
    parts = [_TABLES]
    if columns:
        parts = [_ADD_SOURCE if "source" not in columns else "", _SET_ASIDE, _TABLES, _TAKE_OVER]
    try:
        with _interruptible(db):
            script = f"BEGIN IMMEDIATE; {' '.join(parts)} PRAGMA user_version = {_VERSION}; COMMIT"
            for statement in script.split(";"):  # between them, signals are heeded too
                db.execute(statement)
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def _interruptible(db: sqlite3.Connection) -> Iterator[None]:
    """Let an interrupt end what SQLite is doing, however long that takes."""
    db.set_progress_handler(lambda: 0, _STEPS_BETWEEN_SIGNALS)  # Python heeds signals only in code of its own
    try:
        yield
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:  # what the handler raised is lost
            raise KeyboardInterrupt from error
        raise
    finally:
        db.set_progress_handler(None, 0)
