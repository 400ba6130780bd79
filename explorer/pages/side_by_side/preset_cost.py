"""The cost of a search: its time by groups of stages, and its language model usage."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, Final

from explorer import wording
from explorer.components.bars import BarPart, stacked
from explorer.wording import WORDS, milliseconds
from retrieval.engine.about import StageGroup
from retrieval.engine.state import Span
from retrieval.presets.contextpack.stages.judge_relevance import RELEVANCE_SPENT
from retrieval.search.outcome import SearchOutcome

#: Groups of stages in search order, with labels.
GROUPS: Final = WORDS["stage_groups"]


@dataclass(frozen=True, slots=True)
class ModelUse:
    """The usage of a language model by a search."""

    model: str
    calls: int
    known: int  #: Prompts whose grades were cached.
    prompt_tokens: int
    completion_tokens: int
    is_estimated: bool


#: A group of stages, its label, and its milliseconds in each search; None for a failed one.
GroupTime = tuple[str, str, tuple[str | None, ...]]


def seconds_by_group(spans: Sequence[Span]) -> dict[str, float]:
    """Return the seconds of each group of stages; an unknown stage counts as ranking.

    A stage inside another counts as part of it, so that the groups sum to the search time.
    """
    seconds = dict.fromkeys(GROUPS, 0.0)
    for span in spans:
        if not span.parent:
            about = wording.about(span.stage)
            seconds[about.group if about else StageGroup.RANK] += span.seconds
    return seconds


def time_bar(outcome: SearchOutcome, *, full_seconds: float) -> tuple[BarPart, ...]:
    """Return a search's time by group as a bar, on a scale of `full_seconds`."""
    parts = {f"group-{group}": seconds for group, seconds in seconds_by_group(outcome.trace).items()}
    return stacked(parts, full=full_seconds)


def group_times(outcomes: Sequence[SearchOutcome | None]) -> tuple[GroupTime, ...]:
    """Return the time of each group in each search."""
    seconds = [seconds_by_group(outcome.trace) if outcome else None for outcome in outcomes]
    return tuple(
        (group, label, tuple(milliseconds(it[group]) if it else None for it in seconds))
        for group, label in GROUPS.items()
    )


def model_uses(outcome: SearchOutcome) -> tuple[ModelUse, ...]:
    """Return the language model usage of a search; empty if none graded."""
    events: Iterator[Mapping[str, Any]] = (event for span in outcome.trace for event in span.events)
    names = [field.name for field in fields(ModelUse)]
    return tuple(
        ModelUse(**{name: event[name] for name in names}) for event in events if event.get("event") == RELEVANCE_SPENT
    )


def model_words(uses: Sequence[ModelUse]) -> str:
    """Return the usage: "m: 2 calls, 1,204 prompt tokens, 96 completion tokens"; "none" for none."""
    return "; ".join(_use_words(use) for use in uses) or "none"


def _use_words(use: ModelUse) -> str:
    if not use.calls:
        return f"{use.model}: no calls, cached grades used"
    about = "about " if use.is_estimated else ""
    tokens = f"{about}{use.prompt_tokens:,} prompt tokens, {use.completion_tokens:,} completion tokens"
    return f"{use.model}: {wording.counted(use.calls, 'call')}, {tokens}"


def cost_words(cost: Decimal) -> str:
    """Return a cost in the installation's currency: "0.0042"; "0" for nothing."""
    return f"{cost:,.4f}" if cost else "0"
