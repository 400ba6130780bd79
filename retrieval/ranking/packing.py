"""Packing hits into numbered passages under a token budget."""

from collections.abc import Callable, Sequence

from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import Hit, Passage, Ranking


def passage_header(number: int, *, title: str, source: str, compartment: str) -> str:
    """Return the line above a passage: "### [1] Deployment Runbook — Confluence — Engineering"."""
    return f"### [{number}] {_one_line(title)} — {_one_line(source)} — {_one_line(compartment)}"


def _one_line(text: str) -> str:
    """Return the text without line breaks, which would let a title pose as a header or a passage."""
    return " ".join(text.split())


def pack(
    hits: Ranking, *, budget_tokens: int, header: Callable[[int, Hit], str], count_tokens: Callable[[str], int]
) -> tuple[tuple[Passage, ...], tuple[Drop, ...]]:
    """Take hits in order while header and text fit the budget; a hit that does not fit is dropped, the next tried.

    Returns the passages, numbered from 1 without gaps, and the drops. The passages' tokens never exceed the budget.
    """
    passages: list[Passage] = []
    drops: list[Drop] = []
    left = budget_tokens
    for hit in hits:
        line = header(len(passages) + 1, hit)
        tokens = count_tokens(line) + hit.chunk.token_count
        if tokens <= left:
            passages.append(Passage(len(passages) + 1, hit, line, tokens))
            left -= tokens
        else:
            detail = f"{tokens:,} tokens, {left:,} of {budget_tokens:,} left"
            numbers = {"tokens": tokens, "left": left, "budget": budget_tokens}
            drops.append(Drop(hit.chunk_id, DropReason.BUDGET, detail, numbers))
    return tuple(passages), tuple(drops)


def outside_in(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Return ranked passages with the best at both ends: the first first, the second last, the third second.

    Liu et al., "Lost in the Middle", TACL 2024: models overlook the middle of a long context.
    """
    return (*passages[::2], *passages[1::2][::-1])


def by_number(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Return passages in the order of their numbers, whatever order they are packed in."""
    return tuple(sorted(passages, key=lambda passage: passage.number))
