"""Extractive answers, without a language model: quotes of the best sentences, with citations. No Django."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from retrieval.answers.quotes import quotes_of, render
from retrieval.answers.selection import (
    Candidate,
    answers,
    candidates,
    choose,
    embedded_text,
    promising,
    with_similarity,
)
from retrieval.answers.threads import AnswerThreads
from retrieval.encoders.vector_cache import SentenceEncoder
from retrieval.engine.types import Passage
from retrieval.engine.words import TermFinder
from retrieval.errors import EncoderError
from retrieval.llm.citations import escape_markers, find_citations
from retrieval.llm.prompt import REFUSAL
from retrieval.llm.types import Answer, Notice, Piece, Task
from retrieval.ranking.packing import by_number

_OPENING: Final = "Quoted from your documents:"
_MAX_NEAR_MISSES: Final = 3
_HURRIED: Final = Notice("hurried", "The server is busy: these quotes were selected by words, without embeddings.")
_BY_WORDS: Final = Notice(
    "chosen_by_words", "The embedding model is unavailable: these quotes were selected by words, without embeddings."
)
_LINE: Final = re.compile(r"[^\n]*\n+|[^\n]+")


def extract_answer(
    task: Task, *, stem: Callable[[str], str], encoder: SentenceEncoder | None = None, is_crowded: bool = False
) -> Answer:
    """Return one to four quotes that answer the question, or a refusal with the nearest documents.

    Units are scored by the IDF of the query terms that they contain and, with an encoder, by their cosine to the
    question; at most 12 are encoded. On a busy server the cosine counts only if all vectors are cached; otherwise the
    answer is hurried. `stem` must be the stemmer of the task's terms. Raises EncoderError.
    """
    finder = TermFinder(task.terms.terms, stem)
    found: Sequence[Candidate] = candidates(by_number(task.passages), finder)
    hurried = False
    if encoder is not None and found:
        best = promising(found)
        texts = [embedded_text(candidate) for candidate in best]
        hurried = is_crowded and not encoder.has_cached(texts)
        if not hurried:
            question = encoder.encode_query(task.question) if task.vector is None else task.vector
            found = with_similarity(best, encoder.encode_documents(texts) @ question)
    chosen = choose(found)
    if refused := not answers(chosen, finder):
        text = _refusal(by_number(task.passages), task.skipped)
    else:
        text = "\n\n".join((_OPENING, *map(render, quotes_of(chosen, found))))
    citations = find_citations(text, len(task.passages))
    return Answer(text, citations, extractive=True, refused=refused, hurried=hurried)


def _refusal(passages: Sequence[Passage], skipped: str) -> str:
    """Return a refusal with the documents of the best passages, or with the reason of a skipped search."""
    if skipped:
        return f"{REFUSAL} {skipped}"
    nearest: dict[str, int] = {}
    for passage in passages:
        nearest.setdefault(escape_markers(" ".join(passage.hit.chunk.title.split())), passage.number)
    if not nearest:
        return f"{REFUSAL} No document is close to this question."
    named = ", ".join(f"“{title}” [{number}]" for title, number in list(nearest.items())[:_MAX_NEAR_MISSES])
    return f"{REFUSAL} Closest documents: {named}."


@dataclass(frozen=True, slots=True)
class ExtractiveProvider:
    """Answers with quotes; needs no language model."""

    stem: Callable[[str], str]
    encoder: SentenceEncoder | None = None
    threads: AnswerThreads | None = None

    name: ClassVar[str] = "extractive"
    is_extractive: ClassVar[bool] = True
    window: ClassVar[None] = None

    async def stream(self, task: Task) -> AsyncGenerator[Piece, None]:
        """Yield the answer line by line. Closed before a thread is free, it does no work."""
        answer, notices = await asyncio.get_running_loop().run_in_executor(self.threads, self._answer, task)
        for notice in notices:
            yield Piece(notice=notice)
        for line in _LINE.findall(answer.text):
            yield Piece(line)

    def _answer(self, task: Task) -> tuple[Answer, tuple[Notice, ...]]:
        is_crowded = self.threads is not None and self.threads.is_crowded
        try:
            answer = extract_answer(task, stem=self.stem, encoder=self.encoder, is_crowded=is_crowded)
        except EncoderError:
            return extract_answer(task, stem=self.stem), (_BY_WORDS,)
        return answer, (_HURRIED,) if answer.hurried else ()

    def refuses(self, text: str) -> bool:
        """Return whether an answer is the refusal."""
        return text.startswith(REFUSAL)
