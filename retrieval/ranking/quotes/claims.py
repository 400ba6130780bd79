"""What units of documents state about a question, as conflicts compare it. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from typing import Final

from retrieval.engine.types import Passage
from retrieval.engine.words import TermFinder
from retrieval.ranking.quotes.asked import any_of, cues
from retrieval.ranking.quotes.candidates import Candidate, passed_over
from retrieval.ranking.quotes.quantities import Quantity, unit_of
from retrieval.ranking.quotes.ranker import Asking
from retrieval.ranking.quotes.statements import Statement, statement, stems
from retrieval.text.sentences import split_sentences
from retrieval.text.units import Unit, UnitKind, cells_of, split_units

MAX_COMPARED: Final = 40  #: Statements that are compared with each other: the best by their words.
_SHARE_OF_PLACE: Final = 0.5  #: What a term in the title or a heading is worth, of one in the statement.
_MAX_LENGTH: Final = 400  #: Characters of a statement; a longer one says more than one thing.
_STATING: Final = frozenset({UnitKind.SENTENCE, UnitKind.BULLET, UnitKind.STEP, UnitKind.ROW})
DURATIONS: Final = frozenset({"second", "minute", "hour", "day", "week", "month", "year"})
_NUMBER: Final = re.compile(r"\d[\d.,]*")
_LOOK_BACK: Final = 24  #: Characters before a number in which words may make it a bound.
_WORD: Final = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Claim:
    """A unit that states something, as it is compared with others; read when a comparison gets that far."""

    quoted: Candidate
    text: str  #: Of its unit, the sentence that is nearest to the question.
    lexemes: frozenset[str]  #: The terms of the question in it.
    share: float  #: The share of the question's idf in it, 0 to 1, of the terms that occur in scope.
    language: str
    document: int  #: The number of its document's id: every two claims are compared by it.
    is_row: bool  #: Whether it is a row of a table.

    @cached_property
    def stated(self) -> Statement:
        """What it states."""
        return statement(self.text, self.language)

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all its words."""
        return stems(self.text, self.language)

    @property
    def label(self) -> Statement:
        """What names a thing in it: the first cell of a row; otherwise all of it."""
        return statement(next(filter(None, cells_of(self.text)), ""), self.language) if self.is_row else self.stated

    @property
    def header(self) -> Statement:
        """The header of its table."""
        return statement(self.unit.header, self.language)

    @cached_property
    def title(self) -> Statement:
        """The title of its document."""
        return statement(self.passage.hit.chunk.title, self.language)

    @cached_property
    def headings(self) -> tuple[Statement, ...]:
        """The headings above it."""
        headings = dict.fromkeys(filter(None, (*self.passage.hit.chunk.heading_path, self.unit.heading)))
        return tuple(statement(it, self.language) for it in headings)

    @property
    def passage(self) -> Passage:
        """Its passage."""
        return self.quoted.passage

    @property
    def unit(self) -> Unit:
        """Its unit."""
        return self.quoted.quoted[0]

    @property
    def is_old(self) -> bool:
        """Whether its document calls itself superseded or a draft, by its status or its title."""
        chunk = self.passage.hit.chunk
        return is_superseded(self.passage) or _old().search(f"{chunk.status} | {chunk.title}".lower()) is not None

    @cached_property
    def place_words(self) -> frozenset[str]:
        """The words of its title and headings."""
        return self.title.words.union(*(it.words for it in self.headings))

    @property
    def bounds(self) -> frozenset[str]:
        """Which ends of a range the words before its numbers name: "high", "low"."""
        text = self.text.lower()
        before = " | ".join(text[max(0, it.start() - _LOOK_BACK) : it.start()] for it in _NUMBER.finditer(text))
        return frozenset(end for end in ("high", "low") if _bound(end).search(before))

    @property
    def durations(self) -> frozenset[str]:
        """The units of time in its words, those of its values among them."""
        return frozenset(unit for word in _WORD.findall(self.text) if (unit := unit_of(word)) in DURATIONS)

    @property
    def refers(self) -> bool:
        """Whether it begins with a word for something that another sentence names, such as "their"."""
        return _references().match(self.text.lower()) is not None


def is_superseded(passage: Passage) -> bool:
    """Return whether the status of a document says that it no longer counts."""
    return bool(_superseded().search(passage.hit.chunk.status.lower()))


def claims_of(passages: Sequence[Passage], asking: Asking, asked: Sequence[Quantity]) -> list[Claim]:
    """Return the statements that hold most of the question's terms, themselves first and then with their headings.

    Of a table with a row that the numbers of the question pick, only this row is one.
    """
    finder = asking.finder
    found: list[tuple[float, Candidate, frozenset[str]]] = []
    for passage in passages:
        units = split_units(passage.hit.chunk.text)
        title = " ".join((passage.hit.chunk.title, *passage.hit.chunk.heading_path))
        above = {heading: finder.found(f"{title} {heading}") for heading in {it.heading for it in units}}
        others = passed_over(units, asked, asking.language)
        for at, unit in enumerate(units):
            if unit.kind in _STATING and len(unit.text) <= _MAX_LENGTH and at not in others:
                own = finder.found(f"{unit.header}\n{unit.text}")
                score = finder.weight(own) + _SHARE_OF_PLACE * finder.weight(above[unit.heading] - own)
                found.append((score, Candidate(passage, units, range(at, at + 1)), own))
    known = sum(term.idf for term in asking.terms.terms if term.document_frequency) or 1.0
    nearest = sorted(found, key=lambda it: -it[0])[:MAX_COMPARED]
    return [_claim(candidate, own, known, asking.language, finder) for _, candidate, own in nearest]


def _claim(candidate: Candidate, own: frozenset[str], known: float, language: str, finder: TermFinder) -> Claim:
    """Return the claim of a unit with some terms of the question, of whose idf `known` occurs in scope.

    Of several sentences, or parts between semicolons, the one that holds most of these terms is the claim.
    """
    unit = candidate.quoted[0]
    is_row, parts = unit.kind is UnitKind.ROW, [unit.text]
    if not is_row:
        sentences = [unit.text] if unit.kind is UnitKind.SENTENCE else split_sentences(unit.text)
        parts = [part for sentence in sentences for part in sentence.split("; ")]
    text = unit.text
    if len(parts) > 1:
        terms = {part: finder.found(part) for part in parts}
        text = max(parts, key=lambda part: finder.weight(terms[part]))
        own = terms[text]
    document = candidate.passage.hit.chunk_id.document_id.int
    return Claim(candidate, text, own, finder.weight(own) / known, language, document, is_row)


@cache
def _old() -> re.Pattern[str]:
    return any_of(chain.from_iterable(cues()["versions"][name] for name in ("superseded", "draft")))


@cache
def _bound(end: str) -> re.Pattern[str]:
    return any_of(cues()["bounds"][end])


@cache
def _references() -> re.Pattern[str]:
    return any_of(cues()["references"]["words"])


@cache
def _superseded() -> re.Pattern[str]:
    return any_of(chain.from_iterable(cues()["versions"][name] for name in ("superseded", "status")))
