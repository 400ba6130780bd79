"""The order of candidates for a quotation: two learned linear models, by words, then by words and vectors. Pure."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import fmean
from typing import Any, Final, Self

from retrieval.engine.query import respelled
from retrieval.engine.types import QueryTerms, RunCosines
from retrieval.engine.words import TermFinder, stemmer
from retrieval.ranking.answerability.logistic import LogisticModel
from retrieval.ranking.quotes.asked import FORMS, Asked, asked, cues, holds
from retrieval.ranking.quotes.candidates import Candidate
from retrieval.text.language import common_words, question_language
from retrieval.text.units import UnitKind, cells_of

MAX_COMPARED: Final = 24  #: The best by words, which are compared by vectors too.
WORD_SIGNALS: Final = (
    "coverage",
    "coverage_place",
    "coverage_before",
    "coverage_passage",
    "rank",
    "cosine_passage",
    "form",
    "form_missing",
    "length",
    "fragment",
    "steps_asked",
    "list_asked",
    "one_asked",
    "row",
    "named",
)
VECTOR_SIGNALS: Final = (*WORD_SIGNALS, "cosine", "cosine_over_mean", "cosine_best")
_MIN_WORDS: Final = 4
_NAME_CELLS: Final = (
    2  #: The first cells of a row, one of which may be its name; a number or a code may stand before it.
)
_MIN_LETTERS: Final = 3  #: Of a word of a name.
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with its signals and its score, a log-odds."""

    candidate: Candidate
    signals: Mapping[str, float]
    score: float


@dataclass(frozen=True, slots=True)
class Asking:
    """A question as the ranker reads it."""

    terms: QueryTerms
    language: str  #: That of the question by its words, in doubt that of its terms; one of PostgreSQL's names.
    kinds: frozenset[Asked]
    said: frozenset[str]  #: Its own terms, without those that a follow-up takes from the question before.

    @classmethod
    def of(cls, question: str, terms: QueryTerms) -> Self:
        """Return it for a question as it was typed, and its terms."""
        question = respelled(question, terms.corrections)
        seeming = question_language(question)
        language = seeming if seeming in cues() else terms.language
        said = TermFinder(terms.terms, stemmer(terms.language)).found(question)
        return cls(terms, language, asked(question, language), said)

    @property
    def finder(self) -> TermFinder:
        """What finds its terms in a text."""
        return TermFinder(self.terms.terms, stemmer(self.terms.language))


def word_signals(found: Sequence[Candidate], asking: Asking) -> list[dict[str, float]]:
    """Return the signals of each candidate that need no vector of it.

    Coverages are shares of the question's idf, 0 to 1, that of a passage by all its candidates; `cosine_passage` is
    how far its passage's cosine is below the best one; `form` tells that it holds a form that is asked for, such as a
    date, `form_missing` that it lacks one; `steps_asked` marks whole numbered lists where steps are asked for,
    `list_asked` whole lists and tables where several things are asked for, and `one_asked` those where neither is;
    `named` marks the row of a table whose name the question says.
    """
    finder = asking.finder
    total = finder.weight(frozenset(term.lexeme for term in asking.terms.terms)) or 1.0
    forms = asking.kinds & FORMS
    wants_steps, wants_list = Asked.STEPS in asking.kinds, Asked.LIST in asking.kinds
    places = {place: finder.found(place) for place in {it.place for it in found}}
    best = max((it.passage.hit.signals.get("cosine", 0.0) for it in found), default=0.0)
    owns = [finder.found(it.text) for it in found]
    in_passage: dict[int, frozenset[str]] = defaultdict(frozenset)
    for it, own in zip(found, owns, strict=True):
        in_passage[it.passage.number] |= own | places[it.place]

    def signals(it: Candidate, own: frozenset[str]) -> dict[str, float]:
        held = [holds(kind, it.text, asking.language) for kind in forms]
        return {
            "coverage": finder.weight(own) / total,
            "coverage_place": finder.weight(places[it.place] - own) / total,
            "coverage_before": finder.weight(finder.found(it.before) - places[it.place] - own) / total,
            "coverage_passage": finder.weight(in_passage[it.passage.number]) / total,
            "rank": -math.log(it.passage.number),
            "cosine_passage": it.passage.hit.signals.get("cosine", best) - best,
            "form": float(any(held)),
            "form_missing": float(not all(held)),
            "length": math.log(len(it.text) / 100),
            "fragment": float(_is_fragment(it)),
            "steps_asked": float(it.is_group and wants_steps and UnitKind.STEP in it.kinds),
            "list_asked": float(it.is_group and wants_list),
            "one_asked": float(it.is_group and not wants_steps and not wants_list),
            "row": float(not it.kinds.isdisjoint({UnitKind.ROW, UnitKind.FIGURES})),
            "named": float(_is_named(it, asking, finder)),
        }

    return [signals(it, own) for it, own in zip(found, owns, strict=True)]


