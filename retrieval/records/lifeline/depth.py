"""What a section would have had to ask for, for a chunk to have been among what is read or reranked."""

from retrieval.engine.state import SearchState
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.depth import adaptive_top_k, over_fetched, relaxed_top_k
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.presets.consolidated.evidence.sections import Section
from retrieval.presets.preset import PresetConfig


def deeper(state: SearchState, config: PresetConfig, chunks: int, *, is_cut: bool) -> str:
    """Return the complexity, and the cap where that stands against it, at which so many chunks are read.

    With `is_cut`, at which so many go to the reranker. Empty for a search without a section.
    """
    section = state.part(SectionState)
    if section is None or not isinstance(config, ConsolidatedConfig):
        return ""
    policy = section.ask.section
    cap = max(policy.cap, chunks)
    highest = {facts.name: int(facts.high) for facts in Section.declared()}
    limit = min(highest["complexity"], cap)
    enough = (it for it in range(policy.complexity, limit + 1) if _depth(it, cap, section, config, is_cut) >= chunks)
    complexity = next(enough, None)
    if cap > highest["cap"] or complexity is None:
        return "No complexity and cap that a section may have would have included it."
    wanted = {"complexity": (policy.complexity, complexity), "cap": (policy.cap, cap)}
    prefix = "question." if section.ask.is_plain else ""
    raised = [f"a {prefix}{name} of at least {value:,}" for name, (own, value) in wanted.items() if value > own]
    place = "" if section.ask.is_plain else f" in {policy.name}"
    return f"{' and '.join(raised).capitalize()}{place} would have included it."


def _depth(complexity: int, cap: int, section: SectionState, config: ConsolidatedConfig, is_cut: bool) -> int:  # noqa: FBT001 -- as its caller
    top_k = adaptive_top_k(complexity, cap=cap, documents=section.documents, config=config.depth, health=section.health)
    if not is_cut:
        return over_fetched(top_k, cap=cap, config=config.depth)
    return relaxed_top_k(top_k, section.grade, cap=cap, config=config.grades)
