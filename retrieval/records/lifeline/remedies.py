"""Sentences about the number that would have changed what happened."""

from retrieval.engine.state import SearchState
from retrieval.engine.tunables import TunableFacts
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.presets.consolidated.evidence.sections import Section
from retrieval.presets.preset import PresetConfig


def at_least(config: PresetConfig, name: str, value: float, effect: str) -> str:
    """Return "A fusion.pool of at least 214 would have included it.", or that the number cannot be that high."""
    facts = _declared(config, name)
    if value > facts.high:
        return f"{_article(name)} {name} cannot be that high: {facts.high:,} is the maximum."
    return f"{_article(name)} {name} of at least {_figure(value)} {effect}."


def at_most(config: PresetConfig, name: str, value: float, effect: str) -> str:
    """Return "A quality.minimum of at most 0.12 would retain it.", or that the number cannot be that low."""
    facts = _declared(config, name)
    if value < facts.low:
        return f"{_article(name)} {name} cannot be that low: {facts.low:,} is the minimum."
    return f"{_article(name)} {name} of at most {_figure(value)} {effect}."


def policy_at_most(state: SearchState, config: PresetConfig, field: str, value: float, effect: str) -> str:
    """Return what a lower floor of the section would have done: "A score floor of at most 0.12 in overview would ...".

    Of a plain question the floor is the preset's own number. Empty for a search without a section.
    """
    section = state.part(SectionState)
    if section is None:
        return ""
    if section.ask.is_plain:
        return at_most(config, f"question.{field}", value, effect)
    return f"{_policy(field)} of at most {_figure(value)} in {section.ask.section.name} {effect}."


def policy_at_least(state: SearchState, field: str, value: int, effect: str) -> str:
    """Return the same of a section's number of chunks that would have had to be higher."""
    section = state.part(SectionState)
    if section is None:
        return ""
    facts = next(facts for facts in Section.declared() if facts.name == field)
    if value > facts.high:
        return f"{_policy(field)} cannot be that high: {facts.high:,} is the maximum."
    return f"{_policy(field)} of at least {_figure(value)} in {section.ask.section.name} {effect}."


def _policy(field: str) -> str:
    return f"{_article(field)} {field.replace('_', ' ')}"


def _declared(config: PresetConfig, name: str) -> TunableFacts:
    return next(facts for facts in config.declared_below() if facts.name == name)


def _article(name: str) -> str:
    return "An" if name[0] in "aeiou" else "A"


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}".rstrip("0").rstrip(".")
