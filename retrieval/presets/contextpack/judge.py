"""What the stage asks of whoever judges candidates, and bringing other scores onto the rubric's scale. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from typing import ClassVar, Final, Protocol

from retrieval.engine.tunables import Tunables, tunable
from retrieval.engine.types import ChunkId, Hit, Ranking, ScoreType
from retrieval.ranking.blend import BlendConfig, on_unit_scale

#: The signals of a hit that a language model judged, and of one that has another score on the same scale.
RUBRIC: Final = "rubric"
ANSWERS: Final = "answers"
MAPPED: Final = "mapped"
_WHOLE: Final = 100.0
#: What half of the late interaction adds to the highest blend.
_LATE_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Relevance:
    """What a language model judged of one candidate."""

    #: By the rubric, 0 to 100.
    score: float
    #: Whether the candidate by itself answers the question.
    is_answering: bool
    #: What it rests on, in the document's words: shown with the search, never stored or logged.
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class RubricScores:
    """What was judged of the candidates."""

    #: The candidates by those judgments, or by what stood in for them, before all but the best were dropped.
    candidates: Ranking = ()
    #: What a language model judged, in its own words; empty where none did.
    relevance: Mapping[ChunkId, Relevance] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceConfig(Tunables):
    """What the language model judges, and how long it may take; which model it is the routing rules say."""

    label: ClassVar[str] = "Relevance by rubric"

    candidates: int = tunable(
        50, low=1, high=100, unit="hits", help="Hits of the blend that the language model judges.", costs=True
    )
    top: int = tunable(
        15,
        low=1,
        high=100,
        unit="hits",
        help="Best hits that are packed as primary ones, unless fewer are asked for.",
        costs=True,
    )
    characters: int = tunable(
        1200, low=100, high=20_000, unit="characters", help="Part of a candidate that the model is shown.", costs=True
    )
    strict_json: int = tunable(
        1,
        low=0,
        high=1,
        unit="",
        help="1 asks services to follow the JSON schema where they can; answers are checked strictly either way.",
    )
    attempts: int = tunable(
        3, low=1, high=5, unit="", help="Attempts to get what the model left out or got wrong.", costs=True
    )
    timeout_ms: int = tunable(
        20_000, low=100, high=300_000, unit="ms", help="Total time limit for the language model.", costs=True
    )
    reserve_ms: int = tunable(
        3000, low=0, high=60_000, unit="ms", help="Time reserved for the reranker in case the language model fails."
    )


@dataclass(frozen=True, slots=True)
class Spent:
    """What some answers of a language model took."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    #: Some tokens were counted here, because the service did not say.
    is_estimated: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """What a language model made of some candidates."""

    #: The model's name.
    model: str
    #: Those that it left out are absent.
    by_chunk: Mapping[ChunkId, Relevance]
    #: Prompts that were sent, and those whose judgments were kept from the last time.
    asked: int = 0
    known: int = 0
    #: What the model's answers took, those that were of no use too.
    spent: Spent = field(default_factory=Spent)


class RelevanceJudge(Protocol):
    """Has a language model judge candidates, of those that may read them."""

    def __call__(self, question: str, hits: Ranking, *, config: RelevanceConfig, seconds: float) -> Judged:
        """Return the judgments of the hits, which are completed; raise JudgingError within about `seconds`.

        Where no model may judge that is said first, and not that no time was left for one.
        """


@dataclass(frozen=True, slots=True)
class Judge:
    """Who judges a search's candidates."""

    ask: RelevanceJudge


def judged_ranking(hits: Ranking, judged: Mapping[ChunkId, Relevance], blend: BlendConfig) -> Ranking:
    """Return the hits by their score on the rubric, the better blended first among equals.

    Those without a judgment keep their order, behind all that are related at all and before those judged 0; their
    scores are brought onto the same scale, none above a score before it. Raw values are kept among the signals.
    """
    scored = [_judged_hit(hit, judged[hit.chunk_id]) for hit in hits if hit.chunk_id in judged]
    ordered = sorted(scored, key=lambda hit: (-hit.score, -hit.signals["blend"], hit.chunk_id))
    related = [hit for hit in ordered if hit.score > 0]
    limit = related[-1].score if related else _WHOLE
    others = mapped_ranking(tuple(hit for hit in hits if hit.chunk_id not in judged), blend, limit=limit)
    return (*related, *others, *ordered[len(related) :])


def _judged_hit(hit: Hit, relevance: Relevance) -> Hit:
    signals = {**hit.signals, "blend": hit.score, RUBRIC: relevance.score, ANSWERS: float(relevance.is_answering)}
    return replace(
        hit,
        score=relevance.score,
        score_type=ScoreType.RUBRIC,
        signals=signals,
        contributions={RUBRIC: relevance.score},
    )


def mapped_ranking(hits: Ranking, blend: BlendConfig, *, limit: float = _WHOLE) -> Ranking:
    """Return ranked hits in the same order, their scores on the rubric's scale and marked as not judged by it.

    No score is above `most`, nor above one before it: hits of two kinds of scores may follow each other.
    """
    whole = blend.dense + blend.fulltext + blend.freshness
    scores = accumulate((on_rubric_scale(hit, whole) for hit in hits), min, initial=limit)
    return tuple(
        replace(
            hit,
            score=score,
            score_type=ScoreType.MAPPED,
            signals={"blend": hit.score, **hit.signals, MAPPED: score},
            contributions={MAPPED: score},
        )
        for hit, score in zip(hits, islice(scores, 1, None), strict=True)
    )


def on_rubric_scale(hit: Hit, whole: float) -> float:
    """Return a reranker's or the blend's score as 0 to 100; `whole` is the highest blend.

    A logit counts by its logistic function, a service's relevance from 0 on.
    """
    highest = {ScoreType.BLEND: whole, ScoreType.MAXSIM: whole + _LATE_SHARE}.get(hit.score_type, 1.0)
    share = on_unit_scale(hit) / highest if highest > 0 else 0.0
    return _WHOLE * min(1.0, max(0.0, share))
