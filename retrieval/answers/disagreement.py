"""Quotes with the statements of other documents that contradict them. No Django."""

from collections.abc import Sequence
from itertools import chain
from typing import Final

from retrieval.answers.quoting import Quote, choose, quotes_of
from retrieval.llm.citations import escape_markers
from retrieval.ranking.quotes.candidates import Candidate
from retrieval.ranking.quotes.conflicts import Claim, Conflict
from retrieval.ranking.quotes.ranker import Scored

_EQUAL: Final = "Another document says otherwise"
_OLD: Final = "An older version says otherwise"
_MAX_OTHERS: Final = 2
_GAP: Final = "\n\n"


def chosen_texts(ranked: Sequence[Scored], conflicts: Sequence[Conflict], *, max_characters: int) -> tuple[str, ...]:
    """Return the quotes that fit into some characters, best first, with what is said otherwise behind the first one.

    Of a conflict only the statement that counts most is quoted as an answer. What an equal document says is always
    there, what an older version says only if it is about the best quote, and what holds for other years never.
    """
    conflicts = [it for it in conflicts if it.is_central or any(holds(one.candidate, it.first) for one in ranked)]
    lesser = [claim for conflict in conflicts for claim in conflict.lesser]
    rest = [it for it in ranked if not any(holds(it.candidate, claim) for claim in lesser)]
    quotes = choose(rest, max_characters=max_characters)
    conflict = _shown(conflicts, quotes)
    if conflict is None:
        return tuple(quote.text for quote in quotes)
    remarks = tuple(_remark(_EQUAL, it, ranked) for it in conflict.alternatives[:_MAX_OTHERS])
    remarks = remarks or tuple(_remark(_OLD, it, ranked) for it in conflict.old[:1])
    left = max_characters - sum(len(remark) + len(_GAP) for remark in remarks)
    quotes = choose(rest, max_characters=left)
    at = next((at for at, quote in enumerate(quotes) if _quotes(quote, conflict.first)), None)
    if at is None:
        first = quotes_of([conflict.first.quoted], ranked)
        quotes, at = (*first, *quotes), 0
    texts = [*(quote.text for quote in quotes[: at + 1]), *remarks, *(quote.text for quote in quotes[at + 1 :])]
    needed = at + 1 + len(remarks)
    while len(texts) > needed and len(_GAP.join(texts)) > max_characters:
        texts.pop()
    return tuple(texts)


def _shown(conflicts: Sequence[Conflict], quotes: Sequence[Quote]) -> Conflict | None:
    """Return the conflict about the question to show: one of equals, of the best quote, or that the year decides."""
    central = [it for it in conflicts if it.is_central]
    of_equals = (it for it in central if it.equal)
    of_best = (it for it in central if it.old and quotes and _quotes(quotes[0], it.first))
    of_year = (it for it in central if it.beside)
    return next(chain(of_equals, of_best, of_year), None)


def _remark(lead: str, claim: Claim, ranked: Sequence[Scored]) -> str:
    """Return what a claim says, with the title and the date of its document."""
    chunk = claim.passage.hit.chunk
    title = escape_markers(" ".join(chunk.title.split()))
    changed = f", updated {chunk.modified_at.day} {chunk.modified_at:%B %Y}" if chunk.modified_at else ""
    (quote,) = quotes_of([claim.quoted], ranked)
    return f"{lead} ({title}{changed}):{_GAP}{quote.text}"


def holds(candidate: Candidate, claim: Claim) -> bool:
    """Return whether a candidate quotes a claim, or the same text of another passage of its document."""
    one, other = candidate.passage.hit.chunk_id, claim.passage.hit.chunk_id
    return one.document_id == other.document_id and claim.unit.text in {unit.text for unit in candidate.quoted}


def _quotes(quote: Quote, claim: Claim) -> bool:
    return claim.passage.number in quote.numbers and claim.unit.text in {unit.text for unit in quote.units}
