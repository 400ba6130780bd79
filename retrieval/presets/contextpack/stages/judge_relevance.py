"""Scoring the best of the blend by a language model."""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Final

from retrieval.encoders.reranker import Reranker
from retrieval.engine.about import About, BaseStage
from retrieval.engine.state import DropReason, Note, SearchState, drops_beyond
from retrieval.engine.types import ChunkId, Hit, Ranking, ScoreType
from retrieval.errors import JudgingError, NoJudgeError
from retrieval.presets.contextpack.judge import (
    Judged,
    Relevance,
    RelevanceConfig,
    RelevanceJudge,
    RubricScores,
    judged_ranking,
    mapped_ranking,
)
from retrieval.ranking.blend import BlendConfig
from retrieval.stages.rerank import Rerank, RerankConfig

logger = logging.getLogger(__name__)

RELEVANCE_SPENT: Final = "relevance_spent"  #: The event with the model that scored, and its usage.
_RERANK_RESERVE_MS: Final = 100  #: Time reserved for the rest of the search when a reranker is used instead.


def _rubric_fact(hit: Hit, config: Any) -> str:  # noqa: ANN401, ARG001 -- one signature for all stages
    if hit.score_type is ScoreType.RUBRIC:
        answers = "answers the question" if hit.signals["answers"] else "does not answer it by itself"
        return f"{hit.score:.0f} by the rubric, {answers}"
    return f"not scored by the model, {hit.score_type} {hit.score:.3f}"


@dataclass(frozen=True, slots=True)
class JudgeRelevance(
    BaseStage, name="judge_relevance", needs={"query", "hits", "facts", "order"}, gives={"relevance", "judged"}
):
    """Order the best of the blend by a language model's score, 0 to 100 by a rubric.

    Without a model, and for hits that it left out or was not shown, the reranker's score, else the blend's, is mapped
    to the same scale and marked. The search continues if the model fails.
    """

    config: RelevanceConfig
    blend: BlendConfig
    judge: RelevanceJudge | None
    reranker: Reranker | None
    judged_only: bool = False  #: Whether hits that the model is not shown are dropped, not ranked by their own score.

    about: ClassVar[About] = About(
        "reranked",
        "A language model scores the top blended hits from 0 to 100. Without one, another score is mapped to that "
        "scale.",
        section="relevance",
        drops=(DropReason.RERANK_CUT,),
        window="relevance.top",
        notes={
            "relevance_judged": "scored by a language model",
            "relevance_none": "no language model for scoring",
            "relevance_forbidden": "no model may read all candidates",
            "relevance_failed": "language model failed to score",
            "relevance_timeout": "language model timed out",
            "relevance_incomplete": "not all candidates scored",
            "relevance_other_model": "another language model scored",
        },
        fact=_rubric_fact,
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state ordered by score; hits behind the requested number are dropped."""
        if self.judged_only:
            shown = self.config.candidates
            drops = drops_beyond(state.hits, shown, DropReason.RERANK_CUT, "rank {rank}, {limit} are scored")
            state = replace(state, hits=state.hits[:shown], drops=(*state.drops, *drops))
        seen, unseen = state.hits[: self.config.candidates], state.hits[self.config.candidates :]
        if not seen:
            return state
        try:
            judged = self._judged(seen, state)
        except JudgingError as error:
            return self._cut(self._without(error, replace(state, hits=seen), unseen), {})
        hits = judged_ranking(state.hits, judged.by_chunk, self.blend)
        # Prompts answered from the cache take nothing.
        spent = {"event": RELEVANCE_SPENT, "model": judged.model, "known": judged.known, **asdict(judged.spent)}
        scored = f"{judged.model} scored {len(judged.by_chunk)} of {len(seen)} candidates in {judged.prompts} prompts"
        known = f", {judged.known} more were cached" if judged.known else ""
        notes = [Note("relevance_judged", f"{scored}{known}.")]
        if missing := len(seen) - len(judged.by_chunk):
            text = f"{judged.model} left {missing} candidates out; they rank above those graded as unrelated."
            notes.append(Note("relevance_incomplete", text, degraded=True))
        if not judged.is_preferred:
            text = f"{self.config.model} did not score the candidates; {judged.model} did instead."
            notes.append(Note("relevance_other_model", text, degraded=True))
        state = replace(state, hits=hits, notes=(*state.notes, *notes), events=(*state.events, spent))
        return self._cut(state, judged.by_chunk)

    def _judged(self, hits: Ranking, state: SearchState) -> Judged:
        if self.judge is None:
            raise NoJudgeError
        left = state.deadline.leg_seconds - self.config.reserve_ms / 1000
        seconds = min(left, self.config.timeout_ms / 1000)
        question = state.query.for_models
        try:
            return self.judge(question, hits, config=self.config, seconds=seconds)
        except JudgingError:
            raise
        except Exception as error:
            # Only the class: the message of an unknown error may contain document text.
            logger.error("relevance.broken error=%s", type(error).__name__)  # noqa: TRY400
            raise JudgingError("The language model failed unexpectedly.") from error

    def _without(self, error: JudgingError, state: SearchState, unseen: Ranking) -> SearchState:
        """Return the state with its hits in the reranker's order, else the blend's, on the rubric's scale."""
        stand_in = "The blend's score" if state.hits[0].score_type is ScoreType.BLEND else "The cosine"
        if self.reranker is not None and not state.deadline.is_soft:
            config = RerankConfig(candidates=min(len(state.hits), 200), reserve_ms=_RERANK_RESERVE_MS)
            state = Rerank(config, self.reranker)(state)
            if any("rerank" in hit.signals for hit in state.hits):
                stand_in = f"The score of {self.reranker.name}"
        text = f"{error} {stand_in} is used instead, on the same scale from 0 to 100."
        is_missed = bool(self.config.model) or not isinstance(error, NoJudgeError)
        note = Note(error.code, text, degraded=is_missed)
        hits = mapped_ranking((*state.hits, *unseen), self.blend)
        return replace(state, hits=hits, notes=(*state.notes, note))

    def _cut(self, state: SearchState, relevance: Mapping[ChunkId, Relevance]) -> SearchState:
        window = max(self.config.top, state.top_k)
        drops = drops_beyond(state.hits, window, DropReason.RERANK_CUT)
        parts = state.parts_with(RubricScores(state.hits, dict(relevance)))
        return replace(state, hits=state.hits[:window], parts=parts, drops=(*state.drops, *drops))
