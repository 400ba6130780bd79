"""Judging hits: the grades of each hit, and the measures of the ranking."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from retrieval.ranking.measures import CUTOFF, RECALL_CUTOFF, Measures, measure
from retrieval.records.judgments import GRADES, Graded, PassageId


@dataclass(frozen=True, slots=True)
class GradeButton:
    """The button of a grade."""

    grade: int
    meaning: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class JudgeStrip:
    """The grades of one hit."""

    rank: int
    #: The judged passage: the document, and the hash of the text.
    passage: str
    buttons: tuple[GradeButton, ...]
    is_judged: bool
    #: "2 by another user", "3, median of 4 other users", or empty.
    others: str


@dataclass(frozen=True, slots=True)
class MeasureCell:
    """A measure with its name."""

    name: str
    #: Three decimals; a dash without judgments.
    value: str
    help: str


@dataclass(frozen=True, slots=True)
class JudgePanel:
    """The measures of a ranking by the judgments of its query."""

    query: str
    trace_id: UUID
    #: By rank.
    strips: Mapping[int, JudgeStrip]
    measures: tuple[MeasureCell, ...]
    #: Judged passages of the query, and those judged by the viewer.
    judged: int
    own: int

    @property
    def spoken(self) -> str:
        """The measures, for a screen reader."""
        return ", ".join(f"{cell.name} {cell.value}" for cell in self.measures)


def judge_panel(
    ranking: Sequence[PassageId], grades: Mapping[PassageId, Graded], *, query: str, trace_id: UUID
) -> JudgePanel:
    """Return the grades and measures of a ranking, best passage first."""
    return JudgePanel(
        query=query,
        trace_id=trace_id,
        strips={rank: judge_strip(rank, passage, grades.get(passage)) for rank, passage in enumerate(ranking, start=1)},
        measures=measure_cells(measure(ranking, {passage: it.grade for passage, it in grades.items()})),
        judged=len(grades),
        own=sum(graded.own is not None for graded in grades.values()),
    )


def judge_strip(rank: int, passage: PassageId, graded: Graded | None) -> JudgeStrip:
    """Return the grades of one hit."""
    own, others = graded.own if graded else None, ""
    if graded and own is None:
        is_one = graded.others == 1
        others = f"{graded.grade}{' by another user' if is_one else f', median of {graded.others:,} other users'}"
    return JudgeStrip(
        rank=rank,
        passage=f"{passage.document_id}:{passage.content_hash}",
        buttons=tuple(GradeButton(grade, meaning, grade == own) for grade, meaning in GRADES.items()),
        is_judged=own is not None,
        others=others,
    )


def measure_cells(measures: Measures) -> tuple[MeasureCell, ...]:
    """Return the measures for display, rounded."""
    return tuple(
        MeasureCell(name, "\N{EN DASH}" if value is None else f"{value:.3f}", meaning)
        for name, value, meaning in _measures(measures)
    )


def _measures(measures: Measures) -> Iterable[tuple[str, float | None, str]]:
    yield (
        f"nDCG@{CUTOFF}",
        measures.ndcg,
        "Quality of the top ranks relative to the ideal order of the judged passages; gain 2^grade - 1.",
    )
    yield "MRR", measures.reciprocal_rank, "1 / the rank of the first passage with grade 2 or 3."
    yield (
        f"recall@{RECALL_CUTOFF}",
        measures.recall,
        f"Share of the passages with grade 2 or 3 in the top {RECALL_CUTOFF}.",
    )
    yield (
        f"judged@{CUTOFF}",
        measures.judged,
        f"Share of the top {CUTOFF} with a judgment. Compare other measures only where this is similar.",
    )
