"""Answering without a language model: the best sentences of the passages, word for word, with their [N]. No Django."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from retrieval.encoders.protocol import Encoder
from retrieval.generate.citations import escape_markers, find_citations
from retrieval.generate.prompt import REFUSAL
from retrieval.generate.quotes import quotes_of, render
from retrieval.generate.selection import Candidate, answers, candidates, choose, with_similarity
from retrieval.generate.threads import AnswerThreads
from retrieval.generate.types import Answer, Notice, Piece, Task
from retrieval.generate.words import TermFinder
from retrieval.types import Passage, QueryTerms

_OPENING: Final = "From the sources, word for word (an extractive answer: nothing is added):"
_MOST_NEAR_MISSES: Final = 3
_HURRIED: Final = Notice("hurried", "Many answers are asked for at once, so this one was chosen by its words alone.")
_LINE: Final = re.compile(r"[^\n]*\n+|[^\n]+")


def extract_answer(
    question: str,
    passages: tuple[Passage, ...],
    *,
    terms: QueryTerms,
    stem: Callable[[str], str],
    encoder: Encoder | None = None,
) -> Answer:
    """Return one to four quotations that answer the question, or an honest refusal that names the nearest passages.

    Units are scored by the idf of the question's terms that they hold and, with an encoder, by their cosine to the
    question; at most 12 are encoded. `stem` must be the stemmer that made `terms`. Raises EncoderError.
    """
    finder = TermFinder(terms.terms, stem)
    found: Sequence[Candidate] = candidates(passages, finder)
    if encoder is not None and found:
        found = with_similarity(found, question=encoder.encode_query(question), encode=encoder.encode_documents)
    chosen = choose(found)
    refused = not answers(chosen, finder)
    text = _refusing(passages) if refused else _quoting(chosen, found)
    return Answer(text, find_citations(text, len(passages)), extractive=True, refused=refused)


def _quoting(chosen: Sequence[Candidate], found: Sequence[Candidate]) -> str:
    return "\n\n".join((_OPENING, *(render(quote) for quote in quotes_of(chosen, found))))


def _refusing(passages: Sequence[Passage]) -> str:
    """Return a refusal that names the documents of the best passages."""
    nearest: dict[str, int] = {}
    for passage in passages:
        nearest.setdefault(_title(passage), passage.number)
    if not nearest:
        return f"{REFUSAL} Nothing in them comes close to this question."
    named = ", ".join(f"“{title}” [{number}]" for title, number in list(nearest.items())[:_MOST_NEAR_MISSES])
    return f"{REFUSAL} The closest that they have: {named}."


def _title(passage: Passage) -> str:
    return escape_markers(" ".join(passage.hit.chunk.title.split()))


@dataclass(frozen=True, slots=True)
class ExtractiveProvider:
    """Answers with quotations; needs no language model."""

    stem: Callable[[str], str]
    encoder: Encoder | None = None
    #: Where it works; None for the event loop's own threads. In a crowd the words decide alone.
    threads: AnswerThreads | None = None

    name: ClassVar[str] = "extractive"
    is_extractive: ClassVar[bool] = True
    window: ClassVar[None] = None

    async def stream(self, task: Task) -> AsyncGenerator[Piece, None]:
        """Yield the answer line by line. Closed before its turn has come, it does no work at all."""
        is_hurried, answer = await asyncio.get_running_loop().run_in_executor(self.threads, self._answer, task)
        if is_hurried:
            yield Piece(notice=_HURRIED)
        for line in _LINE.findall(answer.text):
            yield Piece(line)

    def _answer(self, task: Task) -> tuple[bool, Answer]:
        """Return the answer, and whether it had to do without vectors because so many others wait."""
        is_hurried = self.encoder is not None and self.threads is not None and self.threads.is_crowded
        encoder = None if is_hurried else self.encoder
        return is_hurried, extract_answer(
            task.question, task.passages, terms=task.terms, stem=self.stem, encoder=encoder
        )

    def refuses(self, text: str) -> bool:
        """Return whether an answer is the refusal."""
        return text.startswith(REFUSAL)
