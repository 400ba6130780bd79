"""The stage: what it reads, what it spends, and which model judges."""

from dataclasses import replace

import numpy as np
import pytest

from corecube.scope import TrustLevel
from retrieval.engine.state import Note, Span
from retrieval.engine.types import Passage, QueryTerms, ScoreType, Term, TermMatch, Verdict
from retrieval.errors import SearchTimeoutError
from retrieval.ranking.answerability.logistic import LogisticModel
from retrieval.ranking.answerability.model import AnswerabilityModel, shipped
from retrieval.ranking.answerability.verdict import AnswerabilityConfig
from retrieval.ranking.quotes.candidates import embedded_texts, runs
from retrieval.stages.answerability import EstimateAnswerability
from tests.fakes import HashEncoder
from tests.retrieval.conftest import connection, hit, scope

OWN = LogisticModel(9.0, {}, {}, {})
#: A calibration that finds everything answerable.
CALIBRATED = AnswerabilityModel(OWN, OWN, is_calibrated=True, score_type="blend")


class Stored:
    """Vectors of sentences as ingestion would have stored them, without a database."""

    def __init__(self, problem=None):
        self.model, self.problem, self.read = HashEncoder(), problem, []

    def cosines(self, hits, question, **_):
        if self.problem:
            raise self.problem
        self.read.append([hit.chunk_id for hit in hits])
        return {hit.chunk_id: self.of(hit.chunk, question) for hit in hits}

    def of(self, chunk, question):
        vectors = self.model.encode_documents(embedded_texts(chunk.title, chunk.heading_path, chunk.text))
        return dict(zip(runs(chunk.text), (vectors @ question).tolist(), strict=True))


@pytest.fixture
def searched(state):
    """A finished search: two passages, the first of which holds the answer."""
    first = hit(1, 0.9, text="Rollback takes four minutes. Ask first.", cosine=0.8, fulltext=2.0)
    first = replace(first, matches=(TermMatch("rollback", 4.0, 2.0, "C"),))
    passages = (Passage(1, first, "", 10), Passage(2, hit(2, 0.5, text="Elsewhere it rains.", cosine=0.4), "", 10))
    return replace(
        state,
        scope=scope(connection()),
        terms=QueryTerms((Term("rollback", 1, 4.0),), corpus_size=2),
        vector=HashEncoder().encode_query("rollback takes four minutes"),
        rankings={"dense": (first,), "fulltext": (first,)},
        passages=passages,
    )


def stage(stored=None, calibrated=None, **config):
    return EstimateAnswerability(AnswerabilityConfig(**config), "english", stored or Stored(), calibrated)


@pytest.mark.parametrize("name", ["hash", "bge-small-en-v1.5"])
def test_it_judges_with_the_shipped_model_for_its_encoder_and_says_so(searched, name):
    stored = Stored()
    stored.model.name = name
    judged = stage(stored)(searched).answerability
    assert judged.confidence == shipped(name).confidence(judged.signals)
    assert not judged.is_calibrated
    assert judged.signals["coverage_passage"] == 1.0


def test_the_first_passages_sentences_are_compared_and_no_other_passage_is_read(searched):
    stored, first = Stored(), searched.passages[0].hit
    judged = stage(stored)(searched).answerability
    assert stored.read == [[first.chunk_id]]
    expected = max(stored.of(first.chunk, searched.vector).values())
    assert judged.signals["sentence_cosine"] == pytest.approx(expected)


@pytest.mark.parametrize(("number", "coverage"), [(3, 1.0), (4, 0.0)])
def test_sentences_of_three_passages_are_read_by_their_words(searched, number, coverage):
    first, other = searched.passages
    passages = [replace(other, number=it) for it in (1, 2, 3, 4)]
    passages[number - 1] = replace(first, number=number)
    signals = stage()(replace(searched, passages=tuple(passages))).answerability.signals
    assert signals["coverage_sentence"] == coverage


