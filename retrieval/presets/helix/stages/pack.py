"""Making the numbered context, the best passages at both of its ends."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, StageGroup
from retrieval.engine.state import Drop, DropReason, SearchState
from retrieval.engine.tunables import Tunables, tunable
from retrieval.engine.types import Ranking
from retrieval.ranking.packing import outside_in, pack
from retrieval.stages.assemble import beyond_wanted, header


@dataclass(frozen=True, slots=True, kw_only=True)
class PackConfig(Tunables):
    """How hits become the numbered context: best first, second last."""

    label: ClassVar[str] = "Context"

    budget_tokens: int = tunable(4000, low=100, high=200_000, unit="tokens", help="Size of the context.", costs=True)
    max_passages: int = tunable(
        20, low=1, high=100, unit="passages", help="Largest number of packed passages.", costs=True
    )


@dataclass(frozen=True, slots=True)
class Pack:
    """Pack the best hits under the token budget: the best first, the second last, the third second.

    A model reads what stands in the middle of a long context the least. The numbers follow the ranking, from [1].
    """

    config: PackConfig
    count_tokens: Callable[[str], int]

    name: ClassVar[str] = "pack"
    needs: ClassVar[frozenset[str]] = frozenset({"hits", "facts", "order", "scope"})
    gives: ClassVar[frozenset[str]] = frozenset({"passages"})
    optional: ClassVar[bool] = False
    about: ClassVar[About] = About(
        "packed",
        "Packs the best hits under the token budget, the best first and the second last.",
        group=StageGroup.PACK,
        unit="passages",
        section="pack",
        drops=(
            DropReason.BUDGET,
            DropReason.TOP_K,
        ),
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
        drops = (*over_budget, *self._over_cap(wanted), *beyond_wanted(state))
        return replace(state, passages=outside_in(passages), drops=(*state.drops, *drops))

    def _over_cap(self, wanted: Ranking) -> tuple[Drop, ...]:
        limit = self.config.max_passages
        return tuple(
            Drop(
                hit.chunk_id,
                DropReason.BUDGET,
                f"rank {rank}, at most {limit} passages",
                {"rank": rank, "limit": limit},
            )
            for rank, hit in enumerate(wanted[limit:], start=limit + 1)
        )
