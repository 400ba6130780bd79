"""Judging whether the passages answer the question."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from retrieval.encoders.kept_vectors import SentenceEncoder
from retrieval.encoders.model_calls import ModelCalls, model_key
from retrieval.engine.about import About, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.engine.types import Passage
from retrieval.errors import EncoderError, EncoderTimeoutError
from retrieval.ranking.answerability.model import AnswerabilityModel, shipped
from retrieval.ranking.answerability.signals import Evidence, Sentence, best_sentences, read_signals, sentence_cosine
from retrieval.ranking.answerability.verdict import AnswerabilityConfig, judge, nothing

#: What a search says that did not look by every leg.
_LEGS_MISSED: Final = frozenset(
    {
        "dense_timeout",
        "fulltext_timeout",
        "bm25_timeout",
        "bm25_unavailable",
        "embed_failed",
        "embed_timeout",
        "embed_remote",
    }
)
#: What the notes of a search that ended before it had looked everywhere begin with.
_ENDED_EARLY: Final = ("deadline_exceeded_", "soft_cancelled_", "timed_out_")


@dataclass(frozen=True, slots=True)
class JudgeAnswerability:
    """Estimate from raw signals how likely the packed passages answer the question.

    The best sentences are embedded only while there is time; without them a fit of its own makes the confidence.
    """

    config: AnswerabilityConfig
    text_search_config: str
    #: None where embedding sentences takes too long for a search: the model is at a service.
    encoder: SentenceEncoder | None
    #: None where the installation has not fitted one of its own.
    calibrated: AnswerabilityModel | None = None
    calls: ModelCalls = field(default_factory=ModelCalls)

    name: ClassVar[str] = "answerability"
    needs: ClassVar[frozenset[str]] = frozenset({"query", "terms", "vector", "rankings", "passages"})
    gives: ClassVar[frozenset[str]] = frozenset({"answerability"})
    optional: ClassVar[bool] = False
    about: ClassVar[About] = About(
        "judged",
        "Estimates from raw signals how likely the passages answer the question.",
        group=StageGroup.PACK,
        section="answerability",
        notes={"answerability_quick": "answerability without sentences"},
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the verdict, its confidence and its reason."""
        model = self._model(state)
        if not state.passages:
            # What did not search, or ran out of time, may have missed them: then nothing can be said.
            is_known = not any(it in _LEGS_MISSED or it.startswith(_ENDED_EARLY) for it in state.degraded)
            return replace(state, answerability=nothing(state, model=model) if is_known else None)
        evidence = Evidence(
            question=state.query.plain_text or state.query.retrieval_text,
            terms=state.terms,
            rankings=state.rankings,
            passages=state.passages,
            language_of=lambda passage: self._language(passage, state),
        )
        sentences = best_sentences(evidence)
        cosine, notes = self._sentence_cosine(state, sentences)
        signals = {**read_signals(evidence, sentences), **cosine}
        judged = judge(state, signals, model=model, config=self.config)
        return replace(state, answerability=judged, notes=(*state.notes, *notes))

    def _model(self, state: SearchState) -> AnswerabilityModel:
        """Return the installation's own model where it was fitted on scores of this search's type."""
        own = self.calibrated
        if own is None:
            return shipped()
        types = {passage.hit.score_type for passage in state.passages}
        return own if not own.score_type or not types or own.score_type in types else shipped()

    def _language(self, passage: Passage, state: SearchState) -> str:
        """Return the text search configuration that a passage was indexed with."""
        connection = state.scope.inclusion(passage.hit.chunk.connection_id).connection
        return connection.language or self.text_search_config

    def _sentence_cosine(
        self, state: SearchState, sentences: Sequence[Sentence]
    ) -> tuple[dict[str, float], tuple[Note, ...]]:
        """Return the best sentences' cosine with the question, and what kept it from being computed."""
        texts = [sentence.embedded_text for sentence in sentences[: self.config.sentences]]
        if state.vector is None or not texts or self.encoder is None:
            return {}, ()
        if state.deadline.is_soft:
            return {}, (Note("answerability_quick", "No time was left to embed sentences.", degraded=True),)
        try:
            return sentence_cosine(self._vectors(self.encoder, texts, state), state.vector), ()
        except EncoderTimeoutError:
            return {}, (Note("answerability_quick", "The sentences were not embedded in time.", degraded=True),)
        except EncoderError:
            return {}, (Note("answerability_quick", "The sentences could not be embedded.", degraded=True),)

    def _vectors(self, encoder: SentenceEncoder, texts: Sequence[str], state: SearchState) -> NDArray[np.float32]:
        """Return the sentences' vectors; raise EncoderError, also where the model takes too long."""
        work = partial(encoder.encode_documents, texts)
        return self.calls.within(state.deadline.read_seconds, work, model=model_key(encoder))
