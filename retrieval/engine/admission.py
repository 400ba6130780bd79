"""Who may query the store, and when: slots for searches, and a ladder that turns away as the connections run out.

A search holds a slot, and a turn of the processor within it: side by side many would all be late, since each takes the
processor from the others. What a search recovers has slots of its own, so that it never waits behind new searches.
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
from retrieval.engine.slots import Slots

#: Searches whose time tells how long the next ones will wait, and how many of them tell anything.
_REMEMBERED: Final = 32
_TELLING: Final = 8
#: A refused query is never told to wait for longer.
_MAX_RETRY_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class ProcessHooks:
    """What admission reads from the process."""

    #: Connections at work, without the caller's own.
    active: Callable[[], int] = lambda: 0
    #: Connections that the pool may hold where the server takes fewer than are wished for; else None.
    fitting: Callable[[], int | None] = lambda: None
    #: Gives the caller's connection back while it waits.
    release_connection: Callable[[], None] = lambda: None
    clock: Callable[[], float] = perf_counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is at work, and what was turned away since the process began."""

    #: Connections wished for, those that there are, and those at work.
    wished: int
    connections: int
    active: int
    rung: Rung
    #: Searches: slots, those held, searches that wait for a slot or a turn, and the turns of the processor.
    slots: int
    held: int
    waiting: int
    turns: int
    #: Slots of recovery, and those held.
    recovery_slots: int
    recovery_held: int
    #: Queries that were begun, and those turned away, by reason.
    admitted: int
    refused: Mapping[Refusal, int]
    #: Searches that were broken off and for which no recovery was begun.
    recovery_skipped: int
    #: The longest that a query waited before it was begun.
    max_wait_seconds: float


