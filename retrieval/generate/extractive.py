"""Answering without a language model: the best sentences of the passages, word for word, with their [N]. No Django."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from retrieval.encoders.protocol import Encoder
from retrieval.generate.citations import escape_markers, find_citations
from retrieval.generate.quotes import quotes_of, render
from retrieval.generate.selection import Candidate, answers, candidates, choose, with_similarity
from retrieval.generate.types import Answer, Task
from retrieval.generate.words import TermFinder
from retrieval.types import Passage, QueryTerms

_OPENING: Final = "From the sources, word for word (an extractive answer: nothing is added):"
_REFUSAL: Final = "The sources in your scope do not say."
_MOST_NEAR_MISSES: Final = 3
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
        return f"{_REFUSAL} Nothing in them comes close to this question."
    named = ", ".join(f"“{title}” [{number}]" for title, number in list(nearest.items())[:_MOST_NEAR_MISSES])
    return f"{_REFUSAL} The closest that they have: {named}."


def _title(passage: Passage) -> str:
    return escape_markers(" ".join(passage.hit.chunk.title.split()))


@dataclass(frozen=True, slots=True)
class ExtractiveProvider:
    """Answers with quotations; needs no language model."""

    stem: Callable[[str], str]
    encoder: Encoder | None = None

    name: ClassVar[str] = "extractive"

    def complete(self, task: Task) -> Iterator[str]:
        """Yield the answer line by line."""
        answer = extract_answer(task.question, task.passages, terms=task.terms, stem=self.stem, encoder=self.encoder)
        yield from _LINE.findall(answer.text)

    def refuses(self, text: str) -> bool:
        """Return whether an answer is the refusal."""
        return text.startswith(_REFUSAL)
