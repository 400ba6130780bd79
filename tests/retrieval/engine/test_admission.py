"""Who may begin, who waits, and who is turned away."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from corecube.errors import ConfigError, OverloadedError
from retrieval.engine.admission import Admission, ProcessHooks
from retrieval.engine.admission_ladder import Ladder, LadderConfig, PoolConfig, Purpose, Refusal, Rung
from tests.profiles import examples
from tests.race import until
from tests.retrieval.conftest import Clock

SMALL = PoolConfig(connections=32)


class World:
    """Connections at work and a clock, as a test says."""

    def __init__(self, *, active=0, fitting=None):
        self.active, self.fitting, self.release_connection, self.clock = active, fitting, 0, Clock()

    def surroundings(self):
        def release_connection():
            self.release_connection += 1

        return ProcessHooks(lambda: self.active, lambda: self.fitting, release_connection, self.clock)


def refused(admission, purpose=Purpose.PRIMARY, *, budget_seconds=15.0):
    """Return why a query is turned away, None where it begins."""
    try:
        with admission.query(purpose, budget_seconds=budget_seconds):
            return None
    except OverloadedError as error:
        return error.reason


def test_a_query_that_finds_a_slot_begins_at_once_and_gives_it_back():
    admission = Admission()
    with admission.query(budget_seconds=0.0) as waited:
        assert waited < 1.0
        assert (admission.load().held, admission.wanted) == (1, 1)
    load = admission.load()
    assert (load.held, load.waiting, load.admitted, admission.wanted) == (0, 0, 1, 0)


def test_slots_are_given_back_after_a_failure():
    admission = Admission(turns=1)
    with pytest.raises(ValueError, match="broken"), admission.query(budget_seconds=1.0):
        raise ValueError("broken")
    assert refused(admission, budget_seconds=0.0) is None


def test_while_a_service_is_asked_slot_and_turn_are_anothers():
    admission = Admission(turns=1)
    with admission.query(budget_seconds=1.0):
        with admission.left(wait_seconds=1.0):
            assert admission.load().held == 0
            with admission.query(budget_seconds=0.0):
                assert (admission.load().held, admission.wanted) == (1, 2)
        assert admission.load().held == 1
        assert refused(admission, budget_seconds=0.0) == Refusal.BUDGET_OVER
    assert (admission.load().held, admission.wanted) == (0, 0)


def test_a_search_that_cannot_have_its_turn_again_goes_on_without():
    admission = Admission(turns=1)
    with ExitStack() as others:
        with admission.query(budget_seconds=1.0):
            with admission.left(wait_seconds=0.01):
                others.enter_context(ran_elsewhere(admission))
            # The other one's slot and turn; of its own it has a slot again.
            assert admission.load().held == 2
        assert admission.load().held == 1
    assert admission.load().held == 0


def test_what_the_service_took_is_not_waited_again():
    world = World()
    admission = Admission(turns=1, world=world.surroundings())
    with ExitStack() as others, admission.query(budget_seconds=1.0):
        with admission.left(wait_seconds=30.0):
            others.enter_context(ran_elsewhere(admission))
            world.clock.now += 30.0
        # With 30 s of its own behind the service this thread would wait for the other one's turn for as long.
        assert admission.load().held == 2


def test_searches_that_are_away_do_not_make_the_others_look_slow():
    world = World()
    admission = Admission(turns=1, world=world.surroundings())
    for _ in range(8):
        with admission.query(budget_seconds=1.0):
            world.clock.now += 0.1
    away, back = threading.Barrier(4), threading.Event()

    def asks_a_service():
        with admission.query(budget_seconds=1.0), admission.left(wait_seconds=60.0):
            away.wait(10)
            back.wait(10)

    with ThreadPoolExecutor(4) as threads:
        for _ in range(3):
            threads.submit(asks_a_service)
            until(lambda: admission.load().held == 0)
        away.wait(10)
        world.clock.now += 20.0
        with admission.query(budget_seconds=1.0):
            # One turn of 0.1 s is expected, not three searches of 20 s.
            assert threads.submit(refused, admission, budget_seconds=0.2).result(10) == Refusal.BUDGET_OVER
        back.set()
    with admission.query(budget_seconds=1.0):
        world.clock.now += 0.1
    assert (admission.load().held, admission.wanted) == (0, 0)


def test_the_time_away_is_no_time_of_a_search():
    world = World()
    admission = Admission(turns=1, world=world.surroundings())
    for _ in range(8):
        with admission.query(budget_seconds=1.0):
            world.clock.now += 0.5
            with admission.left(wait_seconds=60.0):
                world.clock.now += 20.0
            world.clock.now += 0.5
    with admission.query(budget_seconds=1.0):
        assert refused(admission, budget_seconds=0.9) == Refusal.QUEUE
        assert refused(admission, budget_seconds=1.1) == Refusal.BUDGET_OVER


def test_outside_a_search_nothing_is_given_back():
    admission = Admission(turns=1)
    with ran_elsewhere(admission), admission.left(wait_seconds=0.01):
        assert admission.load().held == 1
    assert admission.load().held == 0


@contextmanager
def ran_elsewhere(admission):
    """Hold a search's slot and turn on another thread."""
    begun, ends = threading.Event(), threading.Event()

    def work():
        with admission.query(budget_seconds=1.0):
            begun.set()
            ends.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(10)
    try:
        yield
    finally:
        ends.set()
        thread.join()


