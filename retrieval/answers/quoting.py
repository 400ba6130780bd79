"""From ranked candidates to quotes in Markdown: as many as fit, best first, with their markers. No Django."""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from retrieval.llm.citations import escape_markers
from retrieval.ranking.quotes.candidates import Candidate
from retrieval.ranking.quotes.ranker import Scored
from retrieval.text.units import Unit, UnitKind, cells_of

_MAX_QUOTED: Final = 8
_FAR_BEHIND: Final = 6.0  #: Candidates whose log-odds are so much below the best one's are not quoted.
_COST_OF_LENGTH: Final = 0.5  #: Log-odds for each e-fold of characters.
_BACKTICKS: Final = re.compile("`+")
_MIN_FENCE: Final = 3
_INLINE: Final = frozenset({UnitKind.SENTENCE, UnitKind.BULLET, UnitKind.STEP, UnitKind.FIGURES})


@dataclass(frozen=True, slots=True)
class Quote:
    """Consecutive units of one passage, and the passages that contain the same text."""

    units: tuple[Unit, ...]
    numbers: tuple[int, ...]

    @property
    def text(self) -> str:
        """The quote as Markdown, with its markers at the end."""
        markers = "".join(f"[{number}]" for number in self.numbers)
        groups = groupby(self.units, key=lambda unit: (unit.kind, unit.header))
        parts = [_part(kind, header, list(units)) for (kind, header), units in groups]
        # A marker needs a separate line after a fence or a table, or it would become part of it.
        return "\n\n".join(parts) + (" " if self.units[-1].kind in _INLINE else "\n\n") + markers


def choose(ranked: Sequence[Scored], *, max_characters: int) -> tuple[Quote, ...]:
    """Return the quotes of the best candidates that fit into some characters together, best first; at least one.

    They are taken by their scores less what their length costs: two sentences that fit in the place of a table are as
    likely to answer. A candidate that contains another, such as the list of an item, takes its place. One that does not
    fit alone, such as a table with its header, is only quoted if none fits, and an unfinished line only if it is the
    best. Expects the best candidate first.
    """
    chosen: dict[int, Candidate] = {}  # By their places in the answer.
    quotes: tuple[Quote, ...] = ()
    near = [
        at
        for at, it in enumerate(ranked)
        if it.score >= ranked[0].score - _FAR_BEHIND and not (at and it.candidate.is_unfinished)
    ]
    for at in sorted(near, key=lambda at: -_worth(ranked[at])):
        candidate = ranked[at].candidate
        if len(chosen) == _MAX_QUOTED:
            break
        if any(_repeats(candidate, other) for other in chosen.values()):
            continue
        replaced = {place for place, other in chosen.items() if _repeats(other, candidate)}
        wanted = {place: other for place, other in chosen.items() if place not in replaced}
        wanted[min({at, *replaced})] = candidate
        longer = quotes_of([wanted[place] for place in sorted(wanted)], ranked)
        if len("\n\n".join(quote.text for quote in longer)) <= max_characters:
            chosen, quotes = wanted, longer
    return quotes or quotes_of([it.candidate for it in ranked[:1]], ranked)


def _worth(scored: Scored) -> float:
    return scored.score - _COST_OF_LENGTH * math.log(len(scored.candidate.text))


def _repeats(candidate: Candidate, other: Candidate) -> bool:
    """Return whether everything that a candidate quotes is quoted by another."""
    if candidate.passage.number == other.passage.number:
        return other.run.start <= candidate.run.start and candidate.run.stop <= other.run.stop
    return {unit.text for unit in candidate.quoted} <= {unit.text for unit in other.quoted}


def quotes_of(chosen: Sequence[Candidate], ranked: Sequence[Scored]) -> tuple[Quote, ...]:
    """Return the quotes of candidates, by the first candidate that each of them holds."""
    texts: dict[int, set[str]] = {}
    for scored in ranked:
        texts.setdefault(scored.candidate.passage.number, set()).update(it.text for it in scored.candidate.quoted)
    quotes: dict[int, Quote] = {}
    for number in dict.fromkeys(candidate.passage.number for candidate in chosen):
        own = {at: candidate for at, candidate in enumerate(chosen) if candidate.passage.number == number}
        units = next(iter(own.values())).units
        for run in _joined(units, own.values()):
            first = next(at for at, candidate in own.items() if candidate.run.start in run)
            quoted = {unit.text for unit in units[run.start : run.stop]}
            others = (other for other in sorted(texts) if other != number and quoted <= texts[other])
            quotes[first] = Quote(units[run.start : run.stop], (number, *others))
    return tuple(quotes[first] for first in sorted(quotes))


def _joined(units: Sequence[Unit], chosen: Collection[Candidate]) -> Iterator[range]:
    """Yield the runs of one passage's units that candidates quote; those that touch inside a block or a run are one."""
    together = {index for candidate in chosen for index in candidate.run[1:]}
    wanted = sorted({index for candidate in chosen for index in candidate.run})
    start = 0
    for at, index in enumerate(wanted):
        before = wanted[at - 1] if at else index - 1
        joins = index in together or units[before].block == units[index].block or units[before].text.endswith(":")
        if at and (before != index - 1 or not joins):
            yield range(wanted[start], before + 1)
            start = at
    yield range(wanted[start], wanted[-1] + 1)


def _part(kind: UnitKind, header: str, units: Sequence[Unit]) -> str:
    if kind is UnitKind.CODE:
        longest = (max(map(len, _BACKTICKS.findall(unit.text)), default=0) for unit in units)
        fences = ["`" * max(_MIN_FENCE, length + 1) for length in longest]
        return "\n\n".join(f"{fence}\n{it.text}\n{fence}" for fence, it in zip(fences, units, strict=True))
    if kind is UnitKind.ROW:
        cells = len(cells_of(header or units[0].text))
        header, rule = header or " | " * (cells - 1), " | ".join(["---"] * cells)
        return "\n".join(f"> | {escape_markers(line)} |" for line in (header, rule, *(unit.text for unit in units)))
    texts = [header, *(unit.text for unit in units)] if header else [unit.text for unit in units]
    separator = " " if kind is UnitKind.SENTENCE else "\n"
    return "> " + separator.join(map(escape_markers, texts)).replace("\n", "\n> ")
