"""Compare all presets on all collections in one table."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

from corecube.errors import InvalidRequestError
from corecube.models import Connection
from retrieval.evaluation.corpus import evaluation_principal, ingested
from retrieval.evaluation.datasets import Dataset, load_dataset
from retrieval.evaluation.raw_files import ingested_folder, known_items
from retrieval.evaluation.runner import Evaluation, JudgedCollection, measured
from retrieval.models import Sync
from retrieval.presets.catalog import PRESETS

_DEPTH: Final = 10
_MIXED: Final = "raw files"
_MAX_KNOWN_ITEMS: Final = 200
#: Limits the duration; the mean of 1,000 questions is within 0.02 of the mean of all.
_MAX_QUESTIONS: Final = 1000
_SEED: Final = 7
_MEASURES: Final = ("nDCG@10", "R@5")
_COLUMNS: Final = (
    *("collection", "questions", "preset", "ordered by"),
    *_MEASURES,
    *("p50 ms", "p95 ms", "tokens", "fell back"),
)


@dataclass(frozen=True, slots=True)
class Collection:
    """Questions, and the connections to search."""

    questions: JudgedCollection
    connections: tuple[Connection, ...]


def collections(
    directory: Path, folders: Sequence[Path], *, progress: Callable[[Sync], None]
) -> tuple[Collection, ...]:
    """Return the judged collections below a directory by name, then the folders as one collection; all are ingested.

    Raises InvalidRequestError for a directory without collections, for an invalid one, and for folders without unique
    headings.
    """
    evaluation_principal()
    found = sorted(path.parent for path in directory.glob("*/qrels.tsv"))
    if not found:
        raise InvalidRequestError(f"{directory} has no folder in the BEIR layout.")
    datasets = [load_dataset(path) for path in found]
    mixed = []
    if folders:
        connections = tuple(ingested_folder(folder, progress) for folder in folders)
        mixed = [Collection(known_items(connections, name=_MIXED, limit=_MAX_KNOWN_ITEMS), connections)]
    return (*(Collection(_sampled(dataset), (ingested(dataset, progress),)) for dataset in datasets), *mixed)


def _sampled(dataset: Dataset) -> Dataset:
    if len(dataset.queries) <= _MAX_QUESTIONS:
        return dataset
    queries = tuple(Random(_SEED).sample(dataset.queries, _MAX_QUESTIONS))  # noqa: S311 -- a sample, no secret
    return replace(dataset, queries=queries, qrels={query.id: dataset.qrels[query.id] for query in queries})


def side_by_side(found: Sequence[Collection], *, is_judged: bool) -> Iterator[Evaluation]:
    """Yield each preset's figures on each collection; see `measured` for `is_judged`."""
    for it in found:
        for preset in PRESETS:
            yield measured(it.questions, it.connections, preset=preset, depth=_DEPTH, is_judged=is_judged)


def table_head() -> str:
    """Return the first two lines of a table in Markdown."""
    return f"{_row(_COLUMNS)}\n{_row(['---'] * len(_COLUMNS))}"


def table_row(evaluation: Evaluation) -> str:
    """Return the figures as a row of the table, without empty cells."""
    total = evaluation.latency_ms["total"]
    # With counts only if searches differ.
    orderings = ", ".join(f"{name} {searches}" for name, searches in evaluation.ordered_by.items())
    if len(evaluation.ordered_by) <= 1:
        orderings = next(iter(evaluation.ordered_by), "nothing found")
    return _row(
        (
            *(evaluation.dataset, str(evaluation.queries), f"`{evaluation.preset}`", orderings),
            *(f"{evaluation.measures[name]:.3f}" for name in _MEASURES),
            *(f"{total[name]:.0f}" for name in ("p50", "p95")),
            *(f"{evaluation.packed_tokens:.0f}", str(evaluation.degraded)),
        )
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
