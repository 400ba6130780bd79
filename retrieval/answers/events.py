"""What happens while an answer is written, as every surface hears of it. Pure."""

from dataclasses import dataclass

from corecube.errors import CoreCubeError
from retrieval.llm.types import Citation, Cut, Notice, TokenUsage


@dataclass(frozen=True, slots=True)
class Text:
    """More of the answer's text; it never ends inside a marker, and what is sent is never taken back."""

    text: str


@dataclass(frozen=True, slots=True)
class Cited:
    """Passages that are cited for the first time, where their markers stand in the text sent so far."""

    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A sentence that the passages it cites do not support: its place in the text, in code points, end exclusive."""

    start: int
    end: int
    #: Stable word for what is missing: "uncited", "number", "name", "overlap".
    reason: str
    #: The same for a reader.
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A finished answer."""

    text: str
    #: Every marker of the text, in order.
    citations: tuple[Citation, ...]
    usage: TokenUsage
    #: Who wrote it.
    provider: str
    #: Whether it only quotes.
    extractive: bool
    #: Whether it says that the sources do not answer the question.
    refused: bool
    unsupported: tuple[Unsupported, ...] = ()
    notices: tuple[Notice, ...] = ()
    #: Why it is not said to its end; None for a whole one.
    cut: Cut | None = None
    #: Markers that were taken out because no passage has their number.
    removed: int = 0
    #: From the first call of a provider to the last word.
    seconds: float = 0.0

    @property
    def cited(self) -> tuple[int, ...]:
        """The numbers of the passages that are cited, ascending."""
        return tuple(sorted({citation.number for citation in self.citations}))


@dataclass(frozen=True, slots=True)
class Failed:
    """The provider failed after its first words: the last event, with what was written until then."""

    error: CoreCubeError
    so_far: Done


AnswerEvent = Text | Cited | Notice | Failed | Done
