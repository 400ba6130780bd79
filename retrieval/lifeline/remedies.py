"""Sentences about the number that would have changed what happened."""

from retrieval.config import PresetConfig
from retrieval.tunables import TunableFacts


def at_least(config: PresetConfig, name: str, value: float, effect: str) -> str:
    """Return "A fusion.pool of at least 214 would have let it in.", or that the number cannot be that high."""
    facts = _declared(config, name)
    if value > facts.high:
        return f"{_article(name)} {name} cannot be that high: {facts.high:,} is the most."
    return f"{_article(name)} {name} of at least {_figure(value)} {effect}."


def at_most(config: PresetConfig, name: str, value: float, effect: str) -> str:
    """Return "A quality.least of at most 0.12 would have kept it.", or that the number cannot be that low."""
    facts = _declared(config, name)
    if value < facts.low:
        return f"{_article(name)} {name} cannot be that low: {facts.low:,} is the least."
    return f"{_article(name)} {name} of at most {_figure(value)} {effect}."


def _declared(config: PresetConfig, name: str) -> TunableFacts:
    return next(facts for facts in config.declared_below() if facts.name == name)


def _article(name: str) -> str:
    return "An" if name[0] in "aeiou" else "A"


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}".rstrip("0").rstrip(".")
