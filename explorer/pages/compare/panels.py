"""Two runs side by side: overlap, rank changes, and run details."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from explorer import wording
from explorer.charts.chart import Chart
from explorer.charts.rank_flow import rank_flow
from explorer.components.badges import Badge
from explorer.components.choices import Choice, ChoiceGroup
from explorer.components.drops import chunk_name
from explorer.components.lane_cards import LanesPanel
from explorer.components.lanes import Facts, Source, lanes_panel
from explorer.components.modes import modes_of
from explorer.components.preset_numbers import ChangeRow, change_rows
from explorer.components.sides import Run, Side
from retrieval.engine.types import ChunkId
from retrieval.presets.preset import Preset
from retrieval.ranking.comparison import Comparison, Direction, compare

LEFT: Final = "a"
RIGHT: Final = "b"


@dataclass(frozen=True, slots=True)
class FactRow:
    """One fact of both runs."""

    label: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        """Whether the two differ."""
        return self.left != self.right


@dataclass(frozen=True, slots=True)
class ComparePanel:
    """Two runs side by side."""

    left: Run
    right: Run
    jaccard: float
    rbo: float
    up: int
    down: int
    same: int
    only_left: int
    only_right: int
    #: Hits on each side that were deleted or that the reader may not see.
    unseen: tuple[int, int]
    facts: tuple[FactRow, ...]
    notes: tuple[tuple[str, Badge], ...]
    #: Changed settings; None if those of a side are unknown.
    changes: tuple[ChangeRow, ...] | None
    lanes: LanesPanel
    chart: Chart | None
    #: Whether the two ran different queries.
    is_skewed: bool

    @property
    def announcement(self) -> str:
        """What a screen reader announces when the comparison arrives."""
        return (
            f"{self.up} up, {self.down} down, {self.same} at the same rank, {self.only_left} only in A,"
            f" {self.only_right} only in B."
        )


def compare_panel(left: Run, right: Run, facts: Facts) -> ComparePanel:
    """Return two runs side by side; `facts` has the chunks that the reader may see."""
    found = compare(*([hit.chunk_id for hit in run.hits] for run in (left, right)))
    shown = _shown(right)
    sources = (Source(LEFT, "A", left.hits), Source(RIGHT, "B", right.hits, is_result=True))
    return ComparePanel(
        left=left,
        right=right,
        jaccard=found.jaccard,
        rbo=found.rbo,
        up=found.count(Direction.UP),
        down=found.count(Direction.DOWN),
        same=found.count(Direction.SAME),
        only_left=found.count(Direction.LEFT),
        only_right=found.count(Direction.RIGHT),
        unseen=(_unseen(left, facts), _unseen(right, facts)),
        facts=tuple(FactRow(label, value, shown[label]) for label, value in _shown(left).items()),
        notes=tuple((name, badge) for name, run in (("A", left), ("B", right)) for badge in run.notes),
        changes=change_rows(left.config, right.config) if left.config and right.config else None,
        lanes=lanes_panel(sources, facts),
        chart=_chart(found, facts, left, right),
        is_skewed=bool(left.query and right.query and left.query != right.query),
    )


def _unseen(run: Run, facts: Facts) -> int:
    return sum(hit.chunk_id not in facts.read for hit in run.hits)


def _chart(found: Comparison[ChunkId], facts: Facts, left: Run, right: Run) -> Chart | None:
    titles = {chunk_id: chunk_name(hit.chunk.title, hit.chunk.heading_path) for chunk_id, hit in facts.read.items()}
    return rank_flow(found.moves, titles, left=left.side.label, right=right.side.label)


def _shown(run: Run) -> Mapping[str, str]:
    return {
        "Preset": run.side.preset,
        "Version": run.version,
        "Mode": wording.mode_label(run.mode),
        "Fingerprint": run.fingerprint,
        "Connections": str(run.connections),
        "Hits": str(len(run.hits)),
        "Time": f"{run.time} ms" + (" (query vector cached)" if run.had_vector else ""),
        "Confidence": "none" if run.confidence is None else f"{run.confidence:.2f}",
    }


def side_choices(
    presets: Sequence[Preset], *, drafts: frozenset[str], chosen: Sequence[Side]
) -> tuple[ChoiceGroup, ...]:
    """Return the options of a side: each preset in each mode, live and, if it is in `drafts`, as its draft."""
    groups = [ChoiceGroup(preset.name, tuple(_choices(preset.name, drafts))) for preset in presets]
    known = {choice.value for group in groups for choice in group.choices}
    others = {side.value: side.label for side in chosen if side.value not in known}
    if others:
        groups.append(ChoiceGroup("From the URL", tuple(Choice(*other) for other in others.items())))
    return tuple(groups)


def _choices(preset: str, drafts: frozenset[str]) -> Iterator[Choice]:
    for draft in (False, True) if preset in drafts else (False,):
        for mode in modes_of(preset):
            side = Side(preset, draft, mode)
            yield Choice(side.value, side.label)
