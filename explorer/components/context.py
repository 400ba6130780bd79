"""The context: the passages that a language model receives, and the hits that were left out."""

from functools import partial
from typing import Any, Final

from django.utils.functional import SimpleLazyObject

from explorer.components.bars import percent
from explorer.components.drops import ChunkLabels, drop_list
from retrieval.engine.state import DropReason
from retrieval.search.outcome import SearchOutcome

#: Why a hit is not in the context, the nearest misses first.
_LEFT_OUT: Final = (
    DropReason.BUDGET,
    DropReason.REPETITIVE,
    DropReason.DUPLICATE,
    DropReason.BELOW_FLOOR,
    DropReason.QUALITY,
)


def context_panel(outcome: SearchOutcome, labels: ChunkLabels) -> dict[str, Any]:
    """Return the context of a search."""
    _, budget = outcome.config.budget
    used = sum(passage.token_count for passage in outcome.passages)
    drops = outcome.state.drops
    left_out = [drop for reason in _LEFT_OUT for drop in drops if drop.reason is reason]
    return {
        "passages": outcome.passages,
        "used": used,
        "budget": budget,
        "share": round(percent(used, budget), 2),
        # Only read where the context is open.
        "left_out": SimpleLazyObject(partial(drop_list, left_out, labels)),
        "cut": sum(drop.reason is DropReason.BUDGET for drop in drops),
        "beyond": sum(drop.reason is DropReason.TOP_K for drop in drops),
    }
