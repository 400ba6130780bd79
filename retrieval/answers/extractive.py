"""Extractive answers, without a language model: quotes of the best sentences, with citations. No Django."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar, Final

from retrieval.answers.selection import MAX_ENCODED, Candidate, answers, candidates, choose, embedded_text
from retrieval.answers.threads import AnswerThreads
from retrieval.encoders.vector_cache import SentenceEncoder
from retrieval.engine.types import Passage
from retrieval.engine.words import TermFinder
from retrieval.errors import EncoderError
from retrieval.llm.citations import escape_markers, find_citations
from retrieval.llm.prompt import REFUSAL
from retrieval.llm.types import Answer, Notice, Piece, Task
from retrieval.ranking.packing import by_number
from retrieval.text.units import Unit, UnitKind

_ITEMS: Final = frozenset({UnitKind.STEP, UnitKind.BULLET})
_MAX_ITEMS: Final = 8  #: A longer list is not quoted completely.
_MAX_LIST_CHARACTERS: Final = 900
_BACKTICKS: Final = re.compile("`+")
_MIN_FENCE: Final = 3
_MAX_NEAR_MISSES: Final = 3
_HURRIED: Final = Notice("hurried", "The server is busy: these quotes were selected by words, without embeddings.")
_BY_WORDS: Final = Notice(
    "chosen_by_words", "The embedding model is unavailable: these quotes were selected by words, without embeddings."
)
_LINE: Final = re.compile(r"[^\n]*\n+|[^\n]+")


@dataclass(frozen=True, slots=True)
class Quote:
    """Consecutive units of one passage, and the passages that contain the same text."""

    units: tuple[Unit, ...]
    numbers: tuple[int, ...]


def quotes_of(chosen: Sequence[Candidate], found: Sequence[Candidate]) -> tuple[Quote, ...]:
    """Return the quotes of the selected units: passages by their best unit, in reading order inside each."""
    texts: dict[int, set[str]] = {}
    for candidate in found:
        texts.setdefault(candidate.passage.number, set()).add(candidate.unit.text)
    quotes = []
    for number in dict.fromkeys(candidate.passage.number for candidate in chosen):
        for units in _runs([candidate for candidate in chosen if candidate.passage.number == number]):
            quoted = {unit.text for unit in units}
            others = (other for other in sorted(texts) if other != number and quoted <= texts[other])
            quotes.append(Quote(units, (number, *others)))
    return tuple(quotes)


def _runs(chosen: Sequence[Candidate]) -> Iterator[tuple[Unit, ...]]:
    units = chosen[0].units
    wanted = sorted({index for candidate in chosen for index in _context(units, candidate.index)})
    run: list[int] = []
    for index in wanted:
        last = units[run[-1]] if run else units[index]
        continues = run and index == run[-1] + 1 and (last.block == units[index].block or last.text.endswith(":"))
        if run and not continues:
            yield tuple(units[it] for it in run)
            run = []
        run.append(index)
    yield tuple(units[it] for it in run)


def _context(units: Sequence[Unit], index: int) -> range:
    start, end = index, index + 1
    if units[index].kind is UnitKind.STEP:
        start, end = _list_around(units, index)
    elif units[index].text.endswith(":") and end < len(units) and units[end].kind in _ITEMS:
        end = _list_around(units, end)[1]
    elif units[index].text.endswith(":") and end < len(units):
        end += 1
    announced = units[start].kind is not UnitKind.SENTENCE and start > 0 and units[start - 1].text.endswith(":")
    return range(start - 1 if announced else start, end)


def _list_around(units: Sequence[Unit], index: int) -> tuple[int, int]:
    start, end = index, index + 1
    while start > 0 and units[start - 1].kind in _ITEMS:
        start -= 1
    while end < len(units) and units[end].kind in _ITEMS:
        end += 1
    is_short = end - start <= _MAX_ITEMS and sum(len(unit.text) for unit in units[start:end]) <= _MAX_LIST_CHARACTERS
    return (start, end) if is_short else (index, index + 1)


def render(quote: Quote) -> str:
    """Return a quote as Markdown, with its markers at the end."""
    markers = "".join(f"[{number}]" for number in quote.numbers)
    parts = [_part(kind, list(units)) for kind, units in groupby(quote.units, key=lambda unit: unit.kind)]
    # A marker needs a separate line after a fence or a table, or it would become part of it.
    gap = " " if quote.units[-1].kind in {UnitKind.SENTENCE, *_ITEMS} else "\n\n"
    return "\n\n".join(parts) + gap + markers


def _part(kind: UnitKind, units: Sequence[Unit]) -> str:
    if kind is UnitKind.CODE:
        longest = (max(map(len, _BACKTICKS.findall(unit.text)), default=0) for unit in units)
        fences = ["`" * max(_MIN_FENCE, length + 1) for length in longest]
        return "\n\n".join(f"{fence}\n{it.text}\n{fence}" for fence, it in zip(fences, units, strict=True))
    if kind is UnitKind.ROW:
        header = units[0].header or " | ".join("" for _ in units[0].text.split(" | "))
        rule = " | ".join("---" for _ in header.split(" | "))
        return "\n".join(f"> | {escape_markers(line)} |" for line in (header, rule, *(unit.text for unit in units)))
    separator = " " if kind is UnitKind.SENTENCE else "\n"
    return "> " + separator.join(escape_markers(unit.text) for unit in units).replace("\n", "\n> ")


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
        best = sorted(found, key=lambda it: -it.score)[:MAX_ENCODED]
        texts = [embedded_text(candidate) for candidate in best]
        hurried = is_crowded and not encoder.has_cached(texts)
        if not hurried:
            question = encoder.encode_query(task.question) if task.vector is None else task.vector
            cosines = encoder.encode_documents(texts) @ question
            found = [replace(it, similarity=float(cosine)) for it, cosine in zip(best, cosines, strict=True)]
    chosen = choose(found)
    if refused := not answers(chosen, finder):
        text = _refusal(by_number(task.passages), task.skipped)
    else:
        text = "\n\n".join(("Quoted from your documents:", *map(render, quotes_of(chosen, found))))
    citations = find_citations(text, len(task.passages))
    return Answer(text, citations, extractive=True, refused=refused, hurried=hurried)


def _refusal(passages: Sequence[Passage], skipped: str) -> str:
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
