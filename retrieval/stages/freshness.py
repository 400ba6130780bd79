"""How fresh each hit is."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from corecube.scope import FreshnessBasis
from retrieval.engine.about import About, BaseStage
from retrieval.engine.state import SearchState
from retrieval.engine.types import ChunkFacts
from retrieval.ranking.blend import freshness


@dataclass(frozen=True, slots=True)
class Freshness(BaseStage, name="freshness", needs={"hits", "facts"}, gives={"freshness"}):
    """Give each hit its freshness: halved with every half-life of its connection."""

    since_sync: bool = False  #: Whether every age counts from the last sync, whatever the connection's basis is.

    about: ClassVar[About] = About(
        "freshness",
        "Computes each hit's freshness from its age and its connection's half-life.",
        fact=lambda hit, _: f"{hit.signals['freshness']:.2f} at {hit.signals['age_days']:,.0f} days",
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with `age_days` and `freshness` among each hit's signals."""
        hits = []
        for hit in state.hits:
            connection = state.scope.inclusion(hit.chunk.connection_id).connection
            since = FreshnessBasis.SYNCED if self.since_sync else connection.freshness_basis
            age = age_days(hit.chunk, since, state.now)
            fresh = freshness(age, connection.half_life_days)
            hits.append(hit.with_signals({**hit.signals, "age_days": age, "freshness": fresh}))
        return replace(state, hits=tuple(hits))


def age_days(chunk: ChunkFacts, basis: FreshnessBasis, now: datetime) -> float:
    """Return days since a freshness basis: the last sync, or the document's last change if known."""
    since = chunk.synced_at
    if basis is FreshnessBasis.MODIFIED and chunk.modified_at is not None:
        since = chunk.modified_at
    return (now - since) / timedelta(days=1)
