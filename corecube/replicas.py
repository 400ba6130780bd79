"""Read replicas of the database: which one may be read now, and how often the primary was read instead.

Searches read documents from a replica. Who may see what, and everything that is written, is always the primary's.

A thread of each process compares every second how far the primary has written and a replica has replayed. A replica
that has replayed what the primary had written at some moment has every change that was committed by then, whatever
the clocks say. If that moment is longer ago than the limit, the replica is not read. So a deleted document is found
for that long at most, also if the replica stops, hangs, or loses its connection to the primary.
"""

import logging
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from django.conf import settings
from django.db import Error, connections, transaction
from psycopg.errors import SerializationFailure

logger = logging.getLogger(__name__)
_Key = TypeVar("_Key")

_CHECK_SECONDS: Final = 1.0
_SHORTLY: Final = 0.2
_PAGE: Final = 8192  #: Bytes of a page of the log, and of the longest header, with which a page begins.
_PAGE_HEADER: Final = 40
#: Not the position that is on the disk: a transaction that commits asynchronously can be seen before it is there.
_PRIMARY_SQL: Final = "SELECT pg_current_wal_insert_lsn() - '0/0', system_identifier FROM pg_control_system()"
_REPLICA_SQL: Final = """
SELECT pg_last_wal_replay_lsn() - '0/0', system_identifier, pg_is_in_recovery() FROM pg_control_system()
"""


class Problem(StrEnum):
    """Why a replica is not read."""

    NONE = ""
    UNCHECKED = "unchecked"  #: This process has just started.
    BEHIND = "behind"  #: By more than the limit.
    DOWN = "down"
    FOREIGN = "foreign"  #: It is no replica of this primary.
    CONFLICT = "conflict"  #: It broke one statement off, to replay what the statement still read.


_WORDS: Final = {
    Problem.UNCHECKED: "was not checked yet",
    Problem.BEHIND: "is too far behind the primary",
    Problem.DOWN: "does not answer",
    Problem.FOREIGN: "is not a replica of the database in DATABASE_URL",
}


class _Moment(NamedTuple):
    """How far the primary had written."""

    at: float  #: By the monotonic clock, before the primary was asked.
    position: int


@dataclass
class Replica:
    """What this process knows of a replica."""

    alias: str
    clock: Callable[[], float] = time.monotonic
    #: Moments that the replica has not reached yet, oldest first, from the time of the limit.
    _ahead: deque[_Moment] = field(default_factory=deque, repr=False)
    _current_at: float | None = None  #: It has all that was committed by then.
    _problem: Problem = Problem.UNCHECKED
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def problem(self) -> Problem:
        """Why it may not be read now."""
        if self._problem is not Problem.NONE:
            return self._problem
        lag = self.lag_seconds
        return Problem.NONE if lag is not None and lag <= settings.CORECUBE_REPLICA_LAG_SECONDS else Problem.BEHIND

    @property
    def lag_seconds(self) -> float | None:
        """The age of its content, at most; None if it is unknown."""
        return None if self._current_at is None else self.clock() - self._current_at

    def failed(self, problem: Problem) -> None:
        """Do not read it until a check succeeds."""
        if problem is not self._problem:
            logger.warning("replica.refused replica=%s problem=%s", self.alias, problem)
        self._problem = problem

    def check(self) -> None:
        """Compare it with the primary. Raises the errors of the primary."""
        with self._lock:
            self._check()

    def _check(self) -> None:
        at = self.clock()
        written, identifier = _row("default", _PRIMARY_SQL)
        self._ahead.append(_Moment(at, int(written)))
        try:
            replayed, same, is_replica = _row(self.alias, _REPLICA_SQL)
        except Error:
            self.failed(Problem.DOWN)
            return
        if (identifier, True) != (same, is_replica) or replayed is None:
            self.failed(Problem.FOREIGN)
            return
        while self._ahead and (_has_reached(replayed, self._ahead[0].position) or self._is_old(self._ahead[0])):
            moment = self._ahead.popleft()
            if _has_reached(replayed, moment.position):
                self._current_at = moment.at
        if self._problem is not Problem.NONE:
            logger.info("replica.checked replica=%s", self.alias)
        self._problem = Problem.NONE

    def _is_old(self, moment: _Moment) -> bool:
        return self.clock() - moment.at > settings.CORECUBE_REPLICA_LAG_SECONDS


