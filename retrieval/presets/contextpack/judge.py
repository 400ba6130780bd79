"""Scoring candidates by a rubric, caching the scores, and mapping other scores to the rubric's scale. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from typing import Final, Protocol

from retrieval.engine.caches import RecentCache
from retrieval.engine.tunables import Tunables, costly, tunable
from retrieval.engine.types import ChunkId, Hit, Ranking, ScoreType
from retrieval.ranking.blend import BlendConfig, on_unit_scale

#: The signals of a hit that a language model scored, and of one with another score on the same scale.
RUBRIC: Final = "rubric"
ANSWERS: Final = "answers"
MAPPED: Final = "mapped"
_WHOLE: Final = 100.0
_LATE_SHARE: Final = 0.5  #: Share of late interaction on top of the highest blend.


@dataclass(frozen=True, slots=True)
class Relevance:
    """A language model's score of one candidate."""

    score: float  #: By the rubric, 0 to 100.
    is_answering: bool  #: Whether the candidate by itself answers the question.
    evidence: str = ""  #: The decisive words of the document: shown with the search, never stored or logged.


@dataclass(frozen=True, slots=True)
class RubricScores:
    """The rubric scores of the candidates."""

    candidates: Ranking = ()  #: The candidates by these scores, or by mapped ones, before the cut.
    #: A language model's scores; empty without a model.
    relevance: Mapping[ChunkId, Relevance] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceConfig(Tunables, label="Relevance by rubric"):
    """Input and time limits of the language model. The routing rules select the model."""

    model: str = ""  #: Name of the model that scores where it is configured and may read the candidates; empty for any.
    candidates: int = costly(
        50, low=1, high=100, unit="hits", help="Number of top blended hits that the language model grades."
    )
    top: int = costly(
        15,
        low=1,
        high=100,
        unit="hits",
        help="Number of top hits that are packed as primary hits, unless fewer are requested.",
    )
    characters: int = costly(
        1200, low=100, high=20_000, unit="characters", help="Maximum length of a candidate in the prompt."
    )
    strict_json: int = tunable(
        1,
        low=0,
        high=1,
        help="1 requests structured output (JSON schema) from services that support it. Answers are always validated.",
    )
    attempts: int = costly(3, low=1, high=5, help="Maximum number of requests for missing or invalid grades.")
    timeout_ms: int = costly(20_000, low=100, high=300_000, unit="ms", help="Total time limit for the language model.")
    reserve_ms: int = tunable(
        3000, low=0, high=60_000, unit="ms", help="Time reserved for the reranker in case the language model fails."
    )


@dataclass(frozen=True, slots=True)
class Spent:
    """The usage of a language model."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    is_estimated: bool = False  #: Some tokens were estimated, because the service did not report them.


@dataclass(frozen=True, slots=True)
class Judged:
    """A language model's scores of candidates."""

    model: str
    by_chunk: Mapping[ChunkId, Relevance]  #: Candidates that it left out are absent.
    prompts: int = 0  #: Prompts sent, and prompts answered from the cache.
    known: int = 0
    spent: Spent = field(default_factory=Spent)  #: Usage, unusable answers included.
    is_preferred: bool = True  #: Whether it is the model that the settings name, if they name one.


class RelevanceJudge(Protocol):
    """Has a permitted language model score candidates."""

    def __call__(self, question: str, hits: Ranking, *, config: RelevanceConfig, seconds: float) -> Judged:
        """Return the scores of completed hits; raise JudgingError within `seconds`, first for a missing permission."""


@dataclass(frozen=True, slots=True)
class Judge:
    """What scores the candidates of a search."""

    ask: RelevanceJudge


def judged_ranking(hits: Ranking, judged: Mapping[ChunkId, Relevance], blend: BlendConfig) -> Ranking:
    """Return the hits, given best first, by their rubric score; ties keep their order.

    Hits without one keep their order, behind all scores above 0 and before those of 0; their scores are mapped to the
    same scale, none above a score before it. Raw values become signals.
    """
    scored = []
    for hit in hits:
        if it := judged.get(hit.chunk_id):
            signals = {**hit.signals, **_blended(hit), RUBRIC: it.score, ANSWERS: float(it.is_answering)}
            contributions = {RUBRIC: it.score}
            scored.append(
                replace(hit, score=it.score, score_type=ScoreType.RUBRIC, signals=signals, contributions=contributions)
            )
    ordered = sorted(scored, key=lambda hit: -hit.score)
    related = [hit for hit in ordered if hit.score > 0]
    limit = related[-1].score if related else _WHOLE
    others = mapped_ranking(tuple(hit for hit in hits if hit.chunk_id not in judged), blend, limit=limit)
    return (*related, *others, *ordered[len(related) :])


def mapped_ranking(hits: Ranking, blend: BlendConfig, *, limit: float = _WHOLE) -> Ranking:
    """Return ranked hits in the same order with scores mapped to the rubric's scale.

    No score exceeds `limit` or one before it, since hits of two score types may follow each other.
    """
    whole = blend.dense + blend.fulltext + blend.freshness
    scores = accumulate((on_rubric_scale(hit, whole) for hit in hits), min, initial=limit)
    return tuple(
        replace(
            hit,
            score=score,
            score_type=ScoreType.MAPPED,
            signals={**_blended(hit), **hit.signals, MAPPED: score},
            contributions={MAPPED: score},
        )
        for hit, score in zip(hits, islice(scores, 1, None), strict=True)
    )


def _blended(hit: Hit) -> dict[str, float]:
    return {} if hit.score_type is ScoreType.COSINE else {"blend": hit.score}


def on_rubric_scale(hit: Hit, whole: float) -> float:
    """Return a reranker's or the blend's score as 0 to 100; `whole` is the highest blend.

    A logit is mapped by the logistic function, a service's relevance counts from 0.
    """
    highest = {ScoreType.BLEND: whole, ScoreType.MAXSIM: whole + _LATE_SHARE}.get(hit.score_type, 1.0)
    share = on_unit_scale(hit) / highest if highest > 0 else 0.0
    return _WHOLE * min(1.0, max(0.0, share))


#: The scores of the prompts used last, up to some 31 KB each: 50 candidates, each with the longest evidence.
RelevanceCache = RecentCache[Mapping[ChunkId, Relevance]]
