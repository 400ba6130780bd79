"""Admission control: slots for searches, and a ladder of refusals as the connection pool fills up.

A search holds a slot and a CPU turn within it, since many concurrent searches would all be late. The processes of a
machine share its CPU turns where they have a shared store. Recovery has separate slots, so that it never waits behind
new searches.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from threading import Lock, local
from time import perf_counter
from typing import Final

from corecube.errors import OverloadedError
from retrieval.engine.admission_ladder import Ladder, LadderConfig, PoolConfig, Purpose, Refusal, Rung
from retrieval.engine.slots import SharedSlots, Slots

#: Number of recent searches that predict the waiting time, and the minimum number for a prediction.
_REMEMBERED: Final = 32
_TELLING: Final = 8
_MAX_RETRY_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class ProcessHooks:
    """What admission reads from the process."""

    active: Callable[[], int] = lambda: 0  #: Busy connections, without the caller's.
    #: Connections that the server allows, if fewer than configured; else None.
    fitting: Callable[[], int | None] = lambda: None
    release_connection: Callable[[], None] = lambda: None  #: Releases the caller's connection while it waits.
    clock: Callable[[], float] = perf_counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The current load, and the refusals since the process started."""

    wished: int  #: Configured, available and busy connections.
    connections: int
    active: int
    rung: Rung
    slots: int  #: Searches: slots, held slots, searches waiting for a slot or a CPU turn, and CPU turns.
    held: int
    waiting: int
    turns: int
    recovery_slots: int
    recovery_held: int
    admitted: int
    refused: Mapping[Refusal, int]
    recovery_skipped: int  #: Timed-out searches whose recovery was skipped.
    max_wait_seconds: float