@dataclass
class Replicas:
    """The replicas that this process may read, and the thread that checks them."""

    each: tuple[Replica, ...]
    reads: Counter[str] = field(default_factory=Counter)  #: Reads of each replica.
    fallbacks: Counter[Problem] = field(default_factory=Counter)  #: Reads of the primary instead, by reason.
    _checker: int = 0  #: The process whose thread checks them: a forked process has none.
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def usable(self) -> Replica | None:
        """Return the replica to read now; None for the primary.

        Each process prefers another one. Inside a transaction the primary is read, which has its own changes.
        """
        if not self.each or transaction.get_connection().in_atomic_block:
            return None
        self.watch()
        first = os.getpid() % len(self.each)
        for replica in (*self.each[first:], *self.each[:first]):
            if not replica.problem:
                return replica
        self._count(self.fallbacks, self.each[first].problem)
        return None

    def succeeded(self, replica: Replica) -> None:
        """Count a read of a replica."""
        self._count(self.reads, replica.alias)

    def failed(self, replica: Replica, error: Exception) -> None:
        """Note that a read of a replica failed and the primary is read instead."""
        connections[replica.alias].close()  # it may be broken
        cause = error.__cause__.__cause__ if error.__cause__ else None
        problem = Problem.CONFLICT if isinstance(cause, SerializationFailure) else Problem.DOWN
        self._count(self.fallbacks, problem)
        if problem is Problem.DOWN:
            replica.failed(problem)

    def watch(self) -> None:
        """Check the replicas every second from now on, unless this process already does."""
        if not self.each or self._checker == os.getpid():
            return
        with self._lock:
            if self._checker != os.getpid():
                self._checker = os.getpid()
                for replica in self.each:
                    threading.Thread(target=self._check, args=(replica,), name=replica.alias, daemon=True).start()

    def words(self) -> str:
        """Return what is wrong with the replicas; empty if all may be read. Raises the errors of the primary."""
        for replica in self.each:
            if replica.problem is Problem.UNCHECKED:
                replica.check()
                time.sleep(_SHORTLY)  # it replays what the primary wrote just now
                replica.check()
        problems = ((number, it.problem) for number, it in enumerate(self.each, 1))
        return " ".join(f"Replica {number} {_WORDS[problem]}." for number, problem in problems if problem)

    def _count(self, counter: Counter[_Key], key: _Key) -> None:
        with self._lock:
            counter[key] += 1

    def _check(self, replica: Replica) -> None:
        while True:
            try:
                replica.check()
            except Error:  # of the primary, which everything else needs too
                logger.debug("replica.unchecked replica=%s", replica.alias)
            finally:
                connections.close_all()
            time.sleep(_CHECK_SECONDS)


@cache
def replicas() -> Replicas:
    """Return the replicas in the settings."""
    return Replicas(tuple(Replica(alias) for alias in settings.DATABASES if alias != "default"))


def _has_reached(replayed: int, position: int) -> bool:
    """Return whether a replica has replayed what was written before a position.

    At the end of a page the primary's position is behind the next page's header, where no record is.
    """
    return position <= replayed + (_PAGE_HEADER if replayed % _PAGE == 0 else 0)


def _row(alias: str, sql: str) -> tuple[Any, ...]:
    with connections[alias].cursor() as cursor:
        cursor.execute(sql)
        row: tuple[Any, ...] = cursor.fetchone()
        return row
