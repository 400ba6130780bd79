"""Sharing candidates out among prompts, each of which a model can read and answer in full. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from retrieval.llm.types import Window

#: What one result takes of an answer, in tokens: its fields, and 25 words of evidence.
_RESULT_TOKENS: Final = 80
#: What stands around the results.
_AROUND_TOKENS: Final = 16
#: What is left free of a window, because a model's own tokenizer may count up to so much more than ours.
_SLACK: Final = 0.15


def batches(sizes: Sequence[int], window: Window, *, around: int) -> tuple[tuple[int, ...], ...]:
    """Return runs of candidates, by their places and in order, as few as fit; one too large for any prompt is in none.

    `sizes` are the candidates' tokens, `around` those of the rest of a prompt.
    """
    room = int((window.context_tokens - window.answer_tokens) * (1 - _SLACK)) - around
    limit = max(1, (window.answer_tokens - _AROUND_TOKENS) // _RESULT_TOKENS)
    places = [place for place, size in enumerate(sizes) if size <= room]
    fitting = [sizes[place] for place in places]
    minimum = list(_filled(fitting, room, limit))
    # Evened out by count where only the answer's length parted them: they are asked side by side.
    even = -(-len(fitting) // max(1, len(minimum)))
    evened = list(_filled(fitting, room, min(limit, even)))
    runs = evened if len(evened) == len(minimum) else minimum
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
