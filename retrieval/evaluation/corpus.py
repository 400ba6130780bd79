"""Judged collections as connections, in a compartment that only the evaluation may see.

A scattered collection has one connection per document, so that a search can exclude documents by the scope of the
request, which is the production path; no stage knows about the evaluation.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final
from uuid import UUID

import numpy as np
from django.conf import settings
from django.utils.text import slugify

from corecube.access import Principal, ScopeRequest
from corecube.connectors.folder import FolderConnector
from corecube.connectors.types import Capability, Connector, ItemProblem, SourceItem
from corecube.models import Compartment, Connection, Grant, User
from corecube.sanitise import storable
from corecube.scope import Sensitivity
from retrieval.engine.types import Vector
from retrieval.evaluation.datasets import Dataset, read_lines
from retrieval.ingest.encodings import fill_encodings
from retrieval.ingest.preparation import Preparation, PreparedText, prepare_text
from retrieval.ingest.run import Source
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, Embedding, Sync
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument

EVALUATION: Final = "evaluation"
_MAX_NAME: Final = 120
_MAX_FOLDER: Final = 30
_DISTRACTORS: Final = "distractors.jsonl"  #: More documents of a collection, unrelated to its questions.
_HASH_LENGTH: Final = 12


@dataclass(frozen=True, slots=True)
class CorpusConnector(Connector):
    """The connector of a collection in JSON: one item per document."""

    documents: Callable[[], Iterable[dict[str, str]]]

    def preflight(self) -> Iterator[Capability]:
        """Yield nothing: the collection is already read."""
        yield from ()

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the documents."""
        for document in self.documents():
            name = storable(document["_id"])
            yield SourceItem(name, name, uri="", locator=json.dumps(document), modified_at=None)

    def read(self, item: SourceItem) -> bytes:
        """Return a document as JSON."""
        return item.locator.encode()


def prepare_document(raw: RawDocument, how: Preparation) -> PreparedText:
    """Prepare a corpus line as a document of one paragraph, without a sandbox: an admin chose the collection."""
    row = json.loads(raw.content)
    title, text = (value if isinstance(value := row.get(key), str) else "" for key in ("title", "text"))
    parsed = ParsedDocument(title, (Block(BlockKind.PARAGRAPH, text or title),), source_type="text")
    return prepare_text(parsed, how)


def evaluation_principal() -> Principal:
    """Return the only principal with access to judged collections; its user cannot sign in."""
    user, _ = User.objects.get_or_create(username=EVALUATION, defaults={"password": "!"})
    compartment, _ = Compartment.objects.get_or_create(slug=EVALUATION, defaults={"name": "Evaluation"})
    Grant.objects.get_or_create(user=user, compartment=compartment, defaults={"clearance": Sensitivity.RESTRICTED})
    return Principal(user)


def ingested(dataset: Dataset, progress: Callable[[Sync], None]) -> Connection:
    """Return the synced connection of the collection; existing documents are not embedded again."""
    source = Source(CorpusConnector(dataset.documents), prepare_document)
    folder = os.fsencode(dataset.directory.resolve()) + os.fsencode(dataset.variant and f"\0{dataset.variant}")
    readable = slugify(dataset.directory.resolve().name)[:_MAX_FOLDER].strip("-_")
    return synced(
        "-".join(filter(None, (EVALUATION, readable, hashlib.sha256(folder).hexdigest()[:8]))),
        f"Evaluation {dataset.name}",
        source,
        progress,
    )


def ingested_folder(folder: Path, progress: Callable[[Sync], None]) -> Connection:
    """Return the synced connection with a folder's files, parsed like any folder."""
    evaluation_principal()
    slug = f"{EVALUATION}-files-{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:8]}"
    source = Source(FolderConnector(folder.resolve(), settings.CORECUBE_MAX_FILE_BYTES))
    return synced(slug, f"Evaluation {folder.resolve().name}", source, progress)


