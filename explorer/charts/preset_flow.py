"""How ranks flow through several presets: an axis a preset, a line a chunk."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from explorer.charts.chart import Chart, plain
from retrieval.engine.types import ChunkId

#: Each chunk's place, from 1, with every preset; None where a preset did not return it.
Places = Mapping[ChunkId, tuple[int | None, ...]]

_ROW: Final = 20
_AROUND: Final = 96
_MIN_ROWS: Final = 8
#: Up to so many each rank has its figure.
_FEW_ROWS: Final = 12
_ABSENT: Final = "\N{EN DASH}"
_TWO: Final = 2


def preset_flow(places: Places, names: Mapping[ChunkId, str], presets: Sequence[str]) -> Chart | None:
    """Return the chunks' way through the presets; None where there are not two of them, or nothing was found."""
    if len(presets) < _TWO or not places:
        return None
    lowest = max(rank for ranks in places.values() for rank in ranks if rank is not None)
    return Chart(
        id="preset-flow",
        title="Rank changes",
        summary=_summary(places, presets),
        data=list(_traces(places, names, len(presets))),
        layout=_layout(lowest, presets),
        headers=("Chunk", *presets, "Presets"),
        rows=tuple(
            (names[chunk_id], *(str(rank or _ABSENT) for rank in ranks), str(_found(ranks)))
            for chunk_id, ranks in places.items()
        ),
        height=_AROUND + _ROW * max(lowest, _MIN_ROWS),
    )


def _found(ranks: Sequence[int | None]) -> int:
    return sum(rank is not None for rank in ranks)


def _summary(places: Places, presets: Sequence[str]) -> str:
    counts = [_found(ranks) for ranks in places.values()]
    in_all, in_one = counts.count(len(presets)), counts.count(1)
    rest = len(counts) - in_all - in_one
    between = f", {rest} in some" if len(presets) > _TWO else ""
    return (
        f"{len(counts)} chunks: {in_all} in all {len(presets)} presets{between}, {in_one} in one only."
        " Dotted lines skip presets that did not return the chunk."
    )


def _traces(places: Places, names: Mapping[ChunkId, str], presets: int) -> Iterator[dict[str, Any]]:
    """Yield what passes presets by, then the lines by how many presets share the chunk; what all share lies on top."""
    groups = {
        "One preset only": [it for it in places if _found(places[it]) == 1],
        "Some presets": [it for it in places if 1 < _found(places[it]) < presets],
        "All presets": [it for it in places if _found(places[it]) == presets],
    }
    past = [(chunk_id, pair) for chunk_id, ranks in places.items() for pair in _steps(ranks) if _is_past(pair)]
    if past:
        yield _trace("Not returned", past, names, mode="lines", colour="edge", dash="dot")
    for (label, chunks), colour in zip(groups.items(), ("faint", "freshness", "accent"), strict=True):
        lines = [(chunk_id, pair) for chunk_id in chunks for pair in _steps(places[chunk_id]) if not _is_past(pair)]
        dots = [(chunk_id, (dot,)) for chunk_id in chunks for dot in _dots(places[chunk_id])]
        if dots:
            yield _trace(label, [*lines, *dots], names, mode="lines+markers", colour=colour, dash="solid")


def _dots(ranks: Sequence[int | None]) -> tuple[tuple[int, int], ...]:
    return tuple((axis, rank) for axis, rank in enumerate(ranks) if rank is not None)


def _steps(ranks: Sequence[int | None]) -> Iterator[tuple[tuple[int, int], ...]]:
    return pairwise(_dots(ranks))


def _is_past(pair: Sequence[tuple[int, int]]) -> bool:
    (before, _), (after, _) = pair
    return after - before > 1


def _trace(
    label: str,
    lines: Sequence[tuple[ChunkId, Sequence[tuple[int, int]]]],
    names: Mapping[ChunkId, str],
    *,
    mode: str,
    colour: str,
    dash: str,
) -> dict[str, Any]:
    """Return lines as one trace, with a gap after each."""
    x: list[int | None] = []
    y: list[int | None] = []
    text: list[str] = []
    for chunk_id, dots in lines:
        x += [*(axis for axis, _ in dots), None]
        y += [*(rank for _, rank in dots), None]
        text += [plain(names[chunk_id])] * (len(dots) + 1)
    return {
        "type": "scatter",
        "mode": mode,
        "name": label,
        "x": x,
        "y": y,
        "text": text,
        "hovertemplate": "%{text}<br>rank %{y}<extra></extra>",
        "line": {"color": colour, "width": 1.5, "dash": dash},
        "marker": {"color": colour, "size": 7, "symbol": "circle-open" if label == "One preset only" else "circle"},
        "connectgaps": False,
    }


def _layout(lowest: int, presets: Sequence[str]) -> dict[str, Any]:
    return {
        "xaxis": {
            # Room for the outer presets' names, of which nothing is drawn where it does not fit.
            "range": [-0.4, len(presets) - 0.6],
            "tickvals": list(range(len(presets))),
            "ticktext": list(presets),
            "showgrid": True,
            "zeroline": False,
        },
        "yaxis": {
            "range": [lowest + 0.6, 0.4],
            "tickvals": [rank for rank in range(1, lowest + 1) if rank == 1 or rank % 5 == 0 or lowest <= _FEW_ROWS],
            "title": {"text": "rank"},
            "showgrid": False,
            "zeroline": False,
        },
        "showlegend": True,
    }
