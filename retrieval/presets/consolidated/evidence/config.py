"""The numbers that hold for every section; a section's own stand in its section set."""

from dataclasses import dataclass

from retrieval.engine.tunables import Tunables, tunable


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthConfig(Tunables):
    """How many chunks a section asks for."""

    few_documents: int = tunable(
        2, low=0, high=1000, unit="documents", help="Up to so many documents a pool is thin.", at_most="some_documents"
    )
    some_documents: int = tunable(
        10, low=1, high=10_000, unit="documents", help="From one more on there are many documents."
    )
    few_factor: float = tunable(
        1.75, low=1.0, high=4.0, unit="", help="Times the section's complexity where documents are few.", costs=True
    )
    some_factor: float = tunable(1.0, low=1.0, high=4.0, unit="", help="The same in between.", costs=True)
    many_factor: float = tunable(1.5, low=1.0, high=4.0, unit="", help="The same where documents are many.", costs=True)
    minimum: int = tunable(
        8, low=1, high=100, unit="chunks", help="A section never asks for fewer, but for its own cap.", costs=True
    )
    sparse_below: int = tunable(
        200, low=0, high=100_000, unit="chunks", help="A compartment with fewer chunks is sparse."
    )
    sparse_factor: float = tunable(
        1.25,
        low=1.0,
        high=4.0,
        unit="",
        help="A sparse compartment is asked for this many times as much; never for less.",
        costs=True,
    )
    degraded_factor: float = tunable(
        1.5, low=1.0, high=4.0, unit="", help="The same for one whose last searches failed or fell back.", costs=True
    )
    over_fetch: float = tunable(
        1.5,
        low=1.0,
        high=3.0,
        unit="",
        help="Times the depth that is read, so that a minority type can be kept in the cut.",
        costs=True,
        at_most="over_fetch_limit",
    )
    over_fetch_limit: float = tunable(
        1.6,
        low=1.0,
        high=3.0,
        unit="",
        help="Over-fetching beyond this is refused. Raise it only after the connection pool has shown its headroom.",
        costs=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryConfig(Tunables):
    """How the primary pool is fused."""

    sparse_weight: float = tunable(
        0.3, low=0.0, high=1.0, unit="", help="What a rank among words counts; one among vectors counts the rest of 1."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeConfig(Tunables):
    """How good a retrieval is, by how near its core is, and what a poor one may relax."""

    a_from: float = tunable(0.6, low=0.0, high=1.0, unit="nearness", help="From here on it is graded A.")
    b_from: float = tunable(0.5, low=0.0, high=1.0, unit="nearness", help="The same for B.", at_most="a_from")
    c_from: float = tunable(0.4, low=0.0, high=1.0, unit="nearness", help="The same for C.", at_most="b_from")
    d_from: float = tunable(
        0.25, low=0.0, high=1.0, unit="nearness", help="The same for D; below it is F.", at_most="c_from"
    )
    c_relief: float = tunable(0.9, low=0.0, high=1.0, unit="", help="What is left of the score floor at C.")
    d_relief: float = tunable(0.75, low=0.0, high=1.0, unit="", help="What is left of it at D.", at_most="c_relief")
    f_relief: float = tunable(0.5, low=0.0, high=1.0, unit="", help="What is left of it at F.", at_most="d_relief")
    c_depth: float = tunable(
        1.1,
        low=1.0,
        high=3.0,
        unit="",
        help="Times the depth that goes to the reranker at C, as far as it was read and the cap lets.",
        costs=True,
        at_most="d_depth",
    )
    d_depth: float = tunable(1.25, low=1.0, high=3.0, unit="", help="The same at D.", costs=True, at_most="f_depth")
    f_depth: float = tunable(1.5, low=1.0, high=3.0, unit="", help="The same at F.", costs=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DensityConfig(Tunables):
    """When a dense pool's tail is cut off before reranking."""

    cliff_ratio: float = tunable(
        0.85, low=0.1, high=1.0, unit="", help="A score below this share of the one before it is a cliff."
    )
    cliff_drop: float = tunable(
        0.05, low=0.0, high=1.0, unit="nearness", help="Drop that a cliff must have besides; low scores have none."
    )
    rate_from: float = tunable(
        0.02, low=0.0, high=1.0, unit="", help="Least share of a section's searches to be cut.", at_most="rate_to"
    )
    rate_to: float = tunable(0.40, low=0.0, high=1.0, unit="", help="Greatest share of a section's searches to be cut.")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaConfig(Tunables):
    """What the cut before reranking leaves of each source type."""

    seats: int = tunable(
        2, low=1, high=50, unit="chunks", help="Best chunks of every source type that the cut keeps where it can."
    )
    max_share: float = tunable(
        0.5, low=0.0, high=1.0, unit="", help="Share of the places after which no type gets a second seat by quota."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecoveryConfig(Tunables):
    """Looking for a source type that a section requires and its pool lacks."""

    ceiling_seconds: float = tunable(
        12.0, low=0.1, high=60.0, unit="s", help="Time one such look may take.", costs=True
    )
    max_protected: int = tunable(
        8,
        low=0,
        high=100,
        unit="chunks",
        help="Recovered chunks that come back after the reranker cut them.",
        costs=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeConfig(Tunables):
    """The tiers that an empty pool falls through."""

    first_wait_seconds: float = tunable(
        0.5,
        low=0.0,
        high=10.0,
        unit="s",
        help="Wait after the first tier; each one doubles it.",
        at_most="max_wait_seconds",
    )
    max_wait_seconds: float = tunable(4.0, low=0.0, high=60.0, unit="s", help="Longest wait, before jitter.")
    jitter: float = tunable(0.25, low=0.0, high=1.0, unit="", help="Share by which a wait is longer or shorter.")
    structure_minimum: int = tunable(
        3, low=1, high=100, unit="chunks", help="Passing chunks of the routed headings that make a sweep needless."
    )
    min_tokens: int = tunable(5, low=0, high=500, unit="tokens", help="A recovered chunk with fewer is no evidence.")
    floor_share: float = tunable(
        0.5, low=0.0, high=1.0, unit="", help="Share of the section's score floor that a recovered chunk must reach."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessConfig(Tunables):
    """How much of the first places one document or one source type may take while others have something to say."""

    document_share: float = tunable(0.5, low=0.05, high=1.0, unit="", help="Share of the places for one document.")
    type_share: float = tunable(0.75, low=0.05, high=1.0, unit="", help="Share of the places for one source type.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecedenceConfig(Tunables):
    """What a source type's precedence adds to a reranked score."""

    limit: float = tunable(
        0.004,
        low=0.0,
        high=0.05,
        unit="",
        help="What the foremost source type gets; the last gets nothing, the others stand evenly between.",
        at_most="min_margin",
    )
    min_margin: float = tunable(
        0.005, low=0.0, high=0.05, unit="", help="The smallest lead by a reranker that means something."
    )
    fallback_share: float = tunable(
        0.5, low=0.0, high=1.0, unit="", help="Share of it where the fallback scored, whose scores are smaller."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticBm25Config(Tunables):
    """How the fallback weighs meaning and words; the weights are divided by their sum."""

    semantic: float = tunable(0.7, low=0.05, high=1.0, unit="", help="Weight of the cosine.")
    bm25: float = tunable(0.3, low=0.0, high=1.0, unit="", help="Weight of BM25, as a share of the pool's best.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankPlanConfig(Tunables):
    """When the cross-encoder is asked, and in how many requests."""

    min_budget_ms: int = tunable(
        150, low=0, high=60_000, unit="ms", help="With less time left the cross-encoder is not asked at all."
    )
    chunk_ms: float = tunable(
        25.0,
        low=0.1,
        high=5000.0,
        unit="ms",
        help="Time per chunk that is expected until it has been measured.",
        is_shared=True,
    )
    learning: float = tunable(
        0.2,
        low=0.0,
        high=1.0,
        unit="",
        help="Weight of the last measurement in the time per chunk that is expected.",
        is_shared=True,
    )
    forgetting: float = tunable(
        0.05,
        low=0.0,
        high=1.0,
        unit="",
        help="How far the expected time returns to the first one when there is a skip.",
        is_shared=True,
    )
    split_above: int = tunable(80, low=1, high=1000, unit="chunks", help="A larger pool is sent in batches.")
    batch: int = tunable(
        60,
        low=1,
        high=1000,
        unit="chunks",
        help="Chunks of one batch; batches run side by side.",
        at_most="split_above",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerConfig(Tunables):
    """When a failing cross-encoder is left alone."""

    failures: int = tunable(
        3, low=1, high=100, unit="failures", help="Failures in a row that open the breaker.", is_shared=True
    )
    open_seconds: float = tunable(
        60.0, low=0.0, high=3600.0, unit="s", help="Time it stays open before a trial.", is_shared=True
    )
    successes: int = tunable(
        2,
        low=1,
        high=100,
        unit="successes",
        help="Trials in a row that must succeed to close it again.",
        is_shared=True,
    )
