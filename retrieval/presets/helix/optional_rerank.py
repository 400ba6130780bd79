"""The optional reranker of a CPU-only preset: on this machine while somebody waits, any in a queued search."""

from dataclasses import dataclass
from typing import Final

from corecube.errors import ConfigError
from retrieval.encoders.model_calls import ModelCalls, timed
from retrieval.encoders.remote_reranker import RemoteReranker
from retrieval.encoders.reranker import Reranker, UnavailableReranker
from retrieval.engine.tunables import Tunables, costly, tunable
from retrieval.stages.rerank import Rerank, RerankConfig

MAX_PAIRS: Final = 30  #: More take seconds on a CPU: 100 pairs took a large cross-encoder 88 s.


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalRerankConfig(Tunables, label="Reranker"):
    """Input and time of the reranker. A CPU needs tens of milliseconds for each hit."""

    candidates: int = costly(
        0, low=0, high=30, unit="hits", help="Number of top hits that a local reranker scores; 0 turns it off."
    )
    reserve_ms: int = tunable(
        100, low=0, high=10_000, unit="ms", help="Time reserved for finishing the search after reranking."
    )
    queued_candidates: int = costly(
        0,
        low=0,
        high=100,
        unit="hits",
        help="Number of top hits that the reranker scores in a queued search, where it may be a service; one on this"
        " machine scores at most 30. 0 turns it off there.",
    )
    queued_ms: int = costly(
        20_000, low=0, high=120_000, unit="ms", help="Time that reranking adds to the time limit in a queued search."
    )


@dataclass(frozen=True, slots=True)
class QueuedTier:
    """Marks the resources of a search that a worker runs, where nobody waits."""


def optional_rerank(
    config: OptionalRerankConfig, reranker: Reranker | None, calls: ModelCalls | None = None, *, is_queued: bool = False
) -> tuple[Rerank, ...]:
    """Return the stage in a tuple; empty without candidates.

    Only a queued search uses a remote service: in others the stage leaves a note, and the order does not change. Raises
    ConfigError for too many candidates, which the configuration's bounds exclude.
    """
    candidates = config.candidates
    if is_queued and config.queued_candidates:
        is_remote = isinstance(reranker, RemoteReranker)
        candidates = config.queued_candidates if is_remote else min(MAX_PAIRS, config.queued_candidates)
    elif not candidates:
        return ()
    elif candidates > MAX_PAIRS:
        raise ConfigError(f"A reranker on this machine takes at most {MAX_PAIRS} candidates, not {candidates}.")
    elif isinstance(reranker, RemoteReranker):
        problem = "This preset uses no remote service during a search."
        reranker = UnavailableReranker(reranker.name, problem, reranker.score_type)
    limits = RerankConfig(candidates=candidates, reserve_ms=config.reserve_ms)
    return (Rerank(limits, reranker and timed(reranker, calls or ModelCalls())),)
