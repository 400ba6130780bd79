"""Types of answers and their providers."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from retrieval.engine.types import Answerability, Passage, QueryTerms, RunCosines, TokenCounter, Verdict

Message = Mapping[str, str]
#: Returns the unit vectors of texts, shape (len(texts), dim), in input order.
EncodeTexts = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Citation:
    """A marker [N] in an answer: the passage's number, and the marker's position in code points, end exclusive."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer."""

    text: str
    citations: tuple[Citation, ...]
    extractive: bool
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer from earlier in the conversation."""

    question: str
    answer: str
    #: Connections of the answer's passages; None if unknown. Language models that may not read these connections do not
    #: get the turn.
    connections: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The tokens of an answer: as the service reports them, or else estimated here."""

    prompt: int
    completion: int
    is_estimated: bool = False


class Cut(StrEnum):
    """Why an answer is incomplete, in OpenAI's terms."""

    LENGTH = "length"
    CONTENT_FILTER = "content_filter"


@dataclass(frozen=True, slots=True)
class Piece:
    """The next item of an answer: text, a notice, or at its end the usage."""

    text: str = ""
    usage: TokenUsage | None = None
    cut: "Cut | None" = None  #: Why the answer is incomplete; None for a complete one.
    notice: "Notice | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a request sets for the language model; None and empty for the model's own settings."""

    system: str = ""  #: Instructions of the application; they follow the rules of answers and cannot replace them.
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    response_format: Mapping[str, Any] | None = None  #: JSON in OpenAI's format; None for text.
    is_format_optional: bool = False  #: Whether a service without this format may answer in its own way.

    @property
    def is_json(self) -> bool:
        """Whether the answer must be JSON."""
        return self.response_format is not None and not self.is_format_optional


NO_OPTIONS: Final = Options()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The input of a provider."""

    question: str
    passages: tuple[Passage, ...]
    terms: QueryTerms
    history: tuple[Turn, ...] = ()
    is_follow_up: bool = False  #: Whether the search was for the question with words of the history.
    asks_nothing: bool = False  #: Whether it is a greeting or the like, which the documents need not answer.
    answerability: Answerability | None = None  #: The search's verdict; None if it was not judged.
    options: Options = NO_OPTIONS
    trust: Mapping[int, int] = field(default_factory=dict)  #: The trust level of each connection, higher for more.
    cosines: RunCosines = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict | None:
        """Whether the passages answer the question; None if it was not judged."""
        return self.answerability.verdict if self.answerability else None


@dataclass(frozen=True, slots=True)
class Window:
    """The context window of a language model, in its tokens."""

    context_tokens: int
    answer_tokens: int
    #: Its token counter; None if its tokenizer is not on this machine: then the embedding model's is used.
    counter: TokenCounter | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice for the reader about how an answer was made."""

    code: str
    text: str


class Provider(Protocol):
    """Writes answers: the extractive provider quotes, the others use a language model."""

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
        """Its context window, to which tasks are cut; None without a limit."""
        ...

    def stream(self, task: Task) -> AsyncGenerator[Piece, None]:
        """Yield the answer with citations [N], then the usage; closing it stops the work. Raises CoreCubeError."""
        ...

    def refuses(self, text: str) -> bool:
        """Return whether an answer of this provider says that the documents do not answer the question."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """The providers that may write an answer."""

    providers: tuple[Provider, ...]  #: In the order of use; the last one always works.
    notices: tuple[Notice, ...] = ()
