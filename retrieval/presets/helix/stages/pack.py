"""Packing the numbered context, with the best passages at both ends."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import DropReason, SearchState, drops_beyond
from retrieval.engine.tunables import Tunables, costly
from retrieval.ranking.packing import outside_in, pack
from retrieval.stages.assemble import beyond_wanted, header


@dataclass(frozen=True, slots=True, kw_only=True)
class PackConfig(Tunables, label="Context"):
    """How hits are packed into the numbered context: best first, second best last."""

    budget_tokens: int = costly(4000, low=100, high=200_000, unit="tokens", help="Maximum size of the context.")
    max_passages: int = costly(20, low=1, high=100, unit="passages", help="Maximum number of packed passages.")


@dataclass(frozen=True, slots=True)
class Pack(BaseStage, name="pack", needs={"hits", "facts", "order", "scope"}, gives={"passages"}):
    """Pack the best hits under the token budget: the best first, the second last, the third second.

    Models attend least to the middle of a long context. The numbers follow the ranking, from [1].
    """

    config: PackConfig
    count_tokens: Callable[[str], int]

    about: ClassVar[About] = About(
        "packed",
        "Packs the best hits within the token budget, the best first and the second best last.",
        group=StageGroup.PACK,
        unit="passages",
        section="pack",
        drops=(DropReason.BUDGET, DropReason.TOP_K),
        window="pack.max_passages",
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with its passages; hits beyond the wanted number, the budget or the cap are dropped."""
        wanted = state.hits[: state.top_k]
        passages, over_budget = pack(
            wanted[: self.config.max_passages],
            budget_tokens=self.config.budget_tokens,
            header=lambda number, hit: header(number, hit, state.scope),
            count_tokens=self.count_tokens,
        )
        limit, detail = self.config.max_passages, "rank {rank}, at most {limit} passages"
        over_cap = drops_beyond(wanted, limit, DropReason.BUDGET, detail, key="limit")
        drops = (*over_budget, *over_cap, *beyond_wanted(state))
        return replace(state, passages=outside_in(passages), drops=(*state.drops, *drops))
