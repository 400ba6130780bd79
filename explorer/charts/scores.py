"""Score distributions: each leg's ranking and the final order, with their cut-offs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from explorer import wording
from explorer.charts.chart import Chart
from explorer.charts.contributions import hue
from retrieval.engine.state import DropReason
from retrieval.engine.types import ChunkId, Hit
from retrieval.search.outcome import SearchOutcome

_HEIGHT: Final = 220
_LEG_TITLES: Final = {"dense": "Cosine similarity of the vector leg", "fulltext": "Scores of the full-text leg"}
#: A floor this many score ranges below the scores is not drawn, since it would flatten them; the summary names it.
_FAR: Final = 3.0


@dataclass(frozen=True, slots=True)
class _Cut:
    """A cut-off: a minimum score, or a maximum rank."""

    text: str
    score: float | None = None
    rank: float | None = None


def score_charts(outcome: SearchOutcome) -> tuple[Chart, ...]:
    """Return one chart per leg and one of the final order; rankings without hits have none.

    Empty before the second access check. Hits that the check dropped are in no chart.
    """
    return tuple(_charts(outcome)) if outcome.state.access_checked else ()


def _charts(outcome: SearchOutcome) -> Iterator[Chart]:
    shown = {hit.chunk_id for hit in outcome.hits}
    hidden = {drop.chunk_id for drop in outcome.state.drops if drop.reason is DropReason.ACCESS}
    for leg, ranking in outcome.state.rankings.items():
        if hits := [hit for hit in ranking if hit.chunk_id not in hidden]:
            title = _LEG_TITLES.get(leg) or f"Scores of the {wording.leg_label(leg)} leg"
            depth, last = getattr(getattr(outcome.config, leg, None), "depth", None), hits[-1].score
            is_full = depth is not None and len(hits) >= depth
            cuts = (_Cut(f"cut-off at {depth} hits: {last:.3f}", score=last),) if is_full else ()
            yield _chart(leg, title, hits, shown, cuts)
    if hits := list(outcome.state.hits):
        yield _chart("final", "Final scores", hits, shown, _final_cuts(hits, outcome))


def _final_cuts(hits: Sequence[Hit], outcome: SearchOutcome) -> tuple[_Cut, ...]:
    top_k = outcome.state.top_k
    minimum = outcome.config.min_score(hits[-1].score_type)
    # A minimum of -inf drops nothing.
    floor = (_Cut(f"floor {minimum:g}", score=minimum),) if isfinite(minimum) else ()
    return (*floor, _Cut(f"top {top_k}", rank=top_k + 0.5)) if len(hits) > top_k else floor


def _chart(name: str, title: str, hits: Sequence[Hit], shown: set[ChunkId], cuts: tuple[_Cut, ...]) -> Chart:
    scores = [hit.score for hit in hits]
    lowest = min(scores) - _FAR * max(max(scores) - min(scores), 0.1)
    near = [cut for cut in cuts if cut.score is None or cut.score >= lowest]
    return Chart(
        id=f"scores-{name}",
        title=title,
        summary=_summary(
            scores, sum(hit.chunk_id in shown for hit in hits), [*near, *(it for it in cuts if it not in near)]
        ),
        data=[_ranking(scores, hue(name)), _shown(hits, shown, hue(name))],
        layout=_layout(near, scores),
        headers=("Rank", "Score", "Shown"),
        rows=tuple(
            (str(rank), f"{hit.score:.4f}", "yes" if hit.chunk_id in shown else "no")
            for rank, hit in enumerate(hits, start=1)
        ),
        height=_HEIGHT,
    )


def _summary(scores: Sequence[float], shown: int, cuts: Sequence[_Cut]) -> str:
    span = f"{wording.counted(len(scores), 'hit')} from {scores[0]:.3f} to {scores[-1]:.3f}, {shown} of them shown"
    return "; ".join((span, *(cut.text for cut in cuts))) + "."


def _ranking(scores: Sequence[float], colour: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "score",
        "x": list(range(1, len(scores) + 1)),
        "y": list(scores),
        "line": {"color": colour, "width": 1.5, "shape": "hv"},
        "hovertemplate": "rank %{x}: %{y:.3f}<extra></extra>",
        "showlegend": False,
    }


def _shown(hits: Sequence[Hit], shown: set[ChunkId], colour: str) -> dict[str, Any]:
    points = [(rank, hit.score) for rank, hit in enumerate(hits, start=1) if hit.chunk_id in shown]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "in the hits",
        "x": [rank for rank, _ in points],
        "y": [score for _, score in points],
        "marker": {"color": colour, "size": 6, "line": {"color": "panel", "width": 1}},
        "hovertemplate": "rank %{x}: %{y:.3f}, in the hits<extra></extra>",
        "showlegend": False,
    }


def _layout(cuts: Sequence[_Cut], scores: Sequence[float]) -> dict[str, Any]:
    levels = [*scores, *(cut.score for cut in cuts if cut.score is not None)]
    room = 0.08 * max(max(levels) - min(levels), 0.02)
    return {
        "margin": {"t": 18},
        "xaxis": {"title": {"text": "rank"}, "range": [0.4, len(scores) + 0.8], "zeroline": False},
        "yaxis": {"range": [min(levels) - room, max(levels) + room], "zeroline": False, "nticks": 6},
        "shapes": [shape for shape, _ in map(_drawn, cuts)],
        "annotations": [words for _, words in map(_drawn, cuts)],
    }


def _drawn(cut: _Cut) -> tuple[dict[str, Any], dict[str, Any]]:
    shape: dict[str, Any] = {"type": "line", "line": {"color": "bad", "width": 1, "dash": "dot"}}
    words = {"text": cut.text, "showarrow": False, "font": {"size": 10, "color": "soft"}, "yanchor": "bottom"}
    if cut.score is not None:
        shape |= {"xref": "paper", "x0": 0, "x1": 1, "y0": cut.score, "y1": cut.score}
        # Scores fall from left to right, so there is room at the left.
        return shape, words | {"xref": "paper", "x": 0, "xanchor": "left", "y": cut.score}
    shape |= {"yref": "paper", "y0": 0, "y1": 1, "x0": cut.rank, "x1": cut.rank}
    return shape, words | {"yref": "paper", "y": 1, "x": cut.rank, "xanchor": "center"}
