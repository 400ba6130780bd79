"""How ranks change between two runs, or between presets: an axis for each, a line for each chunk."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, Final

from explorer.charts.chart import ABSENT, Chart, plain
from retrieval.engine.types import ChunkId
from retrieval.ranking.comparison import Direction, Move

#: Each chunk's rank, from 1, with every preset; None where a preset did not return it.
Places = Mapping[ChunkId, tuple[int | None, ...]]
_Dot = tuple[int, int]  #: An axis, from 0, and a rank on it.
_Line = tuple[str, Sequence[_Dot]]  #: A chunk's name, and the dots that its line connects.

#: In drawing order: moved chunks are drawn over unmoved ones.
_DIRECTIONS: Final = (
    (Direction.SAME, "same rank", "edge", "solid"),
    (Direction.UP, "up", "good", "solid"),
    (Direction.DOWN, "down", "bad", "dash"),
    (Direction.LEFT, "only in A", "faint", "solid"),
    (Direction.RIGHT, "only in B", "accent", "solid"),
)
_RUN_ROW: Final = 16  #: Pixels of a row, in the chart of runs and in that of presets, and around the rows.
_PRESET_ROW: Final = 20
_AROUND: Final = 96
_MIN_ROWS: Final = 8
_FEW_ROWS: Final = 12  #: Up to this many rows, each rank has a tick.
_HIDDEN: Final = "deleted or not visible to you"
_TWO: Final = 2


def rank_flow(moves: Sequence[Move[ChunkId]], titles: Mapping[ChunkId, str], *, left: str, right: str) -> Chart | None:
    """Return the rank changes from one run to the other; None if neither found anything.

    `titles` has those that the reader may see; `left` and `right` name the runs.
    """
    if not moves:
        return None
    lowest = max(rank for move in moves for rank in (move.left, move.right) if rank is not None)
    counts = {direction: sum(move.direction is direction for move in moves) for direction in Direction}
    return Chart(
        id="rank-flow",
        title="Rank changes",
        summary=(
            f"From A, {left}, to B, {right}: {counts[Direction.UP]} up, {counts[Direction.DOWN]} down,"
            f" {counts[Direction.SAME]} at the same rank, {counts[Direction.LEFT]} only in A,"
            f" {counts[Direction.RIGHT]} only in B."
        ),
        data=list(_move_traces(moves, titles)),
        layout=_layout(lowest, ("A", "B"), margin=0.08),
        headers=("Chunk", f"A: {left}", f"B: {right}", "Move"),
        rows=tuple(_row(move, titles) for move in moves),
        height=_AROUND + _RUN_ROW * max(lowest, _MIN_ROWS),
    )


def _move_traces(moves: Sequence[Move[ChunkId]], titles: Mapping[ChunkId, str]) -> Iterator[dict[str, Any]]:
    for direction, label, colour, dash in _DIRECTIONS:
        lines = [
            (titles.get(it.item, _HIDDEN), _dots((it.left, it.right))) for it in moves if it.direction is direction
        ]
        if lines:
            is_single = direction in {Direction.LEFT, Direction.RIGHT}
            mode = "markers" if is_single else "lines+markers"
            yield _trace(label, lines, mode=mode, colour=colour, dash=dash, is_open=is_single)


def _row(move: Move[ChunkId], titles: Mapping[ChunkId, str]) -> tuple[str, ...]:
    labels = {Direction.LEFT: "only in A", Direction.RIGHT: "only in B", Direction.SAME: "same"}
    change = labels.get(move.direction, f"{move.direction} {move.places}")
    return (titles.get(move.item, _HIDDEN), str(move.left or ABSENT), str(move.right or ABSENT), change)


def preset_flow(places: Places, names: Mapping[ChunkId, str], presets: Sequence[str]) -> Chart | None:
    """Return the chunks' ranks across presets; None for fewer than two presets, or if nothing was found."""
    if len(presets) < _TWO or not places:
        return None
    lowest = max(rank for ranks in places.values() for rank in ranks if rank is not None)
    return Chart(
        id="preset-flow",
        title="Rank changes",
        summary=_preset_summary(places, presets),
        data=list(_preset_traces(places, names, len(presets))),
        # The margin leaves room for the outer presets' names.
        layout=_layout(lowest, presets, margin=0.4),
        headers=("Chunk", *presets, "Presets"),
        rows=tuple(
            (names[chunk_id], *(str(rank or ABSENT) for rank in ranks), str(len(_dots(ranks))))
            for chunk_id, ranks in places.items()
        ),
        height=_AROUND + _PRESET_ROW * max(lowest, _MIN_ROWS),
    )


