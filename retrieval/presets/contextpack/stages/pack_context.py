"""Packing the numbered context of hits and their neighbours."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from corecube.errors import CoreCubeError
from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Drop, DropReason, Note, SearchState, drops_beyond
from retrieval.engine.tunables import Tunables, costly, switch
from retrieval.engine.types import PRIMARY, ChunkId, Passage, TokenCounter
from retrieval.presets.contextpack.packing import PACK_COUNTED, Packing, items, packed
from retrieval.presets.contextpack.stages.neighbours import FoundNeighbours
from retrieval.stages.assemble import beyond_wanted, header


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextConfig(Tunables, label="Context"):
    """How primary hits and their neighbours are packed into the context."""

    budget_tokens: int = costly(12_000, low=100, high=200_000, unit="tokens", help="Maximum size of the context.")
    min_primary: int = costly(
        3,
        low=0,
        high=100,
        unit="hits",
        help="Number of top primary hits that are packed even if they exceed the budget.",
    )
    whole_sections: int = switch(
        0, help="1 drops the rest of a hit's section as a whole, 0 chunk by chunk, the farthest first."
    )
    cite_ids: int = switch(0, help="1 names documents by id in citation lines, 0 by title.")


@dataclass(frozen=True, slots=True)
class PackContext(BaseStage, name="pack_context", needs={"hits", "facts", "order", "scope"}, gives={"passages"}):
    """Pack the primary hits with their parents, siblings and cross-page neighbours under the token budget.

    The numbers follow the priority: [1] is the best hit, the highest ones are cross-page neighbours.
    """

    config: ContextConfig
    top: int
    #: Returns the answering model's token counter, given the connections of the packed hits; None without one.
    answerer_counter: Callable[[frozenset[int]], TokenCounter | None]
    stand_in: TokenCounter

    about: ClassVar[About] = About(
        "packed",
        "Packs the best hits, each with its section, then their neighbours, within the token budget.",
        group=StageGroup.PACK,
        unit="passages",
        section="context",
        drops=(DropReason.BUDGET, DropReason.TOP_K),
        window="relevance.top",
        notes={
            "pack_over_budget": "best hits exceed the budget",
            "pack_counter_failed": "tokens counted by the embedding model",
        },
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with its passages in reading order; what does not fit the budget is dropped."""
        wanted = state.hits[: state.top_k]
        primaries = wanted[: self.top]
        counter, notes = self.stand_in, []
        try:
            counter = self.answerer_counter(frozenset(hit.chunk.connection_id for hit in primaries)) or counter
        except CoreCubeError:
            how = "tokens are counted with the embedding model's tokenizer"
            text = f"The answering model could not be determined; {how}."
            notes.append(Note("pack_counter_failed", text, degraded=True))
        around = state.part(FoundNeighbours) or FoundNeighbours()
        found = packed(
            items(primaries, around.neighbours),
            budget_tokens=self.config.budget_tokens,
            min_primary=self.config.min_primary,
            header=lambda number, hit: header(number, hit, state.scope),
            count_tokens=counter.count,
            whole_sections=bool(self.config.whole_sections),
        )
        passages = tuple(Passage(it.number, it.item.hit, it.header, it.tokens, it.item.role) for it in found.kept)
        detail = "rank {rank}, at most {limit} hits are packed"
        over_cap = drops_beyond(wanted, self.top, DropReason.BUDGET, detail, key="limit")
        packed_ids = {passage.hit.chunk_id for passage in passages}
        drops: dict[ChunkId, Drop] = {}
        for drop in (*self._drops(found), *over_cap, *beyond_wanted(state)):
            # A surplus hit can be a neighbour of a better one.
            if drop.chunk_id not in packed_ids:
                drops.setdefault(drop.chunk_id, drop)
        if found.tokens > (budget := self.config.budget_tokens):
            text = f"The {len(found.kept)} best hits alone have {found.tokens:,} tokens; the budget is {budget:,}."
            notes.append(Note("pack_over_budget", text, degraded=True))
        event = {"event": PACK_COUNTED, "tokenizer": counter.name, "tokens": found.tokens}
        return state.with_more(passages=passages, drops=drops.values(), notes=notes, events=(event,))

    def _drops(self, found: Packing) -> Iterator[Drop]:
        """Yield a drop for each item, with the budget at which it would fit."""
        total = found.tokens + sum(it.tokens for it in found.dropped)
        budget = self.config.budget_tokens
        for it in found.dropped:
            role = "primary hit" if it.item.role == PRIMARY else it.item.role.replace("_", "-")
            detail = f"{role} of {it.tokens:,} tokens, {total - budget:,} over the budget of {budget:,}"
            yield Drop(it.item.chunk_id, DropReason.BUDGET, detail, {"needed": total, "budget": budget})
            total -= it.tokens
