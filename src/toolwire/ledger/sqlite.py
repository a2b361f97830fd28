"""A ledger in a file: survives a restart, and any number of processes of one machine may share it."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import LedgerError, UsageError
from . import Fate, Settled, check_limit, check_settled

# n is the order of release: rows go from its low end only, so that the next n is always one more than the highest.
_TABLE = "CREATE TABLE IF NOT EXISTS toolwire_released (n INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, fate TEXT NOT NULL)"
_FIND = "SELECT fate FROM toolwire_released WHERE key = ?"
_CLAIM = "INSERT INTO toolwire_released (key, fate) VALUES (?, 'released')"
_SETTLE = "INSERT INTO toolwire_released (key, fate) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET fate = excluded.fate"
_FORGET = "DELETE FROM toolwire_released WHERE n <= (SELECT max(n) FROM toolwire_released) - ?"

# One lock for the connections of all ledgers of the process, because a fork has to find every one of them closed: SQLite's
# locks belong to a process, but its notes of which it holds are copied. A child that goes by the copy writes without locks.
_lock = threading.Lock()
_ledgers: weakref.WeakSet[SQLiteLedger] = weakref.WeakSet()


class SQLiteLedger:
    """A ledger in an SQLite file on a local disk. Safe for several threads and processes, and across a fork.

    The file must stay where it is while it is in use: a ledger that is moved, deleted or restored has forgotten.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_keys: int = 1_000_000, timeout: float = 5.0) -> None:
        """Opens the file, and makes it where it is missing.

        Args:
            path: the file. SQLite keeps two more beside it, with ``-wal`` and ``-shm`` after the name.
            max_keys: keys remembered; past it the oldest is forgotten, and its call could run again. One costs about
                100 bytes on disk.
            timeout: seconds to wait for another process that is writing. One writes for a few milliseconds.
        Raises:
            UsageError: ``max_keys`` is less than 1.
            LedgerError: the file can not be opened, or can not be shared safely (a network file system).
        """
        self._path = os.path.abspath(os.fspath(path))  # a fork may change directory and opens it anew
        self._max_keys = check_limit("max_keys", max_keys)
        self._timeout = timeout
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        with self._connected():
            _ledgers.add(self)

    def claim(self, keys: Sequence[str], *, all_or_nothing: bool = False) -> dict[str, Fate]:
        """See ``Ledger.claim``."""
        with self._transaction() as connection:
            known = _find(connection, keys)
            if not (known and all_or_nothing):
                connection.executemany(_CLAIM, [(key,) for key in dict.fromkeys(keys) if key not in known])
                connection.execute(_FORGET, (self._max_keys,))
        return known

    def settle(self, key: str, fate: Settled) -> None:
        """See ``Ledger.settle``."""
        check_settled(fate)
        with self._transaction() as connection:
            connection.execute(_SETTLE, (key, fate))
            connection.execute(_FORGET, (self._max_keys,))

    def fates(self, keys: Sequence[str]) -> dict[str, Fate]:
        """See ``Ledger.fates``."""
        with self._connected() as connection:
            return _find(connection, keys)

    def close(self) -> None:
        """Closes the file. Any use after that is a ``UsageError``; closing again does nothing."""
        with _lock:
            self._closed = True
            self._disconnect()

    def __enter__(self) -> SQLiteLedger:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connected() as connection:
            try:
                # IMMEDIATE takes the write lock before the first read: what was read is still so at the commit.
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with _lock:
            if self._closed:
                raise UsageError("this SQLiteLedger is closed")
            try:
                if self._connection is None:
                    self._connection = self._connect()
                yield self._connection
            except sqlite3.Error as error:
                self._disconnect()  # the next use starts from a clean connection
                raise LedgerError(f"the release ledger {self._path} did not answer, and nothing is released without it: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=self._timeout, isolation_level=None, check_same_thread=False)
        try:
            mode = self._write_ahead(connection)
            if mode != "wal":
                raise sqlite3.OperationalError(f"no write-ahead log here (journal mode {mode!r}): the file has to be on a local disk")
            # A claim has to outlast a power cut, too. In WAL mode only FULL syncs each commit (NORMAL may lose the last ones),
            # and only with fullfsync does macOS sync to the disk itself; elsewhere it means nothing.
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA fullfsync=ON")
            connection.execute(_TABLE)
        except BaseException:
            connection.close()
            raise
        return connection

    def _write_ahead(self, connection: sqlite3.Connection) -> str:
        # Of several processes that switch a new file at once, SQLite turns some away without waiting.
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                row: Any = connection.execute("PRAGMA journal_mode=WAL").fetchone()
                return str(row[0])
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
                time.sleep(0.005)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _find(connection: sqlite3.Connection, keys: Sequence[str]) -> dict[str, Fate]:
    return {key: row[0] for key in keys if (row := connection.execute(_FIND, (key,)).fetchone())}


def _before_fork() -> None:
    _lock.acquire()
    for ledger in _ledgers:
        ledger._disconnect()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_lock.release, after_in_child=_lock.release)
