"""A judged collection as a connection of its own, in a compartment that nobody but the evaluation may see."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.utils.text import slugify

from corecube.access import Principal
from corecube.connectors import ItemProblem, SourceItem
from corecube.models import Compartment, Connection, Grant, User
from corecube.sanitise import storable
from corecube.scope import Sensitivity
from retrieval.engine.types import Vector
from retrieval.evaluation.datasets import Dataset
from retrieval.ingest.preparation import Preparation, PreparedText, prepare_text
from retrieval.ingest.run import Source
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, Embedding, Sync
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument

#: Name of the user and the compartment.
EVALUATION: Final = "evaluation"
#: What the table holds of a name; what a slug keeps of it beside the hash.
_NAME_CHARACTERS: Final = 120
_READABLE_CHARACTERS: Final = 30


@dataclass(frozen=True, slots=True)
class CorpusConnector:
    """Reads a collection's corpus as one item per document."""

    dataset: Dataset

    def check(self) -> None:
        """Do nothing: the dataset was read already."""

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the documents."""
        for document in self.dataset.documents():
            name = storable(document["_id"])
            yield SourceItem(name, name, uri="", locator=json.dumps(document), modified_at=None)

    def read(self, item: SourceItem) -> bytes:
        """Return a document as JSON."""
        return item.locator.encode()


def parse_document(raw: RawDocument) -> ParsedDocument:
    """Return a corpus line as a document of one paragraph."""
    document = json.loads(raw.content)
    title, text = _text(document, "title"), _text(document, "text")
    return ParsedDocument(title, (Block(BlockKind.PARAGRAPH, text or title),), source_type="text")


def prepare_document(raw: RawDocument, how: Preparation) -> PreparedText:
    """Return what becomes of a corpus line, in this process: an admin chose the collection, and waits for it."""
    return prepare_text(parse_document(raw), how)


def evaluation_principal() -> Principal:
    """Return the only principal that sees judged collections; nobody can sign in as it."""
    user, _ = User.objects.get_or_create(username=EVALUATION, defaults={"password": "!"})
    compartment, _ = Compartment.objects.get_or_create(slug=EVALUATION, defaults={"name": "Evaluation"})
    Grant.objects.get_or_create(user=user, compartment=compartment, defaults={"clearance": Sensitivity.RESTRICTED})
    return Principal(user)


def ingested(dataset: Dataset, progress: Callable[[Sync], None]) -> Connection:
    """Return the connection that holds the collection, synced: what is there already is not embedded again."""
    connection, _ = Connection.objects.get_or_create(
        slug=_slug(dataset),
        defaults={
            "name": f"Evaluation {dataset.name}"[:_NAME_CHARACTERS],
            "kind": EVALUATION,
            "compartment": Compartment.objects.get(slug=EVALUATION),
            "sensitivity": Sensitivity.RESTRICTED,
        },
    )
    source = Source(CorpusConnector(dataset), prepare_document)
    sync_connection(
        connection, sync=Sync(connection=connection, allow_deletions=True), source=source, progress=progress
    )
    return connection


def document_names(connections: Sequence[Connection]) -> dict[UUID, str]:
    """Return what judgments call each document: its external id, behind the connection's slug if there are several."""
    rows = Document.objects.filter(connection__in=connections).values_list("pk", "connection__slug", "external_id")
    is_one = len(connections) == 1
    return {pk: name if is_one else f"{slug}/{name}" for pk, slug, name in rows}


def first_vectors(connection: Connection, *, index: int) -> dict[str, Vector]:
    """Return the unit vector of each document's first chunk in an embedding index, by the document's external id."""
    names = dict(Document.objects.filter(connection=connection).values_list("pk", "external_id"))
    rows = Embedding.objects.filter(index_id=index, connection_id=connection.pk, ordinal=0)
    found = rows.values_list("document_id", "vector").iterator()
    return {names[document]: vector.to_numpy().astype(np.float32) for document, vector in found if document in names}


def _slug(dataset: Dataset) -> str:
    """Return the connection's slug: the folder's name for people, and a hash that tells folders of one name apart.

    A collection whose documents were added to has a connection of its own.
    """
    folder = os.fsencode(dataset.directory.resolve()) + (b"\0added" if dataset.added else b"")
    readable = slugify(dataset.directory.resolve().name)[:_READABLE_CHARACTERS].strip("-_")
    return "-".join(filter(None, (EVALUATION, readable, hashlib.sha256(folder).hexdigest()[:8])))


def _text(document: dict[str, Any], key: str) -> str:
    """Return a text of a corpus line, empty where it has none."""
    value = document.get(key)
    return value if isinstance(value, str) else ""