@pytest.mark.parametrize(
    ("active", "purpose", "seconds", "reason"),
    [
        (26, Purpose.PRIMARY, 1.9, Refusal.TRIAGE),  # 80 % of 32 are 25.6, so 25
        (25, Purpose.PRIMARY, 2.0, None),
        (28, Purpose.PRIMARY, 60, Refusal.HARD_REJECT),
        (28, Purpose.DIVERSITY, 60, None),
        (28, Purpose.DIVERSITY, 11, Refusal.SHORT_BUDGET),
        (31, Purpose.RECOVERY, 1, None),
        (32, Purpose.RECOVERY, 60, Refusal.POOL_FULL),
    ],
)
def test_the_ladder_turns_away_by_the_connections_at_work(active, purpose, seconds, reason):
    admission = Admission(SMALL, world=World(active=active).surroundings())
    assert refused(admission, purpose, budget_seconds=seconds) == reason
    assert admission.load().refused == ({reason: 1} if reason else {})


def test_a_pool_that_the_server_makes_smaller_has_its_rungs_lower():
    world = World(active=20, fitting=20)
    admission = Admission(world=world.surroundings())
    assert (admission.load().wished, admission.load().connections, admission.load().rung) == (96, 20, Rung.FULL)
    assert refused(admission, Purpose.RECOVERY) == Refusal.POOL_FULL
    world.active = 17  # 88 % of 20 are 17.6
    assert refused(admission) == Refusal.HARD_REJECT


def test_recovery_is_skipped_at_the_top_and_counted():
    world = World(active=87)
    admission = Admission(world=world.surroundings())
    assert not admission.skips_recovery()
    world.active = 88
    assert admission.skips_recovery()
    assert admission.load().recovery_skipped == 1


def test_a_search_waits_for_its_turn_and_no_longer_than_its_budget():
    world = World()
    admission = Admission(turns=1, world=world.surroundings())
    with admission.query(budget_seconds=1.0):
        assert refused(admission, budget_seconds=0.01) == Refusal.BUDGET_OVER
        # Its slot went back, and what it waited for was asked for without a connection.
        assert (admission.load().held, world.release_connection) == (1, 1)


