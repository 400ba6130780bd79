"""Whose tokens a budget is counted in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: Returns the number of tokens of each text.
CountTokens = Callable[[Sequence[str]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts tokens as one model cuts them."""

    #: The model's name.
    name: str
    count: CountTokens