def _preset_summary(places: Places, presets: Sequence[str]) -> str:
    counts = [len(_dots(ranks)) for ranks in places.values()]
    in_all, in_one = counts.count(len(presets)), counts.count(1)
    between = f", {len(counts) - in_all - in_one} in some" if len(presets) > _TWO else ""
    return (
        f"{len(counts)} chunks: {in_all} in all {len(presets)} presets{between}, {in_one} in one only."
        " Dotted lines skip presets that did not return the chunk."
    )


def _preset_traces(places: Places, names: Mapping[ChunkId, str], presets: int) -> Iterator[dict[str, Any]]:
    """Yield the lines that skip presets, then the others by how many presets share the chunk, shared by all on top."""
    dots = {chunk_id: _dots(ranks) for chunk_id, ranks in places.items()}
    steps = {chunk_id: list(pairwise(it)) for chunk_id, it in dots.items()}
    skips = [(names[chunk_id], step) for chunk_id, it in steps.items() for step in it if _skips_axis(step)]
    if skips:
        yield _trace("Not returned", skips, mode="lines", colour="edge", dash="dot")
    groups = {
        ("One preset only", "faint"): [it for it, found in dots.items() if len(found) == 1],
        ("Some presets", "freshness"): [it for it, found in dots.items() if 1 < len(found) < presets],
        ("All presets", "accent"): [it for it, found in dots.items() if len(found) == presets],
    }
    for (label, colour), chunks in groups.items():
        lines: list[_Line] = [(names[it], step) for it in chunks for step in steps[it] if not _skips_axis(step)]
        lines += [(names[it], (dot,)) for it in chunks for dot in dots[it]]
        if lines:
            is_open = label == "One preset only"
            yield _trace(label, lines, mode="lines+markers", colour=colour, dash="solid", is_open=is_open)


def _dots(ranks: Sequence[int | None]) -> tuple[_Dot, ...]:
    return tuple((axis, rank) for axis, rank in enumerate(ranks) if rank is not None)


def _skips_axis(step: Sequence[_Dot]) -> bool:
    (before, _), (after, _) = step
    return after - before > 1


def _trace(
    label: str, lines: Sequence[_Line], *, mode: str, colour: str, dash: str, is_open: bool = False
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": mode,
        "name": label,
        "x": list(chain.from_iterable((*(axis for axis, _ in dots), None) for _, dots in lines)),
        "y": list(chain.from_iterable((*(rank for _, rank in dots), None) for _, dots in lines)),
        "text": list(chain.from_iterable([plain(name)] * (len(dots) + 1) for name, dots in lines)),
        "hovertemplate": "%{text}<br>rank %{y}<extra></extra>",
        "line": {"color": colour, "width": 1.5, "dash": dash},
        "marker": {"color": colour, "size": 7, "symbol": "circle-open" if is_open else "circle"},
        "connectgaps": False,
    }


def _layout(lowest: int, axes: Sequence[str], *, margin: float) -> dict[str, Any]:
    return {
        "xaxis": {
            "range": [-margin, len(axes) - 1 + margin],
            "tickvals": list(range(len(axes))),
            "ticktext": list(axes),
            "showgrid": True,
            "zeroline": False,
            "fixedrange": True,
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
