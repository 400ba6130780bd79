"""Measures of one ranking against judgments of its passages. Free of Django; nothing is rounded.

Grades: 0 not relevant, 1 related, 2 answers in part, 3 answers. Where a measure knows only yes and no, a passage counts
as relevant from grade 2 on: a related passage does not answer the question.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from math import log2
from statistics import fmean
from typing import Any, ClassVar, Final, Protocol, TypeVar


class _IsDataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


_Passage = TypeVar("_Passage", bound=Hashable)
_Values = TypeVar("_Values", bound=_IsDataclass)

CUTOFF: Final = 10  #: Where nDCG and the share of judged passages are cut, and recall.
RECALL_CUTOFF: Final = 20
MEASURED_DEPTH: Final = 20  #: Maximum rank that is read.
RELEVANT: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What judgments say of a ranking, each 0 to 1. None where there is nothing to measure against."""

    ndcg: float | None = None  #: None while no passage is judged above 0.
    reciprocal_rank: float | None = None  #: None while no passage is judged relevant; so is the recall.
    recall: float | None = None
    judged: float | None = None  #: None of an empty ranking.


def measure(ranking: Iterable[_Passage], grades: Mapping[_Passage, int]) -> Measures:
    """Return the measures of a ranking, best passage first, read down to rank 20.

    `grades` are all judgments of the query, also of passages that are not in the ranking. A passage that occurs in
    the ranking twice counts at its first rank.
    """
    ranked = list(dict.fromkeys(ranking))[:MEASURED_DEPTH]
    return Measures(
        ndcg=ndcg(ranked, grades),
        reciprocal_rank=reciprocal_rank(ranked, grades),
        recall=recall(ranked, grades),
        judged=judged(ranked, grades),
    )


def ndcg(
    ranking: Sequence[_Passage],
    grades: Mapping[_Passage, int],
    *,
    cutoff: int = CUTOFF,
    gain: Callable[[int], float] = lambda grade: 2.0**grade - 1.0,
) -> float | None:
    """Return DCG@cutoff over the ideal ranking's; what is not judged gains nothing.

    By default a passage gains 2^grade - 1 (Burges et al., ICML 2005). The ideal is made of all judged passages and is
    cut at the same rank. None while none is judged above 0.
    """
    ideal = _dcg(map(gain, sorted(grades.values(), reverse=True)[:cutoff]))
    return _dcg(gain(grades.get(passage, 0)) for passage in ranking[:cutoff]) / ideal if ideal else None


def reciprocal_rank(
    ranking: Sequence[_Passage], grades: Mapping[_Passage, int], *, min_grade: int = RELEVANT
) -> float | None:
    """Return 1 / the rank of the first relevant passage, 0 where the ranking has none; None while none is judged so."""
    if not _relevant(grades, min_grade):
        return None
    ranks = (rank for rank, passage in enumerate(ranking, start=1) if grades.get(passage, 0) >= min_grade)
    return 1 / first if (first := next(ranks, 0)) else 0.0


def recall(
    ranking: Sequence[_Passage],
    grades: Mapping[_Passage, int],
    *,
    cutoff: int = RECALL_CUTOFF,
    min_grade: int = RELEVANT,
) -> float | None:
    """Return the share of the relevant passages that are in the first `cutoff`; None while none is judged so."""
    relevant = _relevant(grades, min_grade)
    return len(relevant.intersection(ranking[:cutoff])) / len(relevant) if relevant else None


def precision(
    ranking: Sequence[_Passage], grades: Mapping[_Passage, int], *, cutoff: int, min_grade: int = RELEVANT
) -> float | None:
    """Return the share of relevant passages in the first `cutoff` ranks; None while none is judged so."""
    relevant = _relevant(grades, min_grade)
    return len(relevant.intersection(ranking[:cutoff])) / cutoff if relevant else None


