"""Counting tokens with a model's tokenizer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: Returns the number of tokens of each text.
CountTokens = Callable[[Sequence[str]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts tokens with the tokenizer of a model."""

    name: str
    count: CountTokens
