"""Pack recalled hits: the memory first, with at most half of the budget until the others are packed."""

from collections.abc import Callable
from dataclasses import replace

from retrieval.engine.types import Hit, Passage, Ranking
from retrieval.ranking.packing import pack


def pack_in_turns(
    memory: Ranking,
    rest: Ranking,
    *,
    budget_tokens: int,
    limit: int,
    header: Callable[[int, Hit], str],
    count_tokens: Callable[[str], int],
) -> tuple[Passage, ...]:
    """Return up to `limit` passages within the token budget, numbered from 1.

    First the memory with half of both limits, then the rest, then the remaining memory. Equal texts are packed once.
    """
    passages: tuple[Passage, ...] = ()
    for hits, share, count in (
        (memory, budget_tokens // 2, (limit + 1) // 2),
        (rest, budget_tokens, limit),
        (memory, budget_tokens, limit),
    ):
        taken = {passage.hit.chunk.content_hash for passage in passages}
        done = len(passages)
        more, _ = pack(
            tuple(hit for hit in hits if hit.chunk.content_hash not in taken)[: count - done],
            budget_tokens=share - sum(passage.token_count for passage in passages),
            header=lambda number, hit, done=done: header(number + done, hit),  # type: ignore[misc]
            count_tokens=count_tokens,
        )
        passages += tuple(replace(passage, number=passage.number + done) for passage in more)
    return passages
