"""Comparing the runs of a question set: two in detail, or up to five with a baseline, for admins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, Self
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from corecube.access import Principal
from corecube.http import HtmxHttpRequest
from explorer import wording
from explorer.charts.chart import ABSENT
from explorer.charts.scatter import scatter_chart
from explorer.components.run_label import label
from explorer.components.sides import Side
from explorer.pages.evaluation.judge import result_cells
from explorer.viewer import admin_page, viewer_of, whole_number
from retrieval.evaluation import comparing
from retrieval.evaluation import runs as services
from retrieval.evaluation.question_sets import SetResult
from retrieval.models import EvaluationRun
from retrieval.ranking.measures import MEASURED_DEPTH, OBJECTIVES, Objective
from retrieval.ranking.significance import Difference

_OTHER_CUTOFF: Final = 5  #: Of the measures at another rank, unless one is chosen.
_MOVED: Final = 0.001  #: Differences of a query from here on are listed.
_SHOWN_MEASURE: Final = "ndcg"
_LETTERS: Final = "ABCDE"
_LEVEL: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Line:
    """A measure in two runs."""

    name: str
    help: str
    first: str
    second: str
    difference: Difference | None


@dataclass(frozen=True, slots=True)
class _Links:
    """Links to the comparison of two runs on one query, with the access that it was measured with."""

    sides: tuple[str, ...]
    user: str  #: Whose access the runs were measured with; empty for the viewer's.
    users: Mapping[str, str]  #: By query, for cases with a user.

    @classmethod
    def of(cls, runs: Sequence[EvaluationRun], viewer: Principal) -> Self:
        """Return the links for runs, the baseline first."""
        baseline = runs[0]
        cases = baseline.question_set.cases.exclude(user=None).values_list("query", "user__username")
        user = "" if baseline.user == viewer.user else baseline.user.username
        return cls(tuple(Side(it.preset, measured=it).value for it in runs), user, dict(cases))

    def between(self, first: int, second: int, query: str) -> str:
        """Return the query string for two runs, by their places."""
        return self.of_query(query, a=self.sides[first], b=self.sides[second])

    def of_query(self, query: str, **more: str) -> str:
        """Return the query string for a search, with more parameters."""
        named = {"q": query, **more, "as": self.users.get(query, self.user)}
        return urlencode({name: value for name, value in named.items() if value})


@admin_page("GET")
def compare_runs(request: HtmxHttpRequest) -> HttpResponse:
    """Compare run `a` with one run `b` in detail, or as the baseline with up to four, on the queries of all."""
    viewer = Principal(viewer_of(request))
    baseline = _named(request.GET.get("a", ""), viewer)
    names = list(dict.fromkeys(request.GET.getlist("b")))
    if len(names) > 1:  # Ticking all runs means all others.
        names = [name for name in names if name != str(baseline.pk)]
    if not 1 <= len(names) <= comparing.MAX_OTHERS:
        messages.error(request, f"Select a baseline and 1 to {comparing.MAX_OTHERS} other runs to compare.")
        return redirect("explorer:question_set", slug=baseline.question_set.slug)
    runs = [baseline, *(_named(it, viewer) for it in names)]
    results = [services.result_of(it) for it in runs]
    links = _Links.of(runs, viewer)
    context = {
        "section": "judgments",
        "question_set": baseline.question_set,
        "runs": [_side(*it) for it in zip(_LETTERS, runs, results, strict=False)],
    }
    if len(names) > 1:
        return render(request, "explorer/evaluation/compare_several.html", context | _several(runs, results, links))
    return render(request, "explorer/evaluation/compare.html", context | _two(request, runs, results, links))


def _side(letter: str, run: EvaluationRun, result: SetResult) -> dict[str, Any]:
    return {"letter": letter, "run": run, "label": label(run), "result": result}


def _two(
    request: HtmxHttpRequest, runs: Sequence[EvaluationRun], results: Sequence[SetResult], links: "_Links"
) -> dict[str, Any]:
    first, second = results
    pairs = comparing.compared(first, second)
    found = comparing.differences(pairs)
    cutoff = _cutoff(request.GET.get("k", ""))
    swapped = QueryDict(mutable=True)
    swapped.update({"a": str(runs[1].pk), "b": str(runs[0].pk)})
    return {
        "queries": len(pairs),
        "lines": _lines(pairs, found),
        "cutoff": cutoff,
        "depth": MEASURED_DEPTH,
        "lines_at": [_line_at(pairs, Objective(name, cutoff)) for name in OBJECTIVES],
        "charts": [chart] if (chart := scatter_chart(_scattered(pairs), names=("A", "B"))) else [],
        "verdict": verdict(found.get(_SHOWN_MEASURE), found.get("judged")),
        "moved": [(links.between(0, 1, pair.first.query), pair, *values) for pair, *values in _moved(pairs)],
        "swapped": f"{reverse('explorer:compare_runs')}?{swapped.urlencode()}",
    }


def _several(runs: Sequence[EvaluationRun], results: Sequence[SetResult], links: "_Links") -> dict[str, Any]:
    rows = comparing.in_all(results)
    found = comparing.measured_in_all(rows)
    cells = result_cells(results[0])
    names = _LETTERS[1 : len(results)]
    labels = zip(names, map(label, runs[1:]), strict=True)
    return {
        "queries": len(rows),
        "verdicts": [(name, text, _verdict_of(found, place, name)) for place, (name, text) in enumerate(labels)],
        "measured": [
            (cell, it.means[0], list(zip(names, it.means[1:], it.differences, strict=True)))
            for cell in cells
            if (it := found.get(cell["code"]))
        ],
        "spreads": [
            (
                it,
                links.of_query(it.query),
                [(value, links.between(0, place, it.query)) for place, value in enumerate(it.values[1:], start=1)],
            )
            for it in comparing.spreads(rows, _SHOWN_MEASURE)
            if it.width >= _MOVED
        ],
    }


def _verdict_of(found: Mapping[str, comparing.Measured], place: int, name: str) -> str:
    ndcg, judged = (
        found[measure].differences[place] if measure in found else None for measure in (_SHOWN_MEASURE, "judged")
    )
    return verdict(ndcg, judged, ("A", name), is_corrected=True)


def _named(text: str, viewer: Principal) -> EvaluationRun:
    try:
        return services.run_for(UUID(text), viewer)
    except ValueError as error:
        raise Http404 from error


def _lines(pairs: Sequence[comparing.Compared], found: Mapping[str, Difference]) -> list[_Line]:
    first, second = (
        {cell["code"]: cell for cell in result_cells(SetResult("", tuple(getattr(it, side) for it in pairs)))}
        for side in ("first", "second")
    )
    return [
        _Line(before["name"], before["help"], before["value"], second[code]["value"], found.get(code))
        for code, before in first.items()
        if code in second
    ]


def _cutoff(text: str) -> int:
    return min(MEASURED_DEPTH, max(1, whole_number(text, _OTHER_CUTOFF, digits=3)))


def _line_at(pairs: Sequence[comparing.Compared], objective: Objective) -> _Line:
    """Return an objective in two runs, over the queries that have it in both."""
    both = comparing.objective_values(pairs, objective)
    first, second = (f"{fmean(it[place] for it in both):.3f}" if both else ABSENT for place in (0, 1))
    return _Line(objective.label, "", first, second, comparing.objective_difference(pairs, objective))


def _scattered(pairs: Sequence[comparing.Compared]) -> list[tuple[str, float, float]]:
    return [(it.first.query, *values) for it in pairs if (values := it.values(_SHOWN_MEASURE)) is not None]


def verdict(
    ndcg: Difference | None,
    judged: Difference | None,
    names: tuple[str, str] = ("A", "B"),
    *,
    is_corrected: bool = False,
) -> str:
    """Return the result in a sentence; there is no winner where chance explains it or other passages are judged.

    `is_corrected` tells that the p-value is corrected for several comparisons.
    """
    if ndcg is None:
        return "No query has judgments in both runs, so nothing can be compared."
    if not (ndcg.wins or ndcg.losses):
        return f"No difference in nDCG ({wording.counted(ndcg.queries, 'judged question')})."
    if not ndcg.is_clear:
        return (
            f"No winner: the 95 % interval of the difference in nDCG includes 0 ({ndcg.low:+.3f} to {ndcg.high:+.3f})."
        )
    if ndcg.p_value >= _LEVEL:
        why = " after the correction for several comparisons" if is_corrected else ": there are too few questions"
        return f"No winner: p = {ndcg.p_value:.3f}{why}."
    if judged is not None and judged.is_clear:
        return (
            "No winner: the runs show different shares of judged passages, and unjudged ones count as not relevant. "
            "Judge the top passages of both first."
        )
    better = names[ndcg.mean > 0]
    return (
        f"{better} is better: nDCG differs by {ndcg.mean:+.3f} (95 % interval {ndcg.low:+.3f} to {ndcg.high:+.3f}, "
        f"p = {ndcg.p_value:.3f})."
    )


def _moved(pairs: Sequence[comparing.Compared]) -> list[tuple[comparing.Compared, float, float, float]]:
    """Return the queries whose nDCG differs, the greatest losses first."""
    both = [(pair, values) for pair in pairs if (values := pair.values(_SHOWN_MEASURE)) is not None]
    moved = [(pair, before, after, after - before) for pair, (before, after) in both if abs(after - before) >= _MOVED]
    return sorted(moved, key=lambda it: it[3])
