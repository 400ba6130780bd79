"""How ranks flow from one run to another: a line for each chunk between two axes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from explorer.charts.chart import Chart, plain
from retrieval.engine.types import ChunkId
from retrieval.ranking.comparison import Direction, Move

#: In the order that they are drawn: what moved stands over what did not.
_GROUPS: Final = (
    (Direction.SAME, "same rank", "edge", "solid"),
    (Direction.UP, "up", "good", "solid"),
    (Direction.DOWN, "down", "bad", "dash"),
    (Direction.LEFT, "only in A", "faint", "solid"),
    (Direction.RIGHT, "only in B", "accent", "solid"),
)
_ROW: Final = 16
_AROUND: Final = 96
_MIN_ROWS: Final = 8
#: Up to so many each rank has its figure.
_FEW_ROWS: Final = 12
_ABSENT: Final = "\N{EN DASH}"


def rank_flow(
    moves: Sequence[Move[ChunkId]], titles: Mapping[ChunkId, str], *, left: str, right: str, name: str = "rank-flow"
) -> Chart | None:
    """Return the chunks' way from one run to the other; None where neither found anything.

    `titles` has those that the reader may see; `left` and `right` name the runs.
    """
    if not moves:
        return None
    lowest = max(rank for move in moves for rank in (move.left, move.right) if rank is not None)
    return Chart(
        id=name,
        title="Rank changes",
        summary=_summary(moves, left, right),
        data=[trace for group in _GROUPS if (trace := _trace(moves, titles, *group))],
        layout=_layout(lowest),
        headers=("Chunk", f"A: {left}", f"B: {right}", "Move"),
        rows=tuple(_row(move, titles) for move in moves),
        height=_AROUND + _ROW * max(lowest, _MIN_ROWS),
    )


def _summary(moves: Sequence[Move[ChunkId]], left: str, right: str) -> str:
    counts = {direction: sum(move.direction is direction for move in moves) for direction in Direction}
    return (
        f"From A, {left}, to B, {right}: {counts[Direction.UP]} up, {counts[Direction.DOWN]} down,"
        f" {counts[Direction.SAME]} at the same rank, {counts[Direction.LEFT]} only in A,"
        f" {counts[Direction.RIGHT]} only in B."
    )


def _trace(
    moves: Sequence[Move[ChunkId]],
    titles: Mapping[ChunkId, str],
    direction: Direction,
    label: str,
    colour: str,
    dash: str,
) -> dict[str, Any] | None:
    """Return the lines of one direction as one trace, with a gap after each; None for no line."""
    x: list[int | None] = []
    y: list[int | None] = []
    text: list[str] = []
    for move in (move for move in moves if move.direction is direction):
        ends = [(place, rank) for place, rank in enumerate((move.left, move.right)) if rank is not None]
        x += [*(place for place, _ in ends), None]
        y += [*(rank for _, rank in ends), None]
        text += [plain(titles.get(move.item, _unseen()))] * (len(ends) + 1)
    if not x:
        return None
    is_single = direction in {Direction.LEFT, Direction.RIGHT}
    return {
        "type": "scatter",
        "mode": "markers" if is_single else "lines+markers",
        "name": label,
        "x": x,
        "y": y,
        "text": text,
        "hovertemplate": "%{text}<br>rank %{y}<extra></extra>",
        "line": {"color": colour, "width": 1.5, "dash": dash},
        "marker": {"color": colour, "size": 7, "symbol": "circle-open" if is_single else "circle"},
        "connectgaps": False,
    }


def _layout(lowest: int) -> dict[str, Any]:
    return {
        "xaxis": {
            "range": [-0.08, 1.08],
            "tickvals": [0, 1],
            "ticktext": ["A", "B"],
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


def _row(move: Move[ChunkId], titles: Mapping[ChunkId, str]) -> tuple[str, ...]:
    told = {Direction.LEFT: "only in A", Direction.RIGHT: "only in B", Direction.SAME: "same"}
    went = told.get(move.direction, f"{move.direction} {move.places}")
    return (titles.get(move.item, _unseen()), str(move.left or _ABSENT), str(move.right or _ABSENT), went)


def _unseen() -> str:
    return "deleted or not visible to you"
