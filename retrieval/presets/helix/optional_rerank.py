"""The optional local reranker of a CPU-only preset."""

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
    """Input of a local reranker. A CPU needs tens of milliseconds for each hit."""

    candidates: int = costly(
        0, low=0, high=30, unit="hits", help="Number of top hits that a local reranker scores; 0 turns it off."
    )
    reserve_ms: int = tunable(
        100, low=0, high=10_000, unit="ms", help="Time reserved for finishing the search after reranking."
    )


def optional_rerank(
    config: OptionalRerankConfig, reranker: Reranker | None, calls: ModelCalls | None = None
) -> tuple[Rerank, ...]:
    """Return the stage in a tuple; empty without candidates.

    A remote service is not used: the stage then leaves a note, and the order does not change. Raises ConfigError for
    too many candidates, which the configuration's bounds exclude.
    """
    if not config.candidates:
        return ()
    if config.candidates > MAX_PAIRS:
        raise ConfigError(f"A reranker on this machine takes at most {MAX_PAIRS} candidates, not {config.candidates}.")
    limits = RerankConfig(candidates=config.candidates, reserve_ms=config.reserve_ms)
    if isinstance(reranker, RemoteReranker):
        problem = "This preset uses no remote service during a search."
        reranker = UnavailableReranker(reranker.name, problem, reranker.score_type)
    return (Rerank(limits, reranker and timed(reranker, calls or ModelCalls())),)
