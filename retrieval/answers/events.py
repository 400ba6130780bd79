"""The events of an answer, the same for all channels. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from corecube.errors import CoreCubeError
from retrieval.llm.types import Citation, Cut, Notice, TokenUsage


@dataclass(frozen=True, slots=True)
class Text:
    """The next part of the answer's text; it never ends inside a marker and is final."""

    text: str


@dataclass(frozen=True, slots=True)
class Cited:
    """Passages that are cited for the first time, with the positions of their markers in the text so far."""

    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A sentence without support in its cited passages: position in the text, in code points, end exclusive."""

    start: int
    end: int
    reason: str  #: Code of what is missing: "uncited", "number", "name", "overlap".
    explanation: str


class Outcome(StrEnum):
    """What an answer claims."""

    ASSERTED = "asserted"  #: It answers the question.
    HEDGED = "hedged"  #: It may not answer the question: the reader has to check.
    REFUSED = "refused"  #: It reports that the documents do not answer the question.


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A finished answer."""

    text: str
    citations: tuple[Citation, ...]
    usage: TokenUsage
    provider: str
    extractive: bool
    outcome: Outcome
    unsupported: tuple[Unsupported, ...] = ()
    notices: tuple[Notice, ...] = ()
    cut: Cut | None = None  #: Why it is incomplete; None for a complete one.
    removed: int = 0  #: Number of removed markers, whose numbers no passage has.
    seconds: float = 0.0  #: Time from the call of the provider to the last word.

    @property
    def refused(self) -> bool:
        """Whether it reports that the documents do not answer the question."""
        return self.outcome is Outcome.REFUSED

    @property
    def cited(self) -> tuple[int, ...]:
        """The numbers of the cited passages, ascending."""
        return tuple(sorted({citation.number for citation in self.citations}))


@dataclass(frozen=True, slots=True)
class Failed:
    """The provider failed after its first words: the last event, with the text until then."""

    error: CoreCubeError
    so_far: Done


AnswerEvent = Text | Cited | Notice | Failed | Done
