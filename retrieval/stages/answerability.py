"""Estimating whether the passages answer the question."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Final, Self

from retrieval.encoders.model_calls import ModelCalls, model_key
from retrieval.encoders.vector_cache import SentenceEncoder
from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.errors import EncoderError, EncoderTimeoutError
from retrieval.ranking.answerability.model import AnswerabilityModel, shipped
from retrieval.ranking.answerability.signals import Evidence, Sentence, best_sentences, read_signals, sentence_cosine
from retrieval.ranking.answerability.verdict import AnswerabilityConfig, judge, nothing
from retrieval.ranking.packing import by_number
from retrieval.ranking.quotes.conflicts import disagreement, find_conflicts
from retrieval.ranking.quotes.ranker import Asking
from retrieval.stages.resources import Resources

#: Notes of a search in which a leg failed.
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
#: Prefixes of the notes of a search that ended early.
_ENDED_EARLY: Final = ("deadline_exceeded_", "soft_cancelled_", "timed_out_")


@dataclass(frozen=True, slots=True)
class EstimateAnswerability(
    BaseStage, name="answerability", needs={"query", "terms", "vector", "rankings", "passages"}, gives={"answerability"}
):
    """Estimate from raw signals how likely the packed passages answer the question.

    The best sentences are embedded only while there is time; without them another fit gives the confidence.
    """

    config: AnswerabilityConfig
    text_search_config: str
    #: None where the model is a remote service: embedding sentences there takes too long.
    encoder: SentenceEncoder | None
    calibrated: AnswerabilityModel | None = None  #: The model fitted on this installation; None for the shipped one.
    calls: ModelCalls = field(default_factory=ModelCalls)

    about: ClassVar[About] = About(
        "answerability",
        "Estimates how likely the passages answer the question.",
        group=StageGroup.PACK,
        section="answerability",
        notes={"answerability_quick": "answerability without sentences"},
    )

    @classmethod
    def of(cls, config: AnswerabilityConfig, resources: Resources, preset: str) -> Self:
        """Return the stage of a preset."""
        fitted = resources.calibrations.get(preset)
        return cls(config, resources.text_search_config, resources.sentence_encoder, fitted, resources.calls)

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the verdict, its confidence and its reason."""
        types = {passage.hit.score_type for passage in state.passages}
        fitted = self.calibrated
        # A calibrated model serves if it was fitted on scores of this search's type.
        is_fit = fitted is not None and (not fitted.score_type or not types or fitted.score_type in types)
        model = fitted if fitted is not None and is_fit else shipped(self.encoder.name if self.encoder else "")
        if not state.passages:
            # A leg that failed may have missed passages: then the answerability is unknown.
            is_known = not any(it in _LEGS_MISSED or it.startswith(_ENDED_EARLY) for it in state.degraded)
            return replace(state, answerability=nothing(state, model=model) if is_known else None)
        evidence = Evidence(
            question=state.query.for_models,
            terms=state.terms,
            rankings=state.rankings,
            passages=state.passages,
            language_of=lambda it: (
                state.scope.inclusion(it.hit.chunk.connection_id).connection.language or self.text_search_config
            ),
        )
        sentences = best_sentences(evidence)
        cosine, notes = self._sentence_cosine(state, sentences)
        signals = {**read_signals(evidence, sentences), **cosine}
        asking = Asking.of(state.query.text, state.terms, self.text_search_config)
        conflicts = find_conflicts(state.query.text, by_number(state.passages), asking, state.scope.trust)
        found = judge(state, signals, model=model, config=self.config, disagreement=disagreement(conflicts))
        return replace(state, answerability=found).noted(*notes)

    def _sentence_cosine(
        self, state: SearchState, sentences: Sequence[Sentence]
    ) -> tuple[dict[str, float], tuple[Note, ...]]:
        texts = [sentence.embedded_text for sentence in sentences[: self.config.sentences]]
        if state.vector is None or not texts or self.encoder is None:
            return {}, ()
        if state.deadline.is_soft:
            return {}, (Note("answerability_quick", "No time was left to embed sentences.", degraded=True),)
        work = partial(self.encoder.encode_documents, texts)
        try:
            vectors = self.calls.within(state.deadline.read_seconds, work, model=model_key(self.encoder))
            return sentence_cosine(vectors, state.vector), ()
        except EncoderTimeoutError:
            return {}, (Note("answerability_quick", "The sentences were not embedded in time.", degraded=True),)
        except EncoderError:
            return {}, (Note("answerability_quick", "The sentences could not be embedded.", degraded=True),)