def test_of_a_crowd_nobody_is_turned_away_for_the_others_who_do_not_query_yet():
    """All hold a connection when they come, and let go of it before they are turned away."""
    world = World(active=31)

    def release_connection():
        world.active = 0

    crowd = ProcessHooks(lambda: world.active, lambda: None, release_connection, world.clock)
    assert refused(Admission(SMALL, world=crowd)) is None
    world.active = 31
    assert refused(Admission(SMALL, world=world.surroundings())) == Refusal.HARD_REJECT


def test_the_ladder_is_asked_again_after_a_wait():
    world = World()
    admission = Admission(turns=1, world=world.surroundings())
    with ThreadPoolExecutor(1) as threads:
        with admission.query(budget_seconds=1.0):
            second = threads.submit(refused, admission, budget_seconds=60)
            until(lambda: admission.load().waiting)
            world.active = 84
        assert second.result(10) == Refusal.HARD_REJECT
    assert admission.load().held == 0


def test_a_turn_that_comes_when_the_time_is_over_is_not_begun():
    world = World()
    admission = Admission(turns=1, world=world.surroundings())
    with ThreadPoolExecutor(1) as threads:
        with admission.query(budget_seconds=1.0):
            second = threads.submit(refused, admission, budget_seconds=60)
            until(lambda: admission.load().waiting)
            world.clock.now = 60.0
        assert second.result(10) == Refusal.BUDGET_OVER
    assert (admission.load().held, admission.load().max_wait_seconds) == (0, 0.0)


def test_who_would_wait_for_too_long_is_told_at_once():
    world = World()
    admission = Admission(turns=2, world=world.surroundings())
    for _ in range(8):
        with admission.query(budget_seconds=1.0):
            world.clock.now += 3.0
    with ExitStack() as held:
        for _ in range(2):
            held.enter_context(admission.query(budget_seconds=1.0))
        # One ahead of it, 3 s each, two at a time: 1.5 s.
        with pytest.raises(OverloadedError) as error:
            held.enter_context(admission.query(budget_seconds=1.4))
    assert (error.value.reason, error.value.retry_after_seconds, error.value.status) == (Refusal.QUEUE, 2, 429)
    assert refused(admission, budget_seconds=0.0) is None


def test_who_waits_gives_up_when_all_becomes_slower():
    world = World()
    admission = Admission(SMALL, turns=1, world=world.surroundings())
    for _ in range(8):
        with admission.query(budget_seconds=1.0):
            world.clock.now += 0.1
    with ThreadPoolExecutor(1) as threads, ExitStack() as held:
        held.enter_context(admission.query(budget_seconds=1.0))
        # Sixteen slots: fifteen others hold one and wait for the turn, and the next waits for a slot.
        others = ThreadPoolExecutor(16)
        for _ in range(15):
            others.submit(refused, admission, budget_seconds=60)
        until(lambda: admission.load().waiting == 15)
        last = threads.submit(refused, admission, budget_seconds=60)
        until(lambda: admission.load().waiting == 16)
        # What is at work takes 5 s already: sixteen of that are more than the 55 s that are left.
        world.clock.now += 5.0
        assert last.result(10) == Refusal.QUEUE
        held.close()
        others.shutdown()
    assert admission.load().held == 0
    assert admission.load().refused == {Refusal.QUEUE: 1}


def test_too_few_searches_tell_nothing_of_the_wait():
    world = World()
    admission = Admission(turns=1, world=world.surroundings())
    for _ in range(7):
        with admission.query(budget_seconds=1.0):
            world.clock.now += 100.0
    with admission.query(budget_seconds=1.0):
        assert refused(admission, budget_seconds=0.01) == Refusal.BUDGET_OVER


def test_recovery_does_not_wait_behind_searches():
    admission = Admission(SMALL, turns=1)
    waiting = threading.Event()

    def search():
        with admission.query(budget_seconds=30):
            waiting.wait(30)

    with ThreadPoolExecutor(20) as threads:
        for _ in range(20):
            threads.submit(search)
        until(lambda: admission.load().waiting == 19)
        assert refused(admission, budget_seconds=0.01) == Refusal.BUDGET_OVER
        assert refused(admission, Purpose.RECOVERY, budget_seconds=0.0) is None
        assert refused(admission, Purpose.DIVERSITY, budget_seconds=0.0) is None
        waiting.set()
    assert (admission.load().held, admission.load().admitted) == (0, 22)


