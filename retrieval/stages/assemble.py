"""Packing the numbered context."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from corecube.scope import AccessScope
from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Drop, DropReason, SearchState, drops_beyond
from retrieval.engine.tunables import Tunables, costly, switch
from retrieval.engine.types import Hit
from retrieval.ranking.packing import pack, passage_header


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembleConfig(Tunables, label="Context"):
    """How hits are packed into the numbered context."""

    budget_tokens: int = costly(4000, low=100, high=200_000, unit="tokens", help="Maximum size of the context.")
    heading_path: int = switch(1, help="1 puts the headings above a passage after its title; 0 only the title.")


@dataclass(frozen=True, slots=True)
class Assemble(BaseStage, name="assemble", needs={"hits", "facts", "order", "scope"}, gives={"passages"}):
    """Pack the best hits as numbered passages under the token budget."""

    config: AssembleConfig
    count_tokens: Callable[[str], int]

    about: ClassVar[About] = About(
        "packed",
        "Packs the best hits as numbered passages within the token budget.",
        group=StageGroup.PACK,
        unit="passages",
        section="assemble",
        drops=(DropReason.BUDGET, DropReason.TOP_K),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with its passages; hits beyond the wanted number or the budget are dropped."""
        passages, over_budget = pack(
            state.hits[: state.top_k],
            budget_tokens=self.config.budget_tokens,
            header=lambda number, hit: header(number, hit, state.scope, with_path=bool(self.config.heading_path)),
            count_tokens=self.count_tokens,
        )
        return replace(state, passages=passages, drops=(*state.drops, *over_budget, *beyond_wanted(state)))


def beyond_wanted(state: SearchState) -> tuple[Drop, ...]:
    """Return a drop for each hit beyond the wanted number."""
    return drops_beyond(state.hits, state.top_k, DropReason.TOP_K, "rank {rank}, top {limit}", key="wanted")


def header(number: int, hit: Hit, scope: AccessScope, *, with_path: bool = True) -> str:
    """Return a passage's header line; its title is followed by the heading path if wanted."""
    connection = scope.inclusion(hit.chunk.connection_id).connection
    title = " > ".join((hit.chunk.title, *(hit.chunk.heading_path if with_path else ())))
    return passage_header(number, title=title, source=connection.name, compartment=connection.compartment)
