"""Sharing candidates out among prompts, each of which a model can read and answer in full. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from retrieval.generate.types import Window

#: What one result takes of an answer, in tokens: its fields, and 25 words of evidence.
_RESULT_TOKENS: Final = 80
#: What stands around the results.
_AROUND_TOKENS: Final = 16
#: What is left free of a window, because a model's own tokenizer may count up to so much more than ours.
_SLACK: Final = 0.15


def batches(sizes: Sequence[int], window: Window, *, around: int) -> tuple[range, ...]:
    """Return runs of candidates, in order, as few as fit; empty where one candidate alone is too large.

    `sizes` are the candidates' tokens, `around` those of the rest of a prompt.
    """
    room = int((window.context_tokens - window.answer_tokens) * (1 - _SLACK)) - around
    most = max(1, (window.answer_tokens - _AROUND_TOKENS) // _RESULT_TOKENS)
    if max(sizes, default=0) > room:
        return ()
    fewest = list(_filled(sizes, room, most))
    # Evened out by count where only the answer's length parted them: they are asked side by side.
    even = -(-len(sizes) // max(1, len(fewest)))
    evened = list(_filled(sizes, room, min(most, even)))
    return tuple(evened if len(evened) == len(fewest) else fewest)


def _filled(sizes: Sequence[int], room: int, most: int) -> Iterator[range]:
    start = used = 0
    for place, size in enumerate(sizes):
        if place > start and (used + size > room or place - start == most):
            yield range(start, place)
            start, used = place, 0
        used += size
    if sizes:
        yield range(start, len(sizes))
