"""A judged collection with a connection for each document, so that a search can be asked to do without some of them.

Leaving documents out by the scope of a request is what production does; no stage knows that it is being measured.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from corecube.access import ScopeRequest
from corecube.connectors import ItemProblem, SourceItem
from corecube.models import Compartment, Connection
from corecube.sanitise import storable
from corecube.scope import Sensitivity
from retrieval.evaluation.corpus import EVALUATION, prepare_document
from retrieval.evaluation.datasets import Dataset, read_lines
from retrieval.ingest.run import Source
from retrieval.ingest.sync import sync_connection
from retrieval.models import Sync

#: More documents of a collection, which no question is about.
_DISTRACTORS: Final = "distractors.jsonl"
_SLUG_PART: Final = 12


@dataclass(frozen=True, slots=True)
class ScatteredCorpus:
    """A collection in the store, one connection a document."""

    #: Slug by document id.
    slugs: dict[str, str]
    #: Title by document id.
    titles: dict[str, str]

    def without(self, documents: Iterable[str]) -> ScopeRequest:
        """Return how a search is narrowed to the collection less these documents."""
        gone = set(documents)
        return ScopeRequest(include=tuple(slug for name, slug in self.slugs.items() if name not in gone))

    def of_same_title(self, documents: Iterable[str]) -> set[str]:
        """Return these documents and all others under their titles: the parts of one article share its title."""
        names = set(documents)
        titles = {self.titles[name] for name in names if self.titles.get(name)}
        return names | {name for name, title in self.titles.items() if title in titles}


@dataclass(frozen=True, slots=True)
class _OneDocument:
    """Reads one document of a collection."""

    row: dict[str, str]

    def check(self) -> None:
        """Do nothing: the document was read already."""

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the document."""
        name = storable(self.row["_id"])
        yield SourceItem(name, name, uri="", locator=json.dumps(self.row), modified_at=None)

    def read(self, item: SourceItem) -> bytes:
        """Return the document as JSON."""
        return item.locator.encode()


def scattered(dataset: Dataset, progress: Callable[[], None]) -> ScatteredCorpus:
    """Return the collection and its `distractors.jsonl`, synced; what is there already is not embedded again.

    `progress` is called after every document.
    """
    compartment = Compartment.objects.get(slug=EVALUATION)
    slugs, titles = dict[str, str](), dict[str, str]()
    for row in _rows(dataset):
        slugs[row["_id"]] = _slug(dataset, row["_id"])
        titles[row["_id"]] = row.get("title") or ""
        _sync(row, slugs[row["_id"]], compartment)
        progress()
    return ScatteredCorpus(slugs, titles)


def remove(corpus: ScatteredCorpus) -> None:
    """Delete the collection's connections with all that they hold."""
    for connection in Connection.objects.filter(slug__in=corpus.slugs.values(), kind=EVALUATION):
        connection.delete()


def _rows(dataset: Dataset) -> Iterator[dict[str, str]]:
    yield from dataset.documents()
    more = dataset.directory / _DISTRACTORS
    if more.is_file():
        yield from read_lines(more)


def _sync(row: dict[str, str], slug: str, compartment: Compartment) -> None:
    connection, _ = Connection.objects.get_or_create(
        slug=slug,
        defaults={
            "name": slug,
            "kind": EVALUATION,
            "compartment": compartment,
            "sensitivity": Sensitivity.RESTRICTED,
        },
    )
    source = Source(_OneDocument(row), prepare_document)
    sync_connection(connection, sync=Sync(connection=connection, allow_deletions=True), source=source)


def _slug(dataset: Dataset, document: str) -> str:
    """Return a document's slug: a hash of the folder and one of the document's id."""
    folder = os.fsencode(dataset.directory.resolve())
    parts = (hashlib.sha256(text).hexdigest()[:_SLUG_PART] for text in (folder, json.dumps(document).encode()))
    return "-".join((EVALUATION, *parts))
