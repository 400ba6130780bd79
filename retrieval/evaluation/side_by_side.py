"""Compare all presets on all collections in one table: judged ones, and folders of files for known-item search.

The files have no judgments, but a heading that occurs in only one document identifies it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

from corecube.errors import InvalidRequestError
from corecube.models import Connection
from retrieval.evaluation.corpus import document_names, evaluation_principal, ingested, ingested_folder
from retrieval.evaluation.datasets import Dataset, JudgedQueries, JudgedQuery, load_dataset
from retrieval.evaluation.runner import Evaluation, measured
from retrieval.models import Chunk, Sync
from retrieval.presets.catalog import PRESETS
from retrieval.text.document import headings_of

_DEPTH: Final = 10
_MAX_KNOWN_ITEMS: Final = 200
_MAX_QUESTIONS: Final = 1000  #: Limits the duration; the mean of 1,000 questions is within 0.02 of the mean of all.
_SEED: Final = 7
_MEASURES: Final = ("nDCG@10", "R@5")
_COLUMNS: Final = (
    *("collection", "questions", "preset", "ordered by"),
    *_MEASURES,
    *("p50 ms", "p95 ms", "tokens", "fell back"),
)
_HEADINGS_SEED: Final = 11
_MAX_PER_DOCUMENT: Final = 5


@dataclass(frozen=True, slots=True)
class Collection:
    """Questions, and the connections to search."""

    questions: JudgedQueries
    connections: tuple[Connection, ...]


def collections(
    directory: Path, folders: Sequence[Path], *, progress: Callable[[Sync], None]
) -> tuple[Collection, ...]:
    """Return the judged collections by name, then the folders as one, all ingested; raise InvalidRequestError."""
    evaluation_principal()
    found = sorted(path.parent for path in directory.glob("*/qrels.tsv"))
    if not found:
        raise InvalidRequestError(f"{directory} has no folder in the BEIR layout.")
    datasets = [load_dataset(path) for path in found]
    mixed = []
    if folders:
        connections = tuple(ingested_folder(folder, progress) for folder in folders)
        mixed = [Collection(known_items(connections, name="raw files", limit=_MAX_KNOWN_ITEMS), connections)]
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


#: A heading with fewer words is a label; one with more is a sentence.
_MIN_WORDS, _MAX_WORDS = 2, 12


def known_items(connections: Sequence[Connection], *, name: str, limit: int) -> JudgedQueries:
    """Return up to `limit` queries, a few per document, the same in every run; raise InvalidRequestError for none."""
    names = document_names(connections)
    places: dict[str, set[str]] = {}
    rows = Chunk.objects.filter(document__connection__in=connections).values_list("document_id", "heading_path")
    for document, path in rows.iterator():
        for heading in headings_of(path):
            if _MIN_WORDS <= len(heading.split()) <= _MAX_WORDS:
                places.setdefault(heading.strip(), set()).add(names[document])
    by_document: dict[str, list[str]] = {}
    for heading, documents in sorted(places.items()):
        if len(documents) == 1:
            by_document.setdefault(next(iter(documents)), []).append(heading)
    draw = Random(_HEADINGS_SEED)  # noqa: S311 -- a sample, no secret
    found = [
        (heading, document)
        for document, headings in sorted(by_document.items())
        for heading in draw.sample(headings, min(len(headings), _MAX_PER_DOCUMENT))
    ]
    chosen = sorted(draw.sample(found, min(len(found), limit)))
    if not chosen:
        raise InvalidRequestError("No file in these folders has a unique heading to search for.")
    queries = tuple(JudgedQuery(str(number), heading) for number, (heading, _) in enumerate(chosen))
    return JudgedQueries(name, queries, {str(number): {document: 1} for number, (_, document) in enumerate(chosen)})
