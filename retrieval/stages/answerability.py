"""Estimating whether the passages answer the question."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.engine.types import Passage
from retrieval.errors import SearchTimeoutError
from retrieval.index.sentences import SentenceVectors
from retrieval.ranking.answerability.model import AnswerabilityModel, shipped
from retrieval.ranking.answerability.signals import Evidence, Sentence, read_signals, sentence_cosine
from retrieval.ranking.answerability.verdict import AnswerabilityConfig, judge, nothing
from retrieval.ranking.packing import by_number
from retrieval.ranking.quotes.candidates import candidates
from retrieval.ranking.quotes.conflicts import MAX_PLACE, disagreement, find_conflicts
from retrieval.ranking.quotes.ranker import Asking
from retrieval.ranking.quotes.ranker import shipped as quote_ranker
from retrieval.stages.resources import Resources
from retrieval.text.small_talk import is_small_talk

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
_READ: Final = 3  #: Passages whose sentences are read.


@dataclass(frozen=True, slots=True)
class EstimateAnswerability(
    BaseStage, name="answerability", needs={"query", "terms", "vector", "rankings", "passages"}, gives={"answerability"}
):
    """Estimate from raw signals how likely the packed passages answer the question.

    Where the vectors of the first sentences are not stored yet, or cannot be read in time, another fit gives the
    confidence.
    """

    config: AnswerabilityConfig
    text_search_config: str
    stored: SentenceVectors | None  #: None where the embedding model is a remote service.
    calibrated: AnswerabilityModel | None = None  #: The model fitted on this installation; None for the shipped one.

    about: ClassVar[About] = About(
        "answerability",
        "Estimates how likely the passages answer the question.",
        group=StageGroup.PACK,
        unit="",
        section="answerability",
        notes={"answerability_quick": "answerability without sentences", "small_talk": "no question"},
    )

    @classmethod
    def of(cls, config: AnswerabilityConfig, resources: Resources, preset: str) -> Self:
        """Return the stage of a preset."""
        fitted = resources.calibrations.get(preset)
        return cls(config, resources.text_search_config, resources.sentence_vectors, fitted)

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the verdict, its confidence and its reason; a greeting or the like has none."""
        if is_small_talk(state.query.text):
            note = Note("small_talk", "A greeting or the like asks for nothing, so that there is nothing to judge.")
            return replace(state, answerability=None).noted(note)
        types = {passage.hit.score_type for passage in state.passages}
        fitted = self.calibrated
        # A calibrated model serves if it was fitted on scores of this search's type.
        is_fit = fitted is not None and (not fitted.score_type or not types or fitted.score_type in types)
        model = fitted if fitted is not None and is_fit else shipped(self.stored.model.name if self.stored else "")
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
        asking = Asking.of(state.query.text, state.terms)
        passages = by_number(state.passages)
        cosine, notes = self._sentence_cosine(state, passages)
        signals = {**read_signals(evidence, _sentences(state.query.text, passages[:_READ], asking)), **cosine}

        def contradicting() -> str:
            return disagreement(find_conflicts(state.query.text, passages, asking, state.scope.trust, limit=MAX_PLACE))

        found = judge(state, signals, model=model, config=self.config, disagreement=contradicting)
        return replace(state, answerability=found).noted(*notes)

    def _sentence_cosine(
        self, state: SearchState, passages: Sequence[Passage]
    ) -> tuple[dict[str, float], tuple[Note, ...]]:
        hits = tuple(it.hit for it in passages[: self.config.sentences])
        if state.vector is None or not hits or self.stored is None:
            return {}, ()
        if state.deadline.is_soft:
            return {}, (Note("answerability_quick", "No time was left to compare sentences.", degraded=True),)
        try:
            cosines = self.stored.cosines(
                hits, state.vector, scope=state.scope, timeout_seconds=state.deadline.read_seconds
            )
        except SearchTimeoutError:
            return {}, (Note("answerability_quick", "The sentences were not read in time.", degraded=True),)
        return sentence_cosine(cosines), ()


def _sentences(question: str, passages: Sequence[Passage], asking: Asking) -> list[Sentence]:
    """Return what can be quoted of the passages, with what it holds of the question."""
    ranked = quote_ranker().best_first(candidates(passages, question, asking.language), asking)
    return [
        Sentence(
            it.candidate.text,
            it.signals["coverage"],
            it.signals["coverage"] + it.signals["coverage_before"],
            it.signals["coverage"] + it.signals["coverage_place"],
            it.score,
        )
        for it in ranked
    ]
