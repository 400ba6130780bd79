"""Why a stage dropped a chunk, and what would retain it: one function for each reason."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from corecube.scope import AccessScope
from retrieval.engine.state import Drop, DropReason, SearchState, Span
from retrieval.engine.types import ChunkId, Hit, Ranking
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.depth import adaptive_top_k, over_fetched, relaxed_top_k
from retrieval.presets.consolidated.evidence.order import cut_with_quota, min_slots
from retrieval.presets.consolidated.evidence.recovery import is_recovered
from retrieval.presets.consolidated.evidence.section_state import SectionAsk, SectionState
from retrieval.presets.consolidated.evidence.sections import Section
from retrieval.presets.consolidated.stages.floors import SectionFloors
from retrieval.presets.consolidated.stages.fuse import FuseWeighted
from retrieval.presets.consolidated.stages.protect import Protect
from retrieval.presets.consolidated.stages.quota import CutWithQuota
from retrieval.presets.preset import PresetConfig
from retrieval.presets.stage_catalog import ABOUT
from retrieval.records.lifeline.remedies import at_least, at_most, policy_at_least, policy_at_most

#: The stages whose windows a section's depth sets.
_BY_DEPTH: Final = frozenset({FuseWeighted.name, CutWithQuota.name})
_HUNDREDTHS: Final = 100
_THOUSANDTHS: Final = 1000


def deeper(state: SearchState, config: PresetConfig, chunks: int, *, is_cut: bool) -> str:
    """Return the complexity, and the cap if that limits it, at which so many chunks are read.

    With `is_cut`, at which so many go to the reranker. Empty for a search without a section.
    """
    section = state.part(SectionState)
    if section is None or not isinstance(config, ConsolidatedConfig):
        return ""
    policy = section.ask.section
    cap = max(policy.cap, chunks)
    highest = {facts.name: int(facts.high) for facts in Section.declared()}
    limit = min(highest["complexity"], cap)

    def depth(complexity: int) -> int:
        documents, health = section.documents, section.health
        top_k = adaptive_top_k(complexity, cap=cap, documents=documents, config=config.depth, health=health)
        if not is_cut:
            return over_fetched(top_k, cap=cap, config=config.depth)
        return relaxed_top_k(top_k, section.grade, cap=cap, config=config.grades)

    enough = (it for it in range(policy.complexity, limit + 1) if depth(it) >= chunks)
    complexity = next(enough, None)
    if cap > highest["cap"] or complexity is None:
        return "No allowed complexity and cap would have included it."
    wanted = {"complexity": (policy.complexity, complexity), "cap": (policy.cap, cap)}
    prefix = "question." if section.ask.is_plain else ""
    raised = [f"a {prefix}{name} of at least {value:,}" for name, (own, value) in wanted.items() if value > own]
    place = "" if section.ask.is_plain else f" in {policy.name}"
    return f"{' and '.join(raised).capitalize()}{place} would have included it."


@dataclass(frozen=True, slots=True)
class Loss:
    """A chunk that a stage dropped, with the state before that stage."""

    drop: Drop
    span: Span
    before: Ranking
    state: SearchState
    config: PresetConfig

    @property
    def hit(self) -> Hit | None:
        """The chunk as it came to the stage."""
        return self.other(self.drop.chunk_id)

    @property
    def window(self) -> str:
        """The tunable that limits how many hits the stage leaves; empty for none."""
        about = ABOUT.get(self.span.stage)
        return about.window if about else ""

    def other(self, chunk_id: ChunkId | None) -> Hit | None:
        """Return another hit as it came to the stage, or None."""
        return next((hit for hit in self.before if hit.chunk_id == chunk_id), None)


def explained(loss: Loss) -> tuple[str, str]:
    """Return the fact of a loss and what would retain the chunk, which is empty where no number would.

    A reason without a function here is described by its own detail.
    """
    explain = _EXPLAINED.get(loss.drop.reason)
    if explain is None or not loss.drop.numbers:
        return loss.drop.detail or loss.drop.reason.replace("_", " "), ""
    return explain(loss)


def _outside_window(loss: Loss) -> tuple[str, str]:
    name = loss.window
    rank = int(loss.drop.numbers["rank"])
    section = loss.state.part(SectionState)
    if section is not None and loss.span.stage in _BY_DEPTH:
        is_cut = loss.span.stage == CutWithQuota.name
        wanted = _depth_of_cut(loss, section.ask) if is_cut else rank
        return loss.drop.detail, deeper(loss.state, loss.config, wanted, is_cut=is_cut)
    return loss.drop.detail, at_least(loss.config, name, rank, "would have included it") if name else ""


def _depth_of_cut(loss: Loss, ask: SectionAsk) -> int:
    window, found = int(loss.drop.numbers["window"]), tuple(hit for hit in loss.before if not is_recovered(hit))
    if not isinstance(loss.config, ConsolidatedConfig):
        return window + 1
    for depth in range(window + 1, len(found)):
        kept, _ = cut_with_quota(found, depth, type_of=ask.type_of, config=loss.config.quota)
        if any(hit.chunk_id == loss.drop.chunk_id for hit in kept):
            return depth
    return len(found)


def _rerank_cut(loss: Loss) -> tuple[str, str]:
    rank = int(loss.drop.numbers["rank"])
    section = loss.state.part(SectionState)
    if section is not None and loss.span.stage == Protect.name:
        limit = rank
        if loss.hit is not None and isinstance(loss.config, ConsolidatedConfig):
            # As many as it would have needed to have one, as they are shared.
            limit = min_slots(loss.hit, loss.before, type_of=section.ask.type_of, config=loss.config.fairness)
        if section.ask.is_plain:
            return loss.drop.detail, f"Requesting {limit:,} hits would retain it."
        return loss.drop.detail, policy_at_least(loss.state, "keep", limit, "would retain it")
    return loss.drop.detail, at_least(loss.config, loss.window, rank, "would have included it") if loss.window else ""


def _quality(loss: Loss) -> tuple[str, str]:
    minimum = _rounded_down(loss.drop.numbers["quality"], _HUNDREDTHS)
    if loss.state.part(SectionState) is not None:
        remedy = policy_at_most(loss.state, loss.config, "quality_floor", minimum, "would retain it")
        return loss.drop.detail, remedy
    return loss.drop.detail, at_most(loss.config, "quality.minimum", minimum, "would retain it")


def _below_floor(loss: Loss) -> tuple[str, str]:
    if "nearness" in loss.drop.numbers:
        # Below a cliff there is no remedy: its place depends on the pool.
        section, floor = loss.state.part(SectionState), loss.drop.numbers["floor"]
        if section is None or loss.span.stage != SectionFloors.name or floor <= 0:
            return loss.drop.detail, ""
        # The section's own floor, before the pool's grade relaxed it.
        own = section.ask.section.score_floor * loss.drop.numbers["nearness"] / floor
        minimum = max(0.0, _rounded_down(own, _THOUSANDTHS))
        return loss.drop.detail, policy_at_most(loss.state, loss.config, "score_floor", minimum, "would retain it")
    if loss.hit is None:
        return loss.drop.detail, ""
    minimum = _rounded_down(loss.drop.numbers["score"], _THOUSANDTHS)
    return loss.drop.detail, at_most(loss.config, f"floor.{loss.hit.score_type}", minimum, "would retain it")


def _duplicate(loss: Loss) -> tuple[str, str]:
    kept, likeness = loss.other(loss.drop.instead), loss.drop.numbers["likeness"]
    name = "another chunk"
    if kept and kept.facts and loss.state.scope.allows(kept.facts.connection_id):
        name = f"\N{LEFT DOUBLE QUOTATION MARK}{kept.facts.title}\N{RIGHT DOUBLE QUOTATION MARK}"
    why = _preferred(kept, loss.hit, loss.state.scope)
    if kept and loss.hit and kept.chunk.content_hash == loss.hit.chunk.content_hash:
        return f"has the same text as {name}{why}", "Only one copy of the same text is returned."
    minimum = _hundredth_above(likeness)
    remedy = at_least(loss.config, f"{loss.span.stage}.min_similarity", minimum, "would retain both")
    return f"lost to its near-duplicate {name} at {likeness:.2f}{why}", remedy


def _budget(loss: Loss) -> tuple[str, str]:
    if "limit" in loss.drop.numbers:
        rank = loss.drop.numbers["rank"]
        return loss.drop.detail, at_least(loss.config, loss.window, rank, "would have had a place for it")
    if "needed" in loss.drop.numbers:
        needed = int(loss.drop.numbers["needed"])
        return loss.drop.detail, at_least(loss.config, loss.config.budget[0], needed, "would have had room for it")
    numbers = {name: int(value) for name, value in loss.drop.numbers.items()}
    needed = room_needed(_tokens_before(loss), numbers["tokens"], budget=numbers["budget"])
    fact = f"would need {numbers['tokens']:,} tokens, {numbers['left']:,} of {numbers['budget']:,} were left"
    return fact, at_least(loss.config, loss.config.budget[0], needed, "would have had room for it")


def room_needed(before: Sequence[int], tokens: int, *, budget: int) -> int:
    """Return the minimum budget from this one on that has room for a text of so many tokens, behind others in order.

    Each takes its tokens while they fit; with more room one that did not fit before may take some of it.
    """
    while True:
        left = budget
        for size in before:
            left -= size if size <= left else 0
        if tokens <= left:
            return budget
        budget += tokens - left


def _tokens_before(loss: Loss) -> list[int]:
    sizes = {passage.hit.chunk_id: passage.token_count for passage in loss.state.passages}
    for drop in loss.span.drops:
        if drop.reason is DropReason.BUDGET and "tokens" in drop.numbers:
            sizes[drop.chunk_id] = int(drop.numbers["tokens"])
    ids = [hit.chunk_id for hit in loss.before]
    return [sizes[chunk_id] for chunk_id in ids[: ids.index(loss.drop.chunk_id)] if chunk_id in sizes]


def _preferred(kept: Hit | None, lost: Hit | None, scope: AccessScope) -> str:
    """Return why one of two hits was retained: the more trusted, then the fresher one."""
    if kept is None or lost is None:
        return ""
    if "freshness" not in kept.signals:
        return ", which ranks higher"
    trust = [scope.inclusion(hit.chunk.connection_id).connection.trust for hit in (kept, lost)]
    if trust[0] != trust[1]:
        return ", which is more trusted"
    fresh = [hit.signals.get("freshness", 0.0) for hit in (kept, lost)]
    return ", which is fresher" if fresh[0] > fresh[1] else ", which ranks higher"


def _rounded_down(value: float, parts: int) -> float:
    return math.floor(value * parts) / parts


def _hundredth_above(value: float) -> float:
    """Return the smallest hundredth above a value; 0.58 x 100 is less than 58 in floating point."""
    minimum = math.floor(value * _HUNDREDTHS) / _HUNDREDTHS
    while minimum <= value:
        minimum = round(minimum + 1 / _HUNDREDTHS, 2)
    return minimum


_EXPLAINED: Final[Mapping[DropReason, Callable[[Loss], tuple[str, str]]]] = {
    DropReason.OUTSIDE_WINDOW: _outside_window,
    DropReason.SOURCE_QUOTA: _outside_window,
    DropReason.RERANK_CUT: _rerank_cut,
    DropReason.QUALITY: _quality,
    DropReason.BELOW_FLOOR: _below_floor,
    DropReason.DUPLICATE: _duplicate,
    DropReason.BUDGET: _budget,
    DropReason.TOP_K: lambda loss: (
        loss.drop.detail,
        f"Requesting {int(loss.drop.numbers['rank']):,} hits would have included it.",
    ),
}
