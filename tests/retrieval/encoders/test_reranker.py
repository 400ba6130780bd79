import math

import numpy as np
import pytest

from retrieval.encoders.late_interaction import LateInteraction, max_sim
from retrieval.encoders.reranker import TimeBox, UnavailableReranker, checked_scores
from retrieval.engine.types import ScoreType
from retrieval.errors import EncoderError, RerankError, RerankTimeoutError


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def spend(self, seconds):
        self.now += seconds
        return seconds


@pytest.fixture
def clock():
    return Clock()


def test_a_time_box_runs_what_fits(clock):
    box = TimeBox(3, clock)
    assert [box.run(lambda: clock.spend(1)) for _ in range(3)] == [1, 1, 1]


def test_a_time_box_refuses_what_would_end_too_late(clock):
    box = TimeBox(3, clock)
    box.run(lambda: clock.spend(2))
    with pytest.raises(RerankTimeoutError):
        box.run(lambda: pytest.fail("was started"))


def test_a_time_box_lets_the_first_piece_start_as_long_as_there_is_time(clock):
    box = TimeBox(1, clock)
    clock.spend(1.5)
    with pytest.raises(RerankTimeoutError):
        box.run(lambda: pytest.fail("was started"))


@pytest.mark.parametrize("scores", [[], [1.0], [1.0, 2.0, 3.0]])
def test_another_number_of_scores_is_garbage(scores):
    with pytest.raises(RerankError, match="invalid response"):
        checked_scores(scores, count=2)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_garbage(score):
    with pytest.raises(RerankError, match="invalid response"):
        checked_scores([0.5, score], count=2)


def test_a_reranker_that_cannot_be_had_says_why():
    reranker = UnavailableReranker("absent", "It is not here.")
    with pytest.raises(RerankError, match=r"It is not here\."):
        reranker.score("query", ["text"], timeout_seconds=1)


EAST, NORTH = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
BETWEEN = np.array([0.6, 0.8], np.float32)


def test_max_sim_is_the_mean_of_each_query_tokens_best_cosine():
    # East meets itself with 1; north meets the vector between with 0.8: (1 + 0.8) / 2.
    assert max_sim(np.stack([EAST, NORTH]), np.stack([EAST, BETWEEN])) == pytest.approx(0.9)


def test_max_sim_of_opposite_tokens_is_minus_one():
    assert max_sim(EAST[np.newaxis], -EAST[np.newaxis]) == -1


@pytest.mark.parametrize("counts", [(0, 2), (2, 0), (0, 0)])
def test_max_sim_without_tokens_is_zero(counts):
    assert max_sim(*(np.ones((count, 2), np.float32) for count in counts)) == 0


class WordEncoder:
    """Each word is one token with a direction of its own; a text takes a second on the test's clock."""

    name = "words"
    threads = 2

    def __init__(self, clock):
        self._clock = clock
        self.encoded = []

    def token_vectors(self, texts):
        self.encoded += texts
        self._clock.spend(1)
        if "broken" in texts:
            raise EncoderError("a message about broken")
        known = {"east": EAST, "north": NORTH, "between": BETWEEN}
        return [np.array([known[word] for word in text.split()], np.float32).reshape(-1, 2) for text in texts]


def test_late_interaction_scores_each_text_in_order(clock):
    reranker = LateInteraction(WordEncoder(clock), clock=clock)
    found = reranker.score("east north", ["north", "between", "east north", "", "east"], timeout_seconds=60)
    # "north" meets the query's tokens with 0 and 1, "between" with 0.6 and 0.8; the mean of each is its score.
    assert found == pytest.approx([0.5, 0.7, 1.0, 0.0, 0.5])


def test_late_interaction_adds_to_the_blend(clock):
    reranker = LateInteraction(WordEncoder(clock), clock=clock)
    assert (reranker.name, reranker.score_type, reranker.blend_weight) == (
        "late interaction of words",
        ScoreType.MAXSIM,
        0.5,
    )


def test_late_interaction_stops_before_texts_that_would_be_ready_too_late(clock):
    encoder = WordEncoder(clock)
    with pytest.raises(RerankTimeoutError):
        LateInteraction(encoder, clock=clock).score("east", ["north"] * 6, timeout_seconds=3.5)
    # A second for the query, two for two pairs of texts; the third pair would end after four.
    assert len(encoder.encoded) == 5


def test_late_interaction_with_a_model_that_fails_is_a_rerank_error(clock):
    with pytest.raises(RerankError, match="'words' failed") as caught:
        LateInteraction(WordEncoder(clock), clock=clock).score("east", ["broken"], timeout_seconds=60)
    assert "broken" not in str(caught.value)
