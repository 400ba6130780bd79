"""Splitting candidates into prompts that a model can read and answer completely. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from retrieval.llm.types import Window

#: Tokens of one result in an answer: its fields, and 25 words of evidence.
_RESULT_TOKENS: Final = 80
#: Tokens of the JSON around the results.
_AROUND_TOKENS: Final = 16
#: Unused share of a context window, since the model's tokenizer may count more tokens than ours.
_SLACK: Final = 0.15


def batches(sizes: Sequence[int], window: Window, *, around: int) -> tuple[tuple[int, ...], ...]:
    """Return the fewest runs of candidates that fit, as indexes in order; candidates that fit no prompt are left out.

    `sizes` are the candidates' tokens, `around` those of the rest of a prompt.
    """
    room = int((window.context_tokens - window.answer_tokens) * (1 - _SLACK)) - around
    limit = max(1, (window.answer_tokens - _AROUND_TOKENS) // _RESULT_TOKENS)
    places = [place for place, size in enumerate(sizes) if size <= room]
    fitting = [sizes[place] for place in places]
    minimum = list(_filled(fitting, room, limit))
    # Balanced by count where only the answer length split them, since they run in parallel.
    even = -(-len(fitting) // max(1, len(minimum)))
    balanced = list(_filled(fitting, room, min(limit, even)))
    runs = balanced if len(balanced) == len(minimum) else minimum
    return tuple(tuple(places[it] for it in run) for run in runs)


def _filled(sizes: Sequence[int], room: int, limit: int) -> Iterator[range]:
    start = used = 0
    for place, size in enumerate(sizes):
        if place > start and (used + size > room or place - start == limit):
            yield range(start, place)
            start, used = place, 0
        used += size
    if sizes:
        yield range(start, len(sizes))
