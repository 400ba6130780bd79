"""The order of candidates for a quotation: two learned linear models, by words, then by words and vectors. Pure."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Self

from retrieval.engine.types import QueryTerms, RunCosines
from retrieval.engine.words import TermFinder, stemmer
from retrieval.ranking.answerability.logistic import LogisticModel
from retrieval.ranking.quotes.asked import FORMS, Asked, asked, holds
from retrieval.ranking.quotes.candidates import Candidate
from retrieval.text.units import UnitKind

MAX_COMPARED: Final = 24  #: The best by words, which are compared by vectors too.
WORD_SIGNALS: Final = (
    "coverage",
    "coverage_place",
    "coverage_before",
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
)
VECTOR_SIGNALS: Final = (*WORD_SIGNALS, "cosine")
_MIN_WORDS: Final = 4


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
    language: str
    kinds: frozenset[Asked]

    @classmethod
    def of(cls, question: str, terms: QueryTerms, language: str) -> Self:
        """Return it for a question and its terms, stemmed in a text search configuration's language."""
        return cls(terms, language, asked(question, language))

    @property
    def finder(self) -> TermFinder:
        """What finds its terms in a text."""
        return TermFinder(self.terms.terms, stemmer(self.language))


def word_signals(found: Sequence[Candidate], asking: Asking) -> list[dict[str, float]]:
    """Return the signals of each candidate that need no vector of it.

    Coverages are shares of the question's idf, 0 to 1; `cosine_passage` is how far its passage's cosine is below the
    best one; `form` tells that it holds a form that is asked for, such as a date, `form_missing` that it lacks one;
    `steps_asked` marks whole numbered lists where steps are asked for, `list_asked` whole lists and tables where
    several things are asked for, and `one_asked` those where neither is.
    """
    finder = asking.finder
    total = finder.weight(frozenset(term.lexeme for term in asking.terms.terms)) or 1.0
    forms = asking.kinds & FORMS
    wants_steps, wants_list = Asked.STEPS in asking.kinds, Asked.LIST in asking.kinds
    places = {place: finder.found(place) for place in {it.place for it in found}}
    best = max((it.passage.hit.signals.get("cosine", 0.0) for it in found), default=0.0)

    def signals(it: Candidate) -> dict[str, float]:
        own = finder.found(it.text)
        held = [holds(kind, it.text, asking.language) for kind in forms]
        return {
            "coverage": finder.weight(own) / total,
            "coverage_place": finder.weight(places[it.place] - own) / total,
            "coverage_before": finder.weight(finder.found(it.before) - places[it.place] - own) / total,
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
        }

    return [signals(it) for it in found]


def _is_fragment(candidate: Candidate) -> bool:
    """Return whether it says nothing alone: an unfinished line, a few words, a lead-in without what it announces."""
    unit = candidate.quoted[-1]
    if unit.kind is not UnitKind.SENTENCE or any(map(str.isdigit, unit.text)):
        return False
    return not unit.is_finished or unit.text.endswith(":") or len(candidate.text.split()) < _MIN_WORDS


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
            cosine = cosines.get(it.candidate.passage.hit.chunk_id, {}).get(it.candidate.run)
            if cosine is None:
                return ranked
            signals = {**it.signals, "cosine": cosine}
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