def synced(slug: str, name: str, source: Source, progress: Callable[[Sync], None] = lambda _: None) -> Connection:
    """Return the connection with a slug in the compartment of the evaluation, created if missing, after a sync."""
    connection, _ = Connection.objects.get_or_create(
        slug=slug,
        defaults={
            "name": name[:_MAX_NAME],
            "kind": EVALUATION,
            "compartment": Compartment.objects.get(slug=EVALUATION),
            "sensitivity": Sensitivity.RESTRICTED,
        },
    )
    sync = Sync(connection=connection, allow_deletions=True)
    sync_connection(connection, sync=sync, source=source, progress=progress)
    return connection


def encode_sentences(connections: Iterable[Connection]) -> None:
    """Make what idle workers would make of the connections: the vectors that answers and verdicts read."""
    for connection in connections:
        fill_encodings(connection.pk)


def encode_asked(collections: Mapping[str, Connection], asked: Iterable[str]) -> None:
    """Make them of all collections that are asked, which are the installation's own connections for an empty name."""
    encode_sentences(collections.values())
    if "" in asked:
        encode_sentences(Connection.objects.exclude(kind=EVALUATION))


def document_names(connections: Sequence[Connection]) -> dict[UUID, str]:
    """Return each document's name in judgments: its external id, after the connection's slug if there are several."""
    rows = Document.objects.filter(connection__in=connections).values_list("pk", "connection__slug", "external_id")
    is_one = len(connections) == 1
    return {pk: name if is_one else f"{slug}/{name}" for pk, slug, name in rows}


def first_vectors(connection: Connection, *, index: int) -> dict[str, Vector]:
    """Return the unit vector of each document's first chunk in an embedding index, by the document's external id."""
    names = dict(Document.objects.filter(connection=connection).values_list("pk", "external_id"))
    rows = Embedding.objects.filter(index_id=index, connection_id=connection.pk, ordinal=0)
    found = rows.values_list("document_id", "vector").iterator()
    return {names[document]: vector.to_numpy().astype(np.float32) for document, vector in found if document in names}


@dataclass(frozen=True, slots=True)
class ScatteredCorpus:
    """An ingested collection with one connection per document."""

    slugs: dict[str, str]
    titles: dict[str, str]

    def without(self, documents: Iterable[str]) -> ScopeRequest:
        """Return the scope of the collection without these documents."""
        excluded = set(documents)
        return ScopeRequest(include=tuple(slug for name, slug in self.slugs.items() if name not in excluded))

    def of_same_title(self, documents: Iterable[str]) -> set[str]:
        """Return these documents and all others with their titles: the parts of one article share its title."""
        names = set(documents)
        titles = {self.titles[name] for name in names if self.titles.get(name)}
        return names | {name for name, title in self.titles.items() if title in titles}


def scattered(dataset: Dataset, progress: Callable[[], None]) -> ScatteredCorpus:
    """Return the synced collection with its `distractors.jsonl`; `progress` is called after every document."""
    slugs, titles = dict[str, str](), dict[str, str]()
    distractors = dataset.directory / _DISTRACTORS
    for row in chain(dataset.documents(), read_lines(distractors) if distractors.is_file() else ()):
        folder = os.fsencode(dataset.directory.resolve())
        parts = (hashlib.sha256(text).hexdigest()[:_HASH_LENGTH] for text in (folder, json.dumps(row["_id"]).encode()))
        slugs[row["_id"]] = slug = "-".join((EVALUATION, *parts))
        titles[row["_id"]] = row.get("title") or ""
        synced(slug, slug, Source(CorpusConnector(partial(iter, [row])), prepare_document))
        progress()
    return ScatteredCorpus(slugs, titles)


def remove(corpus: ScatteredCorpus) -> None:
    """Delete the collection's connections with their documents."""
    for connection in Connection.objects.filter(slug__in=corpus.slugs.values(), kind=EVALUATION):
        connection.delete()