def test_recovery_has_the_connections_above_the_hard_rejection():
    admission = Admission()
    assert admission.load().recovery_slots == 12
    with ExitStack() as held:
        for _ in range(12):
            held.enter_context(admission.query(Purpose.RECOVERY, budget_seconds=0.0))
        assert refused(admission, Purpose.DIVERSITY, budget_seconds=0.0) == Refusal.BUDGET_OVER
        assert refused(admission, budget_seconds=0.0) is None


def test_floors_are_refused_when_it_is_made():
    with pytest.raises(ConfigError, match="retrieval_slots"):
        Admission(PoolConfig(retrieval_slots=15))


class AdmissionMachine(RuleBasedStateMachine):
    """Queries that begin and end in any order under changing pressure; nobody waits: one thread cannot."""

    def __init__(self):
        super().__init__()
        self.world = World()
        self.admission = Admission(SMALL, turns=5, world=self.world.surroundings())
        self.ladder = Ladder(SMALL, LadderConfig())
        self.begun = {True: [], False: []}
        self.refusals = self.skips = self.admitted = 0

    @rule(active=st.integers(0, 34))
    def others_work(self, active):
        self.world.active = active

    @rule(seconds=st.floats(0.0, 5.0))
    def time_goes_by(self, seconds):
        self.world.clock.now += seconds

    @rule(purpose=st.sampled_from(Purpose), seconds=st.sampled_from([0.0, 1.0, 2.0, 11.9, 12.0, 60.0]))
    def begin(self, purpose, seconds):
        is_primary = purpose is Purpose.PRIMARY
        turned_away = self.ladder.refusal(self.world.active, budget_seconds=seconds, purpose=purpose)
        is_full = len(self.begun[is_primary]) >= (5 if is_primary else self.ladder.spare)
        if is_full and turned_away is None:
            seconds = 0.0
            turned_away = self.ladder.refusal(self.world.active, budget_seconds=0.0, purpose=purpose)
        query = self.admission.query(purpose, budget_seconds=seconds)
        if turned_away is None and not is_full:
            query.__enter__()
            self.begun[is_primary].append(query)
            self.admitted += 1
            return
        with pytest.raises(OverloadedError) as error:
            query.__enter__()
        assert error.value.reason in ({turned_away} if turned_away else {Refusal.BUDGET_OVER, Refusal.QUEUE})
        assert 1 <= error.value.retry_after_seconds <= 30
        self.refusals += 1

    @precondition(lambda self: any(self.begun.values()))
    @rule(first=st.booleans(), is_primary=st.booleans())
    def end(self, first, is_primary):
        queries = self.begun[is_primary] or self.begun[not is_primary]
        queries.pop(0 if first else -1).__exit__(None, None, None)

    @rule()
    def ask_for_recovery(self):
        is_skipped = self.admission.skips_recovery()
        assert is_skipped == self.ladder.skips_recovery(self.world.active)
        self.skips += is_skipped

    @invariant()
    def figures_add_up(self):
        load = self.admission.load()
        primary, others = len(self.begun[True]), len(self.begun[False])
        assert (load.held, load.recovery_held, load.waiting, self.admission.wanted) == (primary, others, 0, primary)
        assert (load.admitted, sum(load.refused.values()), load.recovery_skipped) == (
            self.admitted,
            self.refusals,
            self.skips,
        )
        assert load.rung is self.ladder.reached(self.world.active)
        assert (load.rung is Rung.FULL) == (self.world.active >= 32)


TestAdmissionMachine = AdmissionMachine.TestCase
TestAdmissionMachine.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