class Admission:
    """Lets queries begin, or turns them away at once. Safe to share between threads."""

    def __init__(
        self,
        pool: PoolConfig | None = None,
        ladder: LadderConfig | None = None,
        *,
        turns: int | None = None,
        world: ProcessHooks | None = None,
    ) -> None:
        self._pool, self._config = pool or PoolConfig(), ladder or LadderConfig()
        self._world = world or ProcessHooks()
        self._slots = Slots(self._pool.retrieval_slots)
        self._turns = Slots(min(turns or self._slots.count, self._slots.count))
        self._recovery = Slots(Ladder(self._pool, self._config).spare)
        self._lock = Lock()
        self._wanted = self._admitted = self._skipped = 0
        self._refused: Counter[Refusal] = Counter()
        self._longest_wait = 0.0
        self._taken: deque[float] = deque(maxlen=_REMEMBERED)
        #: When the searches at work began.
        self._began: dict[object, float] = {}
        #: What the search of this thread holds, and its mark among those at work.
        self._own = local()

    @property
    def wanted(self) -> int:
        """How many searches are at work or wait."""
        return self._wanted

    @contextmanager
    def query(self, purpose: Purpose = Purpose.PRIMARY, *, budget_seconds: float) -> Iterator[float]:
        """Hold what a query needs, and give the seconds that it waited for it.

        Raises OverloadedError: at once where the ladder turns it away or it would wait for longer than its budget, and
        else when the budget is over. Who waits keeps no database connection, except inside a transaction. Within a
        search that holds a slot only DIVERSITY and RECOVERY may be asked for: a second PRIMARY slot would wait for
        slots that wait for it.
        """
        is_primary = purpose is Purpose.PRIMARY
        self._count_wanted(1 if is_primary else 0)
        held: list[Slots] = []
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
                lane.give_back()
            self._count_wanted(-1 if is_primary else 0)

    @contextmanager
    def left(self, *, wait_seconds: float) -> Iterator[None]:
        """Give back meanwhile what this thread's search holds, which waits for a service, and take it again behind it.

        The seconds count from here, the service's own time included: what cannot be had again within what it leaves of
        them the search goes on without, for one that has begun is not turned away. The time that it was away tells
        nothing of how long searches take. Outside a search nothing is given back.
        """
        held, mark = getattr(self._own, "search", None) or ([], None)
        lanes = tuple(held)
        for lane in reversed(lanes):
            lane.give_back()
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
        """Return whether no recovery is to be begun for a search that was broken off; what is skipped is counted."""
        is_skipped = self._ladder().skips_recovery(self._world.active())
        if is_skipped:
            with self._lock:
                self._skipped += 1
        return is_skipped

    def load(self) -> Load:
        """Return the figures of this moment."""
        ladder, active = self._ladder(), self._world.active()
        with self._lock:
            return Load(
                wished=self._pool.connections,
                connections=ladder.connections,
                active=active,
                rung=ladder.reached(active),
                slots=self._slots.count,
                held=self._slots.held,
                waiting=self._slots.waiting + self._turns.waiting,
                turns=self._turns.count,
                recovery_slots=self._recovery.count,
                recovery_held=self._recovery.held,
                admitted=self._admitted,
                refused=dict(self._refused),
                recovery_skipped=self._skipped,
                max_wait_seconds=self._longest_wait,
            )

    def _take(self, purpose: Purpose, budget_seconds: float, held: list[Slots]) -> float:
        """Take every slot that the query needs and return the seconds that it waited; what was taken is in `held`."""
        clock = self._world.clock
        asked = clock()
        self._ask_ladder(purpose, budget_seconds)
        if purpose is Purpose.PRIMARY and self._expected_wait() > budget_seconds:
            raise self._refusal(Refusal.QUEUE)
        lanes = (self._slots, self._turns) if purpose is Purpose.PRIMARY else (self._recovery,)
        has_waited = False
        for lane in lanes:
            if not lane.take_free():
                has_waited = True
                self._wait(lane, lambda: budget_seconds - (clock() - asked))
            held.append(lane)
        waited = clock() - asked
        if has_waited:
            if waited >= budget_seconds:
                raise self._refusal(Refusal.BUDGET_OVER)
            self._ask_ladder(purpose, budget_seconds - waited)
        with self._lock:
            self._admitted += 1
            self._longest_wait = max(self._longest_wait, waited)
        return waited

    def _wait(self, lane: Slots, left: Callable[[], float]) -> None:
        """Wait for a slot while there is time; raise OverloadedError when it is over, or too short for the queue."""
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

    def _ask_ladder(self, purpose: Purpose, budget_seconds: float) -> None:
        """Raise OverloadedError where the ladder turns a query away.

        It is asked again without the caller's connection: of a crowd that comes in the same instant each would else be
        turned away for the connections of the others, who do not query yet.
        """
        if self._turned_away(purpose, budget_seconds) is not None:
            self._world.release_connection()
            if (reason := self._turned_away(purpose, budget_seconds)) is not None:
                raise self._refusal(reason)

    def _turned_away(self, purpose: Purpose, budget_seconds: float) -> Refusal | None:
        return self._ladder().refusal(self._world.active(), budget_seconds=budget_seconds, purpose=purpose)

    def _ladder(self) -> Ladder:
        return Ladder(self._pool, self._config, self._world.fitting())

    def _expected_wait(self, ahead: int | None = None) -> float:
        """Return the seconds until a search has its turn that comes now, or has so many ahead of it in the queue.

        0 where too few have ended to tell. A search takes as long as the last ones did, or as those at work have taken
        already: they tell sooner that all has become slower.
        """
        taken = list(self._taken)
        if len(taken) < _TELLING or self._turns.held < self._turns.count:
            return 0.0
        now = self._world.clock()
        ages = [now - began for began in list(self._began.values())]
        seconds = max(median(taken), median(ages) if ages else 0.0)
        queued = self._slots.waiting if ahead is None else ahead
        return (queued + self._turns.waiting + 1) * seconds / self._turns.count

    def _refusal(self, reason: Refusal) -> OverloadedError:
        """Return the error of a query that is turned away, counted."""
        with self._lock:
            self._refused[reason] += 1
        seconds = max(1, min(_MAX_RETRY_SECONDS, math.ceil(self._expected_wait())))
        return OverloadedError(reason=reason.value, retry_after_seconds=seconds)

    def _count_wanted(self, change: int) -> None:
        with self._lock:
            self._wanted += change