def _vector_signals(in_chunk: Mapping[range, float], run: range) -> dict[str, float]:
    """Return the signals of a run by the cosines of its chunk's runs: its own, how far it is over their mean, the best.

    All runs of a chunk share their place, so a cosine over the mean is what the run itself says about the question.
    """
    cosine = in_chunk[run]
    return {
        "cosine": cosine,
        "cosine_over_mean": cosine - fmean(in_chunk.values()),
        "cosine_best": max(in_chunk.values()),
    }


def _is_fragment(candidate: Candidate) -> bool:
    """Return whether it says nothing alone: an unfinished line, a few words, a lead-in without what it announces."""
    unit = candidate.quoted[-1]
    if unit.kind is not UnitKind.SENTENCE or any(map(str.isdigit, unit.text)):
        return False
    return not unit.is_finished or unit.text.endswith(":") or len(candidate.text.split()) < _MIN_WORDS


def _is_named(candidate: Candidate, asking: Asking, finder: TermFinder) -> bool:
    """Return whether it is one row of a table with a header, and the question says the row's name."""
    unit, *others = candidate.quoted
    if others or unit.kind is not UnitKind.ROW or not unit.header:
        return False
    return any(_says(asking, finder, name) for name in cells_of(unit.text)[:_NAME_CELLS])


def _says(asking: Asking, finder: TermFinder, name: str) -> bool:
    """Return whether the question has all words of a name, and its numbers if the question has any."""
    common, has_numbers = common_words(asking.language), any(map(str.isdigit, asking.said))
    words = [word for word in _WORD.findall(name.lower()) if word not in common and (has_numbers or not word.isdigit())]
    return any(len(word) >= _MIN_LETTERS for word in words) and all(finder.found(word) & asking.said for word in words)


@dataclass(frozen=True, slots=True)
class QuoteRanker:
    """Orders candidates: by words alone, and the best of these again with their cosines."""

    by_words: LogisticModel
    by_vectors: LogisticModel

    def best_first(self, found: Sequence[Candidate], asking: Asking) -> list[Scored]:
        """Return all candidates by their words, best first."""
        scored = (
            Scored(it, signals, self.by_words.log_odds(signals))
            for it, signals in zip(found, word_signals(found, asking), strict=True)
        )
        return sorted(scored, key=lambda it: -it.score)

    def again(self, ranked: Sequence[Scored], cosines: RunCosines) -> Sequence[Scored]:
        """Return the first of candidates that are ranked by words, ranked by words and vectors.

        They stay as they are where one of them has no vector.
        """
        scored = []
        for it in ranked[:MAX_COMPARED]:
            in_chunk = cosines.get(it.candidate.passage.hit.chunk_id, {})
            if it.candidate.run not in in_chunk:
                return ranked
            signals = {**it.signals, **_vector_signals(in_chunk, it.candidate.run)}
            scored.append(Scored(it.candidate, signals, self.by_vectors.log_odds(signals)))
        return sorted(scored, key=lambda it: -it.score)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return a stored ranker; raises KeyError for an incomplete one."""
        return cls(LogisticModel.from_json(data["by_words"]), LogisticModel.from_json(data["by_vectors"]))


@cache
def shipped() -> QuoteRanker:
    """Return the ranker that comes with CoreCube; `shipped.json` says what it was fitted on."""
    text = (files("retrieval.ranking.quotes") / "shipped.json").read_text(encoding="utf-8")
    return QuoteRanker.from_json(json.loads(text))
