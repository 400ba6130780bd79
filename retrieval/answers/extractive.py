"""Extractive answers, without a language model: the best units of the passages, quoted with citations. No Django.

Quotes come with the statements of other documents that contradict them.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import ClassVar, Final

from retrieval.answers.quoting import Quote, choose, quotes_of
from retrieval.answers.rewrite import asks_for_more
from retrieval.answers.threads import AnswerThreads
from retrieval.engine.types import Passage, Verdict
from retrieval.llm.citations import escape_markers, find_citations
from retrieval.llm.prompt import REFUSAL
from retrieval.llm.types import Answer, Piece, Task
from retrieval.ranking.answerability.verdict import Reason
from retrieval.ranking.packing import by_number
from retrieval.ranking.quotes.candidates import Candidate, candidates
from retrieval.ranking.quotes.claims import Claim, is_superseded
from retrieval.ranking.quotes.conflicts import Conflict, asks_past, find_conflicts
from retrieval.ranking.quotes.follow_ups import FollowUp
from retrieval.ranking.quotes.ranker import Asking, Scored, shipped
from retrieval.text.small_talk import is_thanks

_EQUAL: Final = "Another document says otherwise"
_OLD: Final = "An older version says otherwise"
_MAX_OTHERS: Final = 2
ASSERTED: Final = "Quoted from your documents:"
NO_ACCESS: Final = "You have no access to any of the sources that were searched. An admin can give it to you."
HEDGED: Final = "This may not answer your question. The nearest text:"
OFFER: Final = "I answer questions about your documents and show the sources. What would you like to know?"
WELCOME: Final = "You're welcome. What else would you like to know?"
_FURTHER: Final = "Also found:"
_NEAR: Final = 2.0  #: Quotes whose log-odds are so much below the best one's come after these words.
_OUTDATED: Final = 3.0  #: Log-odds by which superseded documents must answer better than current ones.
_IMPROBABLE: Final = 0.5  #: Confidence below which further quotes hardly ever answer.
_MAX_IMPROBABLE: Final = 2  #: Quotes that are shown then.
MAX_CHARACTERS: Final = 700
_GAP: Final = "\n\n"
_MAX_NEAR_MISSES: Final = 3
_LINE: Final = re.compile(r"[^\n]*\n+|[^\n]+")


def chosen_texts(
    ranked: Sequence[Scored], conflicts: Sequence[Conflict], *, is_about_past: bool = False, max_characters: int
) -> tuple[str, ...]:
    """Return the quotes that fit into some characters, best first, with what is said otherwise behind the first one.

    Of a conflict only the statement that counts most is quoted as an answer. What an equal document says is always
    there, what an older version says only if it is about the best quote, and what holds for other years never. Nothing
    else is quoted from an older version that calls itself superseded or a draft. Without a conflict superseded
    documents are only quoted if they answer far better than current ones, or best where the question `is_about_past`,
    behind their status. Quotes far behind the best, and those behind what is said otherwise, come after a remark.
    """
    conflicts = [it for it in conflicts if it.is_central or any(holds(one.candidate, it.first) for one in ranked)]
    quotable = (*(it.candidate.passage for it in ranked), *(it.first.passage for it in conflicts))
    passages = {it.number: it for it in quotable}
    lesser = [claim for conflict in conflicts for claim in conflict.lesser]
    outdated = {claim.document for conflict in conflicts for claim in conflict.old if claim.is_old}
    rest = [
        it
        for it in ranked
        if it.candidate.passage.hit.chunk_id.document_id.int not in outdated
        and not any(holds(it.candidate, claim) for claim in lesser)
    ]
    current = [it for it in rest if not is_superseded(it.candidate.passage)]
    if current and current[0].score >= rest[0].score - (0 if is_about_past else _OUTDATED):
        rest = current
    quotes = choose(rest, max_characters=max_characters)
    conflict = _shown(conflicts, quotes)
    if conflict is None:
        texts = _fitting(_marked(quotes, passages), max_characters=max_characters)
        parted = _with_further(texts, quotes, rest)
        return parted if len(_GAP.join(parted)) <= max_characters else texts
    remarks = tuple(_remark(_EQUAL, it, ranked) for it in conflict.alternatives[:_MAX_OTHERS])
    remarks = remarks or tuple(_remark(_OLD, it, ranked) for it in conflict.old[:1])
    left = max_characters - sum(len(remark) + len(_GAP) for remark in remarks)
    quotes = choose(rest, max_characters=left)
    at = next((at for at, quote in enumerate(quotes) if _quotes(quote, conflict.first)), None)
    if at is None:
        first = quotes_of([conflict.first.quoted], ranked)
        quotes, at = (*first, *quotes), 0
    texts = (*_marked(quotes[: at + 1], passages), *remarks, *_as_further(_marked(quotes[at + 1 :], passages)))
    return _fitting(texts, needed=at + 1 + len(remarks), max_characters=max_characters)


def _with_further(texts: Sequence[str], quotes: Sequence[Quote], ranked: Sequence[Scored]) -> tuple[str, ...]:
    """Return the texts of quotes with a remark before the first of those that are far behind the best one.

    A row that the numbers of the question pick is never far behind.
    """
    likely = (it.candidate for it in ranked if it.candidate.is_picked or it.score >= ranked[0].score - _NEAR)
    near = {unit.text for candidate in likely for unit in candidate.quoted}
    first = next((at for at, it in enumerate(quotes) if near.isdisjoint(unit.text for unit in it.units)), len(texts))
    return (*texts[:first], *_as_further(texts[first:]))


def _as_further(texts: Sequence[str]) -> tuple[str, ...]:
    return (f"{_FURTHER}{_GAP}{texts[0]}", *texts[1:]) if texts else ()


def _fitting(texts: Sequence[str], *, needed: int = 1, max_characters: int) -> tuple[str, ...]:
    """Return the first texts that fit into some characters together; at least those that are needed."""
    number = len(texts)
    while number > needed and len(_GAP.join(texts[:number])) > max_characters:
        number -= 1
    return tuple(texts[:number])


def _marked(quotes: Sequence[Quote], passages: Mapping[int, Passage]) -> tuple[str, ...]:
    """Return quotes, with the source before those that only superseded documents hold."""
    leads = [_superseded_lead([passages[number] for number in quote.numbers]) for quote in quotes]
    shown = ["" if at and lead == leads[at - 1] else lead for at, lead in enumerate(leads)]
    return tuple(f"{lead}{quote.text}" for lead, quote in zip(shown, quotes, strict=True))


def _superseded_lead(sources: Sequence[Passage]) -> str:
    if not all(map(is_superseded, sources)):
        return ""
    return _lead(f"Source status: {escape_markers(_one_line(sources[0].hit.chunk.status))}", sources[0])


def _shown(conflicts: Sequence[Conflict], quotes: Sequence[Quote]) -> Conflict | None:
    """Return the conflict about the question to show: one of equals, of the best quote, or that the year decides."""
    central = [it for it in conflicts if it.is_central]
    of_equals = (it for it in central if it.is_doubt)
    of_best = (it for it in central if it.old and quotes and _quotes(quotes[0], it.first))
    of_year = (it for it in central if it.beside)
    return next(chain(of_equals, of_best, of_year), None)


def _remark(lead: str, claim: Claim, ranked: Sequence[Scored]) -> str:
    """Return what a claim says, with the title and the date of its document."""
    (quote,) = quotes_of([claim.quoted], ranked)
    return f"{_lead(lead, claim.passage)}{quote.text}"


def _lead(lead: str, passage: Passage) -> str:
    chunk = passage.hit.chunk
    title = escape_markers(_one_line(chunk.title))
    changed = f", updated {chunk.modified_at.day} {chunk.modified_at:%B %Y}" if chunk.modified_at else ""
    return f"{lead} ({title}{changed}):{_GAP}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def holds(candidate: Candidate, claim: Claim) -> bool:
    """Return whether a candidate quotes a claim, or the same text of another passage of its document."""
    one, other = candidate.passage.hit.chunk_id, claim.passage.hit.chunk_id
    return one.document_id == other.document_id and claim.unit.text in {unit.text for unit in candidate.quoted}


def _quotes(quote: Quote, claim: Claim) -> bool:
    return claim.passage.number in quote.numbers and claim.unit.text in {unit.text for unit in quote.units}


def extract_answer(task: Task) -> Answer:
    """Return quotes that answer the question, at most 700 characters where one is so short, or a refusal.

    The search's verdict decides: quotes are the answer to an answerable question, the nearest text to one that may be
    answerable, two at most where that is improbable, and there are none for one that is not.
    """
    passages = by_number(task.passages)
    quotes: tuple[str, ...] = ()
    if not task.asks_nothing and task.verdict is not Verdict.NOT_ANSWERABLE:
        first = ASSERTED if task.verdict is Verdict.ANSWERABLE else HEDGED
        asking = Asking.of(task.question, task.terms)
        ranked = _ranked(task, passages, asking)
        conflicts = find_conflicts(task.question, passages, asking, task.trust)
        if task.is_follow_up:  # What the answer before it showed is not shown again.
            conflicts = tuple(it for it in conflicts if any(holds(one.candidate, it.first) for one in ranked))
        left = MAX_CHARACTERS - len(first) - len(_GAP)
        quotes = chosen_texts(ranked, conflicts, is_about_past=asks_past(task.question), max_characters=left)
        if task.answerability and task.answerability.confidence < _IMPROBABLE:
            quotes = quotes[:_MAX_IMPROBABLE]
    text = _GAP.join((first, *quotes)) if quotes else _refusal(task, passages)
    citations = find_citations(text, len(passages))
    return Answer(text, citations, extractive=True, refused=not quotes)


def _ranked(task: Task, passages: Sequence[Passage], asking: Asking) -> Sequence[Scored]:
    """Return the candidates, best first: by words, and the best of these by vectors too if all of them have any."""
    found = candidates(passages, task.question, asking.language)
    follow_up = _follow_up(task, asking)
    if follow_up:
        found = follow_up.narrowed(found)
    ranked = shipped().again(shipped().best_first(found, asking), task.cosines)
    return follow_up.ranked(ranked) if follow_up else ranked


def _follow_up(task: Task, asking: Asking) -> FollowUp | None:
    if not (task.is_follow_up and task.history):
        return None
    last = task.history[-1]
    wants_more = asks_for_more(task.question, last.question)
    return FollowUp.of(task.question, asking, before=last.question, answer=last.answer, wants_more=wants_more)


def _refusal(task: Task, passages: Sequence[Passage]) -> str:
    if task.asks_nothing:
        return WELCOME if is_thanks(task.question) else OFFER
    judged = task.answerability
    if judged and judged.reason == Reason.NO_SCOPE:
        return f"{REFUSAL} {NO_ACCESS}"
    nearest: dict[str, int] = {}
    for passage in passages:
        nearest.setdefault(escape_markers(" ".join(passage.hit.chunk.title.split())), passage.number)
    if not nearest:
        return f"{REFUSAL} No document is close to this question."
    # Other explanations are about scores, which the Explorer shows.
    why = escape_markers(judged.explanation) if judged and judged.reason == Reason.UNKNOWN_TERMS else ""
    named = ", ".join(f"“{title}” [{number}]" for title, number in list(nearest.items())[:_MAX_NEAR_MISSES])
    return " ".join(filter(None, (REFUSAL, why, f"Closest documents: {named}.")))


@dataclass(frozen=True, slots=True)
class ExtractiveProvider:
    """Answers with quotes; needs no language model."""

    threads: AnswerThreads | None = None

    name: ClassVar[str] = "extractive"
    is_extractive: ClassVar[bool] = True
    window: ClassVar[None] = None

    async def stream(self, task: Task) -> AsyncGenerator[Piece, None]:
        """Yield the answer line by line. Closed before a thread is free, it does no work."""
        work = partial(extract_answer, task)
        answer = await asyncio.get_running_loop().run_in_executor(self.threads, work)
        for line in _LINE.findall(answer.text):
            yield Piece(line)

    def refuses(self, text: str) -> bool:
        """Return whether an answer is the refusal."""
        return text.startswith((REFUSAL, OFFER, WELCOME))