def average_precision(
    ranking: Sequence[_Passage], grades: Mapping[_Passage, int], *, cutoff: int, min_grade: int = RELEVANT
) -> float | None:
    """Return the mean over the relevant passages of the precision at each one's rank; None while none is judged so.

    A relevant passage that is not in the first `cutoff` counts as 0.
    """
    relevant = _relevant(grades, min_grade)
    ranks = (rank for rank, passage in enumerate(ranking[:cutoff], start=1) if passage in relevant)
    precisions = (found / rank for found, rank in enumerate(ranks, start=1))
    return sum(precisions) / len(relevant) if relevant else None


def judged(ranking: Sequence[_Passage], grades: Mapping[_Passage, int], *, cutoff: int = CUTOFF) -> float | None:
    """Return the share of the first `cutoff` passages that anybody judged; None of an empty ranking."""
    first = ranking[:cutoff]
    return sum(passage in grades for passage in first) / len(first) if first else None


@dataclass(frozen=True, slots=True)
class Objective:
    """A measure at a cutoff, 1 to `MEASURED_DEPTH`: what configurations are compared by."""

    measure: str = "ndcg"  #: One of `OBJECTIVES`.
    cutoff: int = CUTOFF

    @property
    def label(self) -> str:
        """Its usual name, such as "nDCG@10"."""
        return f"{OBJECTIVES[self.measure]}@{self.cutoff}"

    def value(self, ranking: Sequence[_Passage], grades: Mapping[_Passage, int]) -> float | None:
        """Return the measure of a ranking, best passage first; None where nothing is judged relevant."""
        if self.measure == "reciprocal_rank":
            return reciprocal_rank(ranking[: self.cutoff], grades)
        if self.measure == "ndcg":
            return ndcg(ranking, grades, cutoff=self.cutoff)
        formula = {"recall": recall, "precision": precision, "average_precision": average_precision}[self.measure]
        return formula(ranking, grades, cutoff=self.cutoff)


#: What can be an objective, with its label.
OBJECTIVES: Final[Mapping[str, str]] = {
    "ndcg": "nDCG",
    "reciprocal_rank": "MRR",
    "recall": "recall",
    "precision": "precision",
    "average_precision": "MAP",
}


def mean(measured: Sequence[_Values], kind: type[_Values]) -> _Values:
    """Return the mean of each measure over the queries that have it; `kind` is a dataclass of measures."""
    each = {it.name: [getattr(one, it.name) for one in measured] for it in fields(kind)}
    known = {name: [value for value in values if value is not None] for name, values in each.items()}
    return kind(**{name: fmean(values) if values else None for name, values in known.items()})


def collection_measures(qrels: Mapping[str, Mapping[str, int]], run: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Return each measure's mean over the judged queries, by its usual name; every grade above 0 is relevant.

    A query without an answer or without a relevant document counts as 0; one without judgments does not count. The
    figures are those of trec_eval.
    """
    judged_queries = {query: grades for query, grades in qrels.items() if grades}
    return {
        name: fmean([formula(run.get(query, ()), grades) or 0.0 for query, grades in judged_queries.items()])
        for name, formula in _COLLECTION_MEASURES.items()
    }


def _dcg(gains: Iterable[float]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _relevant(grades: Mapping[_Passage, int], min_grade: int) -> set[_Passage]:
    return {passage for passage, grade in grades.items() if grade >= min_grade}


_COLLECTION_MEASURES: Final[Mapping[str, Callable[[Sequence[str], Mapping[str, int]], float | None]]] = {
    # The gain is the grade itself: Järvelin and Kekäläinen, TOIS 2002; trec_eval's choice.
    "nDCG@10": partial(ndcg, cutoff=10, gain=float),
    **{f"R@{cutoff}": partial(recall, cutoff=cutoff, min_grade=1) for cutoff in (2, 5, 10, 100)},
    "RR@10": lambda ranking, grades: reciprocal_rank(ranking[:10], grades, min_grade=1),
    "AP@100": partial(average_precision, cutoff=100, min_grade=1),
    "Judged@10": partial(judged, cutoff=10),
}