def test_none_are_read_when_none_are_wanted(searched):
    stored = Stored()
    after = stage(stored, sentences=0)(searched)
    assert (stored.read, after.notes) == ([], ())
    assert "sentence_cosine" not in after.answerability.signals


def test_none_are_read_when_time_is_short_and_the_other_fit_judges(searched, clock):
    stored, quick = Stored(), replace(OWN, intercept=-9.0)
    clock.now = 0.9
    after = stage(stored, AnswerabilityModel(OWN, quick))(searched)
    assert stored.read == []
    assert after.answerability.confidence < 0.01
    assert [(note.code, note.degraded) for note in after.notes] == [("answerability_quick", True)]


def test_vectors_that_are_not_read_in_time_cost_only_their_signal(searched):
    after = stage(Stored(SearchTimeoutError()))(searched)
    assert "sentence_cosine" not in after.answerability.signals
    assert [note.code for note in after.notes] == ["answerability_quick"]


def test_a_calibration_judges_the_scores_that_it_was_fitted_on(searched):
    judged = stage(calibrated=CALIBRATED)(searched).answerability
    assert (judged.verdict, judged.is_calibrated) == (Verdict.ANSWERABLE, True)
    other = stage(calibrated=replace(CALIBRATED, score_type=ScoreType.LOGIT.value))(searched).answerability
    assert not other.is_calibrated
    assert other.confidence == stage()(searched).answerability.confidence


def test_without_a_passage_nothing_is_computed(state):
    stored = Stored()
    after = stage(stored)(replace(state, vector=np.zeros(64, np.float32)))
    assert stored.read == []
    assert (after.answerability.verdict, after.answerability.reason) == (Verdict.NOT_ANSWERABLE, "nothing_found")


def test_taking_the_answering_passage_away_lowers_the_confidence(searched):
    without = replace(searched, passages=searched.passages[1:], rankings={})
    assert stage()(without).answerability.confidence < stage()(searched).answerability.confidence


@pytest.mark.parametrize("leg", ["dense", "fulltext"])
def test_nothing_is_said_when_a_leg_that_ran_out_of_time_may_have_missed_the_passages(state, leg):
    span = Span(leg, 1.0, 0, 0, notes=(Note(f"{leg}_timeout", "", degraded=True),))
    assert stage()(replace(state, trace=(span,))).answerability is None


@pytest.mark.parametrize(
    "code", ["deadline_exceeded_before_primary", "soft_cancelled_before_recovery", "timed_out_in_complete"]
)
def test_nothing_is_said_of_a_search_that_ended_before_it_had_looked_everywhere(state, code):
    span = Span("primary", 1.0, 0, 0, notes=(Note(code, "", degraded=True),))
    assert stage()(replace(state, trace=(span,))).answerability is None


def test_passages_that_contradict_each_other_are_the_reason_and_the_verdict_stays(searched):
    texts = "Rollback takes four minutes in the night.", "Rollback takes nine minutes in the night."
    passages = tuple(Passage(n, hit(n, 0.9, text=text, cosine=0.8), "", 10) for n, text in enumerate(texts, start=1))
    found = stage(calibrated=CALIBRATED)(replace(searched, passages=passages)).answerability
    assert (found.verdict, found.reason) == (Verdict.ANSWERABLE, "conflicting")
    assert found.explanation == f"Documents contradict each other: “{texts[0]}” [1], “{texts[1]}” [2]."


def test_the_more_trusted_source_is_named_first(searched):
    texts = "Rollback takes four minutes in the night.", "Rollback takes nine minutes in the night."
    passages = tuple(
        Passage(n, hit(n, 0.9, text=text, connection_id=n, cosine=0.8), "", 10) for n, text in enumerate(texts, start=1)
    )
    trusted = scope(connection(1), connection(2, trust=TrustLevel.AUTHORITATIVE))
    found = stage(calibrated=CALIBRATED)(replace(searched, scope=trusted, passages=passages)).answerability
    assert found.explanation.index("[2]") < found.explanation.index("[1]")
