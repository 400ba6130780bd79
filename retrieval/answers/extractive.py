"""Extractive answers, without a language model: the best sentences, selected and quoted with citations. No Django."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar, Final

from retrieval.answers.threads import AnswerThreads
from retrieval.encoders.vector_cache import SentenceEncoder
from retrieval.engine.types import Passage
from retrieval.engine.words import TermFinder
from retrieval.errors import EncoderError
from retrieval.llm.citations import escape_markers, find_citations
from retrieval.llm.prompt import REFUSAL
from retrieval.llm.types import Answer, Notice, Piece, Task
from retrieval.ranking.packing import by_number
from retrieval.text.units import Unit, UnitKind, split_units

_ABOVE: Final = 0.7  #: Weight of a term in the headings above a unit, or in the unit before it.
_BEFORE: Final = 0.4
_COVERAGE: Final = 0.4  #: Parts of a unit's score.
_SIMILARITY: Final = 0.5
_RANK: Final = 0.1
_RANKS: Final = 10  #: Passages with a higher rank get no rank score.
_UNFINISHED: Final = 0.9  #: Factor for a line without a full stop, which may be a heading or a fragment.
_COSINE_FLOOR: Final = 0.5  #: Cosines of a question with unrelated sentences, and with answers.
_COSINE_CEILING: Final = 0.85
MAX_ENCODED: Final = 12
_MAX_QUOTED: Final = 4
_NEAR_BEST: Final = 0.8
_MIN_WORDS: Final = 3
_ENOUGH_COVERAGE: Final = 0.5
_ENOUGH_SCORE: Final = 0.44
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
class Candidate:
    """A unit that could be quoted, with its scores."""

    passage: Passage
    units: tuple[Unit, ...]
    index: int
    coverage: float  #: Share of the question's IDF in the unit, its headings and the unit before it, 0 to 1.
    similarity: float | None = None  #: Cosine with the question; None if not computed.

    @property
    def unit(self) -> Unit:
        """The unit."""
        return self.units[self.index]

    @property
    def score(self) -> float:
        """How well it answers, 0 to 1; without a similarity the coverage gets its weight."""
        rank = max(0.0, 1 - (self.passage.number - 1) / _RANKS)
        similarity = self.coverage
        if self.similarity is not None:
            similarity = min(1.0, max(0.0, (self.similarity - _COSINE_FLOOR) / (_COSINE_CEILING - _COSINE_FLOOR)))
        score = _COVERAGE * self.coverage + _SIMILARITY * similarity + _RANK * rank
        return score if self.unit.is_finished else _UNFINISHED * score


def candidates(passages: Sequence[Passage], finder: TermFinder) -> tuple[Candidate, ...]:
    """Return every unit of the passages with its coverage, in reading order."""
    found: list[Candidate] = []
    for passage in passages:
        units = split_units(passage.hit.chunk.text)
        above = finder.found(_title_line(passage))
        held = [finder.found(unit.text) for unit in units]
        found += (Candidate(passage, units, at, _coverage(finder, held, units, at, above)) for at in range(len(units)))
    return tuple(found)


def _coverage(
    finder: TermFinder, found: Sequence[frozenset[str]], units: Sequence[Unit], index: int, above: frozenset[str]
) -> float:
    total = sum(term.idf for term in finder.terms)
    own = found[index]
    over = above | finder.found(f"{units[index].heading} {units[index].header}")
    continues = index > 0 and units[index - 1].block == units[index].block
    before = found[index - 1] if continues else frozenset[str]()
    nearby = _ABOVE * finder.weight(over - own) + _BEFORE * finder.weight(before - over - own)
    return (finder.weight(own) + nearby) / total if total else 0.0


def embedded_text(candidate: Candidate) -> str:
    """Return a unit with the title line of chunk embeddings, which gives "Ask a week ahead." its subject."""
    chunk, unit = candidate.passage.hit.chunk, candidate.unit
    place = " > ".join(filter(None, (chunk.title, *chunk.heading_path, unit.heading)))
    return "\n".join(filter(None, (place, unit.header, unit.text)))


def choose(found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return up to four units to quote, best first: the best one and others with nearly its score and other texts."""
    ranked = sorted((it for it in found if _is_quotable(it)), key=lambda it: -it.score)
    chosen: list[Candidate] = []
    for candidate in ranked:
        if candidate.score < _NEAR_BEST * ranked[0].score or len(chosen) == _MAX_QUOTED:
            break
        if all(candidate.unit.text != other.unit.text for other in chosen):
            chosen.append(candidate)
    return tuple(chosen)


def answers(chosen: Sequence[Candidate], finder: TermFinder) -> bool:
    """Return whether the selected units, best first, are good enough to quote as the answer.

    One of their passages must contain a code of the question: a text about RIME-4112 does not answer RIME-4107.
    """
    if not chosen:
        return False
    passages = [candidate.passage for candidate in chosen]
    codes = finder.codes()
    if codes and not any(codes & finder.found(f"{_title_line(it)} {it.hit.chunk.text}") for it in passages):
        return False
    best = chosen[0]
    return best.coverage >= _ENOUGH_COVERAGE if best.similarity is None else best.score >= _ENOUGH_SCORE


def _title_line(passage: Passage) -> str:
    return " ".join((passage.hit.chunk.title, *passage.hit.chunk.heading_path))


def _is_quotable(candidate: Candidate) -> bool:
    """Return whether a unit is complete: no fragment, no question, not cut off at the start of the chunk."""
    unit = candidate.unit
    if unit.kind is not UnitKind.SENTENCE:
        return True
    is_cut_off = candidate.index == 0 and unit.text[:1].islower()
    return not is_cut_off and not unit.text.endswith("?") and len(unit.text.split()) >= _MIN_WORDS


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
