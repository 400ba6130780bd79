"""Every preset on every collection: one table."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from corecube.errors import InvalidRequestError
from corecube.models import Connection
from retrieval.evaluate.corpus import evaluation_principal, ingested
from retrieval.evaluate.datasets import load_dataset
from retrieval.evaluate.raw_files import ingested_folder, known_items
from retrieval.evaluate.runner import Evaluation, JudgedCollection, measured
from retrieval.models import Sync
from retrieval.presets import PRESETS

#: Hits a question, as a reader gets them.
_DEPTH: Final = 10
_MIXED: Final = "raw files"
_MOST_KNOWN_ITEMS: Final = 200
_COLUMNS: Final = ("collection", "questions", "preset", "nDCG@10", "R@5", "p50 ms", "p95 ms", "tokens", "fell back")


@dataclass(frozen=True, slots=True)
class Collection:
    """Questions, and the connections that they are asked of."""

    questions: JudgedCollection
    connections: tuple[Connection, ...]


def collections(directory: Path, folders: Sequence[Path], *, progress: Callable[[Sync], None]) -> Iterator[Collection]:
    """Yield the judged collections below a directory in the order of their names, then the folders as one; ingested.

    Raises InvalidRequestError for a directory without any, and for what is wrong with one of them.
    """
    evaluation_principal()
    found = sorted(path.parent for path in directory.glob("*/qrels.tsv"))
    if not found:
        raise InvalidRequestError(f"{directory} has no folder in the BEIR layout.")
    for dataset in [load_dataset(path) for path in found]:
        yield Collection(dataset, (ingested(dataset, progress),))
    if folders:
        connections = tuple(ingested_folder(folder, progress) for folder in folders)
        yield Collection(known_items(connections, name=_MIXED, most=_MOST_KNOWN_ITEMS), connections)


def side_by_side(found: Collection) -> Iterator[Evaluation]:
    """Yield each preset's figures on a collection."""
    for preset in PRESETS:
        yield measured(found.questions, found.connections, preset=preset, depth=_DEPTH)


def table(evaluations: Sequence[Evaluation]) -> str:
    """Return the figures as a table in Markdown, without an empty cell."""
    lines = [_row(_COLUMNS), _row(["---"] * len(_COLUMNS))]
    return "\n".join([*lines, *(_row(_cells(it)) for it in evaluations)])


def _cells(it: Evaluation) -> tuple[str, ...]:
    total = it.latency_ms["total"]
    return (
        *(it.dataset, str(it.queries), f"`{it.preset}`"),
        *(f"{it.measures[name]:.3f}" for name in ("nDCG@10", "R@5")),
        *(f"{total[name]:.0f}" for name in ("p50", "p95")),
        *(f"{it.packed_tokens:.0f}", str(it.degraded)),
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