class Admission:
    """Admits queries or refuses them at once; thread-safe."""

    def __init__(
        self,
        pool: PoolConfig | None = None,
        ladder: LadderConfig | None = None,
        *,
        turns: int | None = None,
        machine_turns: SharedSlots | None = None,
        world: ProcessHooks | None = None,
    ) -> None:
        self._pool, self._config = pool or PoolConfig(), ladder or LadderConfig()
        self._world = world or ProcessHooks()
        self._slots = Slots(self._pool.retrieval_slots)
        self._turns = Slots(min(turns or self._slots.count, self._slots.count))
        #: What a search holds, acquired in this order.
        self._lanes: tuple[Slots | SharedSlots, ...] = (
            self._slots,
            self._turns,
            *([machine_turns] if machine_turns else []),
        )
        self._machine_turns = machine_turns
        self._recovery = Slots(Ladder(self._pool, self._config).spare)
        self._lock = Lock()
        self.wanted = 0  #: Number of running and waiting searches.
        self._admitted = self._skipped = 0
        self._refused: Counter[Refusal] = Counter()
        self._longest_wait = 0.0
        self._taken: deque[float] = deque(maxlen=_REMEMBERED)
        self._began: dict[object, float] = {}
        self._own = local()  #: The slots of this thread's search, and its key among the running ones.

    @contextmanager
    def query(self, purpose: Purpose = Purpose.PRIMARY, *, budget_seconds: float) -> Iterator[float]:
        """Hold the slots of a query, and yield the seconds that it waited.

        Raises OverloadedError: at once if the ladder refuses it or the expected wait exceeds its budget, else when the
        budget is over. The database connection is released while waiting, except inside a transaction. A search that
        holds a slot may only request DIVERSITY and RECOVERY: a second PRIMARY slot could deadlock.
        """
        is_primary = purpose is Purpose.PRIMARY
        self._count_wanted(1 if is_primary else 0)
        held: list[Slots | SharedSlots] = []
        mark = object()
        outer = getattr(self._own, "search", None)
        if is_primary:
            self._own.search = (held, mark)
        try:
            waited = self._take(purpose, budget_seconds, held)
            if is_primary:
                self._began[mark] = self._world.clock()
            yield waited
            if is_primary:
                self._taken.append(self._world.clock() - self._began[mark])
        finally:
            self._own.search = outer
            self._began.pop(mark, None)
            for lane in reversed(held):
                lane.release()
            self._count_wanted(-1 if is_primary else 0)

    @contextmanager
    def left(self, *, wait_seconds: float) -> Iterator[None]:
        """Release the slots of this thread's search while it waits for a service, and acquire them again afterwards.

        `wait_seconds` include the service's time. A slot that is not free again in time is not acquired: a running
        search is never refused. The time in between does not count towards the duration of searches. Does nothing
        outside a search.
        """
        held, mark = getattr(self._own, "search", None) or ([], None)
        lanes = tuple(held)
        for lane in reversed(lanes):
            lane.release()
        held.clear()
        gone = self._world.clock()
        ends = gone + wait_seconds
        began = self._began.pop(mark, None)
        try:
            yield
        finally:
            for lane in lanes:
                if lane.take_free() or lane.wait_for_one(ends - self._world.clock(), gives_up=lambda _: False):
                    held.append(lane)
            if began is not None:
                self._began[mark] = began + self._world.clock() - gone

    def skips_recovery(self) -> bool:
        """Return whether a timed-out search must skip its recovery, and count it."""
        is_skipped = self._ladder().skips_recovery(self._world.active())
        if is_skipped:
            with self._lock:
                self._skipped += 1
        return is_skipped

    def load(self) -> Load:
        """Return the current figures."""
        ladder, active = self._ladder(), self._world.active()
        with self._lock:
            return Load(
                wished=self._pool.connections,
                connections=ladder.connections,
                active=active,
                rung=ladder.reached(active),
                slots=self._slots.count,
                held=self._slots.held,
                waiting=sum(lane.waiting for lane in self._lanes),
                turns=self._turns.count,
                recovery_slots=self._recovery.count,
                recovery_held=self._recovery.held,
                admitted=self._admitted,
                refused=dict(self._refused),
                recovery_skipped=self._skipped,
                max_wait_seconds=self._longest_wait,
            )

    def _take(self, purpose: Purpose, budget_seconds: float, held: list[Slots | SharedSlots]) -> float:
        clock = self._world.clock
        requested = clock()
        self._check_ladder(purpose, budget_seconds)
        if purpose is Purpose.PRIMARY and self._expected_wait() > budget_seconds:
            raise self._refusal(Refusal.QUEUE)
        lanes = self._lanes if purpose is Purpose.PRIMARY else (self._recovery,)
        has_waited = False
        for lane in lanes:
            if not lane.take_free():
                has_waited = True
                self._wait(lane, lambda: budget_seconds - (clock() - requested))
            held.append(lane)
        waited = clock() - requested
        if has_waited:
            if waited >= budget_seconds:
                raise self._refusal(Refusal.BUDGET_OVER)
            self._check_ladder(purpose, budget_seconds - waited)
        with self._lock:
            self._admitted += 1
            self._longest_wait = max(self._longest_wait, waited)
        return waited

    def _wait(self, lane: Slots | SharedSlots, left: Callable[[], float]) -> None:
        reason = Refusal.BUDGET_OVER

        def gives_up(ahead: int) -> bool:
            nonlocal reason
            if lane is self._slots and self._expected_wait(ahead) > left():
                reason = Refusal.QUEUE
                return True
            return False

        self._world.release_connection()
        if not lane.wait_for_one(left(), gives_up=gives_up):
            raise self._refusal(reason)

    def _check_ladder(self, purpose: Purpose, budget_seconds: float) -> None:
        """Raise OverloadedError if the ladder refuses a query.

        A refusal is checked again without the caller's connection: otherwise simultaneous requests would be refused
        for each other's idle connections.
        """
        if self._refused_by_ladder(purpose, budget_seconds) is not None:
            self._world.release_connection()
            if (reason := self._refused_by_ladder(purpose, budget_seconds)) is not None:
                raise self._refusal(reason)

    def _refused_by_ladder(self, purpose: Purpose, budget_seconds: float) -> Refusal | None:
        return self._ladder().refusal(self._world.active(), budget_seconds=budget_seconds, purpose=purpose)

    def _ladder(self) -> Ladder:
        return Ladder(self._pool, self._config, self._world.fitting())

    def _expected_wait(self, ahead: int | None = None) -> float:
        """Return the expected wait in seconds of a new search, or of one with `ahead` searches before it.

        0 while too few searches have ended. The duration is the median of the last searches, or of the age of the
        running ones if higher, which reflects a slowdown sooner.
        """
        taken = list(self._taken)
        if len(taken) < _TELLING or self._turns.held < self._turns.count:
            return 0.0
        now = self._world.clock()
        ages = [now - began for began in list(self._began.values())]
        seconds = max(median(taken), median(ages) if ages else 0.0)
        queued = self._slots.waiting if ahead is None else ahead
        elsewhere = self._machine_turns.elsewhere if self._machine_turns else 0
        return (queued + self._turns.waiting + 1) * seconds / max(1, self._turns.count - elsewhere)

    def _refusal(self, reason: Refusal) -> OverloadedError:
        with self._lock:
            self._refused[reason] += 1
        seconds = max(1, min(_MAX_RETRY_SECONDS, math.ceil(self._expected_wait())))
        return OverloadedError(reason=reason.value, retry_after_seconds=seconds)

    def _count_wanted(self, change: int) -> None:
        with self._lock:
            self.wanted += change
