"""What a search took: its time by groups of stages, the language model's calls, and the tokens that it packed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from explorer import wording
from explorer.components.bars import BarPart, stacked
from explorer.wording.durations import milliseconds
from retrieval.engine.about import StageGroup
from retrieval.engine.state import Span
from retrieval.presets.contextpack.stages.judge_relevance import RELEVANCE_SPENT
from retrieval.search.outcome import SearchOutcome

#: Groups of stages in the order in which a search comes to them, and what they are called.
GROUPS: Final[Mapping[str, str]] = {
    "question": "Query processing",
    "find": "Retrieval",
    "merge": "Fusion",
    "rank": "Ranking",
    "pack": "Packing",
}


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What a language model did for a search."""

    #: Its slug.
    model: str
    calls: int
    #: Prompts whose judgments were kept from before.
    known: int
    prompt_tokens: int
    completion_tokens: int
    is_estimated: bool


@dataclass(frozen=True, slots=True)
class GroupTime:
    """What one group of stages took."""

    key: str
    label: str
    #: Milliseconds of each search, in the searches' order; None where there was none.
    cells: tuple[str | None, ...]


def seconds_by_group(spans: Sequence[Span]) -> dict[str, float]:
    """Return the seconds of each group of stages, all groups named; a stage that is in none of them ranks.

    What ran inside another stage counts as that one's time, so that the groups sum to the whole search.
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
    """Return what each group took in each search."""
    seconds = [seconds_by_group(outcome.trace) if outcome else None for outcome in outcomes]
    return tuple(
        GroupTime(group, label, tuple(milliseconds(it[group]) if it else None for it in seconds))
        for group, label in GROUPS.items()
    )


def model_uses(outcome: SearchOutcome) -> tuple[ModelUse, ...]:
    """Return what language models did for a search; nothing where none judged."""
    return tuple(_uses(outcome))


def _uses(outcome: SearchOutcome) -> Iterator[ModelUse]:
    for event in (event for span in outcome.trace for event in span.events if event.get("event") == RELEVANCE_SPENT):
        told: Mapping[str, Any] = event
        yield ModelUse(
            model=told["model"],
            calls=told["calls"],
            known=told["known"],
            prompt_tokens=told["prompt_tokens"],
            completion_tokens=told["completion_tokens"],
            is_estimated=told["is_estimated"],
        )


def model_words(uses: Sequence[ModelUse]) -> str:
    """Return what language models did: "m: 2 calls, 1,204 tokens read, 96 written"; "none" where none judged."""
    return "; ".join(_use_words(use) for use in uses) or "none"


def _use_words(use: ModelUse) -> str:
    if not use.calls:
        return f"{use.model}: no calls, cached grades used"
    about = "about " if use.is_estimated else ""
    tokens = f"{about}{use.prompt_tokens:,} prompt tokens, {use.completion_tokens:,} completion tokens"
    return f"{use.model}: {wording.counted(use.calls, 'call')}, {tokens}"


def cost_words(cost: Decimal) -> str:
    """Return an amount of the installation's currency: "0.0042"; "0" for nothing."""
    return f"{cost:,.4f}" if cost else "0"
