"""The context: the passages that a language model receives, and the hits that were left out."""

from dataclasses import dataclass
from typing import Final

from explorer.components.bars import percent
from explorer.components.drops import ChunkLabels, DropList, drop_list
from retrieval.engine.state import DropReason
from retrieval.engine.types import Passage
from retrieval.search.outcome import SearchOutcome

#: Why a hit is not in the context, the nearest misses first.
_LEFT_OUT: Final = (
    DropReason.BUDGET,
    DropReason.REPETITIVE,
    DropReason.DUPLICATE,
    DropReason.BELOW_FLOOR,
    DropReason.QUALITY,
)


@dataclass(frozen=True, slots=True)
class ContextPanel:
    """The numbered context and its budget, in tokens."""

    passages: tuple[Passage, ...]
    used: int
    budget: int
    share: float
    left_out: DropList
    cut: int
    beyond: int  #: Hits outside top k; they were not considered for the budget.


def context_panel(outcome: SearchOutcome, labels: ChunkLabels) -> ContextPanel:
    """Return the context of a search."""
    _, budget = outcome.config.budget
    used = sum(passage.token_count for passage in outcome.passages)
    drops = outcome.state.drops
    left_out = [drop for reason in _LEFT_OUT for drop in drops if drop.reason is reason]
    return ContextPanel(
        passages=outcome.passages,
        used=used,
        budget=budget,
        share=round(percent(used, budget), 2),
        left_out=drop_list(left_out, labels),
        cut=sum(drop.reason is DropReason.BUDGET for drop in drops),
        beyond=sum(drop.reason is DropReason.TOP_K for drop in drops),
    )
