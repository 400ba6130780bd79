"""What goes into an answer and what comes out, whoever writes it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from retrieval.types import Passage, QueryTerms

#: Returns the unit vectors of texts, shape (len(texts), dim), in input order.
EncodeTexts = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Citation:
    """A [N] in an answer: the passage's number and where the marker stands, in code points, end exclusive."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    text: str
    citations: tuple[Citation, ...]
    #: Whether it only quotes.
    extractive: bool
    #: Whether it says that the sources do not answer the question.
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer from earlier in the conversation."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens that an answer took: as the service counted them, or counted here where it does not say."""

    prompt: int
    completion: int
    is_estimated: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """What a provider says next: a piece of text, or at its end what it used."""

    text: str = ""
    usage: TokenUsage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a provider answers from."""

    question: str
    #: The numbered context.
    passages: tuple[Passage, ...]
    terms: QueryTerms
    #: What was said before, oldest first.
    history: tuple[Turn, ...] = ()


class Provider(Protocol):
    """Writes answers: the extractive one quotes, others ask a language model."""

    @property
    def name(self) -> str:
        """The provider's name in answers and settings."""
        ...

    def complete(self, task: Task) -> Iterator[str]:
        """Yield the answer piece by piece; a passage is cited as [N] with its number."""
        ...

    def refuses(self, text: str) -> bool:
        """Return whether an answer of this provider says that the sources do not answer the question."""
        ...
