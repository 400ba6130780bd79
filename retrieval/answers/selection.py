"""Select the units of the passages to quote. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from retrieval.engine.types import Passage
from retrieval.engine.words import TermFinder
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
