"""Sections in the console: the picker, how an address names a section, and the section settings of a search."""

from collections.abc import Iterator
from typing import Any

from explorer import wording
from explorer.wording import WORDS
from retrieval.errors import UnknownSectionError
from retrieval.presets.catalog import PRESETS
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.depth import relaxed_top_k
from retrieval.presets.consolidated.evidence.section_state import SectionAsk, SectionState
from retrieval.presets.consolidated.stages.rerank import RerankSection
from retrieval.search.outcome import SearchOutcome
from retrieval.search.section_sets import section_named, section_set_named, section_sets


def has_sections(preset: str) -> bool:
    """Return whether a preset gathers evidence for sections."""
    return preset in PRESETS and isinstance(PRESETS[preset].defaults, ConsolidatedConfig)


def picker(chosen: str) -> dict[str, Any]:
    """Return the picker with a section chosen, or none."""
    groups = [(it.title, tuple((f"{it.name}/{one.name}", one.title) for one in it.sections)) for it in section_sets()]
    return {"chosen": chosen, "groups": groups}


def section_asked(value: str, subject: str) -> SectionAsk:
    """Return the section that an address names, about a subject. Raises UnknownSectionError."""
    set_name, _, name = value.partition("/")
    found = section_set_named(set_name)
    return SectionAsk(section_set=found, section=section_named(found, name), subject=subject)


def is_section(value: str) -> bool:
    """Return whether the section that an address names exists."""
    try:
        section_asked(value, "")
    except UnknownSectionError:
        return False
    return True


def section_label(value: str) -> str:
    """Return a section's label: "Report: Overview"; its name if it no longer exists."""
    try:
        ask = section_asked(value, "")
    except UnknownSectionError:
        return value
    return f"{ask.section_set.title}: {ask.section.title}"


def section_strip(outcome: SearchOutcome) -> dict[str, Any] | None:
    """Return the section settings of a search; None in presets without sections. A plain question has no label."""
    section = outcome.state.part(SectionState)
    if section is None or not section.top_k:
        return None
    ask = section.ask
    label = "" if ask.is_plain else f"{ask.section_set.title}: {ask.section.title}"
    return {"label": label, "query": outcome.state.query.text, "facts": list(_facts(section, outcome))}


def _facts(section: SectionState, outcome: SearchOutcome) -> Iterator[tuple[str, str, str]]:
    """Yield label, value and help of each setting, and of what it came to."""
    policy, config = section.ask.section, outcome.config
    searched = f"{wording.counted(section.chunks, 'chunk')} in {wording.counted(section.documents, 'document')}"
    yield "Scope", f"{searched}{WORDS['section_health'][section.health]}", "Chunks in scope, after filters."
    reranked = next((span for span in outcome.trace if span.stage == RerankSection.name), None)
    if reranked and isinstance(config, ConsolidatedConfig):
        limit = relaxed_top_k(section.top_k, section.grade, cap=policy.cap, config=config.grades)
        yield (
            "Reranked",
            f"{reranked.hits_in:,} (limit {limit:,})",
            "Chunks sent to the reranker, and at most how many.",
        )
    yield (
        "Retained",
        f"{len(outcome.hits):,} (limit {policy.keep:,})",
        "Chunks retained after reranking, and at most how many, without those protected for their source type.",
    )
    if section.grade is not None:
        grade = (
            "From A to F: how similar the best retrieved chunks are to the query. From C on, floors are lower and more "
            "chunks are reranked. It does not grade the answer."
        )
        yield "Pool grade", str(section.grade), grade
    floors = f"similarity {section.score_floor:.2f}, quality {policy.quality_floor:.2f}"
    yield "Floors", floors, "Chunks below a floor are dropped. A weak pool has lower floors."
    if policy.required:
        types = ", ".join(policy.required)
        yield "Required types", types, "Source types that are searched separately if the pool lacks them."
