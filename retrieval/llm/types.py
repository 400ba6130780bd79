"""What goes into an answer and what comes out, whoever writes it."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from retrieval.engine.token_counter import TokenCounter
from retrieval.engine.types import Passage, QueryTerms, Vector

#: A message to a language model: its role and its content.
Message = Mapping[str, str]
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
    #: Whether its sentences were chosen by their words alone, because so many others waited.
    hurried: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer from earlier in the conversation."""

    question: str
    answer: str
    #: Connections whose passages the answer was made from; None where nobody knows. It goes to no language model
    #: that may not read them.
    connections: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens that an answer took: as the service counted them, or counted here where it does not say."""

    prompt: int
    completion: int
    is_estimated: bool = False


class Cut(StrEnum):
    """Why an answer is not said to its end, as OpenAI names it."""

    LENGTH = "length"
    CONTENT_FILTER = "content_filter"


@dataclass(frozen=True, slots=True)
class Piece:
    """What a provider says next: a piece of text, something to know of it, or at its end what it used."""

    text: str = ""
    usage: TokenUsage | None = None
    #: How it ended, where it was not said to its end.
    cut: "Cut | None" = None
    notice: "Notice | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a provider answers from."""

    question: str
    #: The numbered context.
    passages: tuple[Passage, ...]
    terms: QueryTerms
    #: The question's unit vector as it was searched with, by the model that compares sentences; None where it has none.
    vector: Vector | None = None
    #: What was said before, oldest first.
    history: tuple[Turn, ...] = ()
    #: Why nothing was searched; empty where something was.
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """What a language model can hold, in its own tokens."""

    #: Everything it reads and writes in one go.
    context_tokens: int
    #: The part of it that is kept for the answer.
    answer_tokens: int
    #: Counts them; None where its tokenizer is not here, and the embedding model's stands in.
    counter: TokenCounter | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something about how an answer came to be that its reader should know."""

    code: str
    text: str


class Provider(Protocol):
    """Writes answers: the extractive one quotes, others ask a language model."""

    @property
    def name(self) -> str:
        """The provider's name in answers and settings."""
        ...

    @property
    def is_extractive(self) -> bool:
        """Whether it only quotes."""
        ...

    @property
    def window(self) -> Window | None:
        """What it can hold; a task is cut to it before it is streamed. None where there is no limit."""
        ...

    def stream(self, task: Task) -> AsyncGenerator[Piece, None]:
        """Yield the answer piece by piece; a passage is cited as [N] with its number. What it used comes last.

        Closing it stops the work, also that of a service elsewhere. Raises CoreCubeError.
        """
        ...

    def refuses(self, text: str) -> bool:
        """Return whether an answer of this provider says that the sources do not answer the question."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """Who may write an answer."""

    #: In the order in which they are tried; the last one always can.
    providers: tuple[Provider, ...]
    notices: tuple[Notice, ...] = ()
