"""Calls of models that end for their caller, come back late, or never."""

import threading

import pytest

from retrieval.encoders.model_calls import (
    MAX_LATE,
    MAX_OVERDUE,
    RERANKER,
    ModelCalls,
    TimedHitReranker,
    model_key,
    timed,
)
from retrieval.encoders.vector_cache import SentenceEncoder
from retrieval.errors import (
    EncoderError,
    EncoderTimeoutError,
    EncoderUnavailableError,
    RerankBreakerOpenError,
    RerankError,
    RerankTimeoutError,
)
from tests.fakes import HashEncoder
from tests.retrieval.presets.consolidated.stages.sectioned import CrossEncoder

#: Less than a fair time, and long enough for a call that begins at once.
SOON = 0.02


@pytest.fixture
def calls(clock):
    return ModelCalls(clock=clock)


@pytest.fixture
def stuck():
    """Return work that does not end before the test does."""
    over = threading.Event()
    yield lambda: over.wait(30)
    over.set()


def late(calls, work, *, clock, seconds=0.0, **more):
    """Make a call that is given up, and let so much time go by on the clock before that."""

    def begun():
        clock.now += seconds
        return work()

    with pytest.raises(EncoderTimeoutError):
        calls.within(SOON, begun, model="m", **more)


def test_a_call_gives_what_its_work_gives_in_another_thread(calls):
    assert calls.within(30, threading.current_thread, model="m") is not threading.current_thread()


def test_what_the_work_raises_is_raised(calls):
    def fail():
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        calls.within(30, fail, model="m")


@pytest.mark.parametrize("seconds", [0, -1])
def test_without_time_nothing_is_called(calls, seconds):
    called = []
    with pytest.raises(RerankTimeoutError):
        calls.within(seconds, lambda: called.append(1), model="m", faults=RERANKER)
    assert called == []


def test_after_three_late_calls_a_model_is_left_alone_and_tried_again(calls, clock):
    for _ in range(3):
        leave = threading.Event()
        late(calls, lambda leave=leave: leave.wait(30), clock=clock, seconds=1.5)
        leave.set()
        _wait_for(lambda: not calls._models["m"].late)
    with pytest.raises(EncoderUnavailableError):
        calls.within(30, lambda: 1, model="m")
    assert calls.within(30, lambda: 1, model="other") == 1
    clock.now += 31
    assert calls.within(30, lambda: 1, model="m") == 1


def test_who_gives_up_early_opens_no_breaker(calls, clock):
    for _ in range(5):
        leave = threading.Event()
        late(calls, lambda leave=leave: leave.wait(30), clock=clock, seconds=0.1)
        leave.set()
        _wait_for(lambda: not calls._models["m"].late)
    assert calls.within(30, lambda: 1, model="m") == 1


def test_who_gave_up_early_a_slow_call_is_a_failure_once_it_comes_back(calls, clock):
    for _ in range(3):
        leave = threading.Event()
        late(calls, lambda leave=leave: leave.wait(30), clock=clock)
        clock.now += 2
        leave.set()
        _wait_for(lambda: not calls._models["m"].late)
    with pytest.raises(EncoderUnavailableError):
        calls.within(30, lambda: 1, model="m")


def test_calls_that_never_come_back_are_few(calls, clock, stuck):
    for _ in range(MAX_OVERDUE):
        late(calls, stuck, clock=clock)
    clock.now += 1
    with pytest.raises(EncoderError, match="are still running"):
        calls.within(30, lambda: 1, model="m")


def test_however_early_their_callers_give_up(calls, clock, stuck):
    for _ in range(MAX_LATE):
        late(calls, stuck, clock=clock)
    with pytest.raises(EncoderError, match="are still running"):
        calls.within(30, lambda: 1, model="m")


def test_where_another_breaker_stands_before_a_model_this_one_says_nothing(calls, clock, stuck):
    late(calls, stuck, clock=clock, seconds=2, breaks=False)
    assert calls._models["m"].breaker.state == "closed"


def test_who_reads_the_store_stays_in_the_callers_thread_unless_connections_are_given_back():
    assert ModelCalls().reading_within(30, threading.current_thread, model="m") is threading.current_thread()
    released = []
    beside = ModelCalls(release=lambda: released.append(threading.current_thread()))
    assert beside.reading_within(30, threading.current_thread, model="m") in released


def test_a_reranker_that_breaks_by_itself_has_no_second_breaker(calls):
    plain = CrossEncoder()
    assert timed(plain, calls).breaks
    assert not timed(plain, calls, breaks=False).breaks
    plain.without_breaker = lambda: plain
    assert not timed(plain, calls).breaks


def test_a_reranker_that_reads_hits_keeps_doing_so(calls):
    class Stored(CrossEncoder):
        def read(self, query):
            return query

        def score_hits(self, query, hits, *, scope, timeout_seconds, read=None):  # noqa: ARG002 -- the protocol's
            return [0.5] * len(hits)

    reranker = timed(Stored(), calls)
    assert isinstance(reranker, TimedHitReranker)
    assert reranker.score_hits("q", [1, 2], scope=None, timeout_seconds=1) == [0.5, 0.5]
    assert (reranker.name, reranker.blend_weight, reranker.problem) == ("numbers", None, "")


def test_a_reranker_that_hangs_is_refused_after_a_while(clock, stuck):
    hanging = CrossEncoder()
    hanging.does = lambda _: (setattr(clock, "now", clock.now + 2), stuck())[1]
    reranker = timed(hanging, ModelCalls(clock=clock))
    raised = []
    for _ in range(4):
        with pytest.raises(RerankError) as caught:
            reranker.score("q", ["a 1"], timeout_seconds=SOON)
        raised.append(type(caught.value))
    assert raised[:2] == [RerankTimeoutError] * 2
    assert not {RerankTimeoutError} & set(raised[2:])
    assert len(hanging.calls) == 2
    assert issubclass(RerankBreakerOpenError, RerankError)


def test_sentences_are_encoded_as_before():
    encoder = HashEncoder()
    sentences = SentenceEncoder(encoder)
    assert (sentences.encode_documents(["a", "b"]) == encoder.encode_documents(["a", "b"])).all()


def test_a_model_is_known_by_its_kind_and_name():
    assert model_key(HashEncoder()) == "HashEncoder hash"
    assert model_key(object()) == "object"


def _wait_for(condition):
    """Wait until another thread has done something, at most ten seconds."""
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError
