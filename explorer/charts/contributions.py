"""The score breakdown: one bar per hit, with the contribution of each signal."""

from typing import Any, Final

from explorer import wording
from explorer.charts.chart import ABSENT, Chart, bar_axis, plain
from retrieval.engine.types import Hit
from retrieval.search.outcome import SearchOutcome

#: Colours of signals; others are neutral.
_HUES: Final = {name: name for name in ("dense", "fulltext", "freshness", "rerank")} | {
    "similarity": "dense",
    "salience": "fulltext",
    "recency": "freshness",
    "graph": "rerank",
    "rubric": "rerank",
    "confidence": "good",
}
_MAX_TITLE_LENGTH: Final = 28
_BAR: Final = 26  #: Pixels of one bar with its gap, and of the axis and the legend around them.
_AROUND: Final = 76


def contributions(outcome: SearchOutcome) -> Chart | None:
    """Return a bar per hit, best on top; None if no hit was blended.

    The parts of a bar sum to the hit's score. They are hatched for a leg that did not return the hit.
    """
    hits = [hit for hit in outcome.hits if hit.facts is not None and hit.contributions]
    if not hits:
        return None
    signals = tuple(dict.fromkeys(signal for hit in hits for signal in hit.contributions))
    legs = frozenset(outcome.state.rankings)
    return Chart(
        id="contributions",
        title="Score breakdown",
        summary="Contributions of the signals; they sum to the score. Hatched: the leg did not return the hit.",
        data=[_trace(signal, hits, legs) for signal in signals],
        layout=_layout(hits),
        headers=("Hit", *(wording.signal_label(signal) for signal in signals), "Score"),
        rows=tuple(
            (name(rank, hit), *(_cell(hit, signal, legs) for signal in signals), f"{hit.score:.3f}")
            for rank, hit in enumerate(hits, start=1)
        ),
        height=_AROUND + _BAR * len(hits),
    )


def name(rank: int, hit: Hit) -> str:
    """Return a hit's rank and title, cut to fit an axis."""
    title = hit.chunk.title
    return f"{rank}  {title if len(title) <= _MAX_TITLE_LENGTH else f'{title[: _MAX_TITLE_LENGTH - 1].rstrip()}…'}"


def hue(signal: str) -> str:
    """Return the colour token of a signal."""
    return _HUES.get(signal, "edge")


def _trace(signal: str, hits: list[Hit], legs: frozenset[str]) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": wording.signal_label(signal),
        "x": [hit.contributions.get(signal) for hit in hits],
        "y": list(range(1, len(hits) + 1)),
        "customdata": [
            [plain(hit.chunk.title), "not returned by the leg" if _is_absent(hit, signal, legs) else ""] for hit in hits
        ],
        "hovertemplate": "%{customdata[0]}<br>%{fullData.name} %{x:+.3f} %{customdata[1]}<extra></extra>",
        "marker": {
            "color": hue(signal),
            "line": {"color": hue(signal), "width": 1},
            "pattern": {
                "shape": ["/" if _is_absent(hit, signal, legs) else "" for hit in hits],
                "fillmode": "replace",
                "size": 5,
                "solidity": 0.3,
            },
        },
    }


def _layout(hits: list[Hit]) -> dict[str, Any]:
    return {
        "barmode": "relative",
        "margin": {"t": 34},
        "bargap": 0.35,
        "xaxis": {"zeroline": True, "title": {"text": "score"}},
        "yaxis": bar_axis([plain(name(rank, hit)) for rank, hit in enumerate(hits, start=1)]),
    }


def _cell(hit: Hit, signal: str, legs: frozenset[str]) -> str:
    if signal not in hit.contributions:
        return ABSENT
    return f"{hit.contributions[signal]:.3f}{' (not returned)' if _is_absent(hit, signal, legs) else ''}"


def _is_absent(hit: Hit, signal: str, legs: frozenset[str]) -> bool:
    return signal in legs and signal not in hit.ranks
