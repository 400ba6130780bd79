"""A judged collection as a connection of its own, in a compartment that nobody but the evaluation may see."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from corecube.access import Principal
from corecube.connectors import ItemProblem, SourceItem
from corecube.models import Compartment, Connection, Grant, User
from corecube.scope import Sensitivity
from retrieval.evaluate.datasets import Dataset
from retrieval.ingest.sync import Source, sync_connection
from retrieval.ingest.types import Block, BlockKind, ParsedDocument, RawDocument
from retrieval.models import Sync

#: Name of the user and the compartment.
EVALUATION: Final = "evaluation"


@dataclass(frozen=True, slots=True)
class CorpusConnector:
    """Reads a collection's corpus as one item per document."""

    dataset: Dataset

    def check(self) -> None:
        """Do nothing: the dataset was read already."""

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the documents."""
        for document in self.dataset.documents():
            yield SourceItem(document["_id"], document["_id"], uri="", locator=json.dumps(document), modified_at=None)

    def read(self, item: SourceItem) -> bytes:
        """Return a document as JSON."""
        return item.locator.encode()


def parse_document(raw: RawDocument) -> ParsedDocument:
    """Return a corpus line as a document of one paragraph."""
    document = json.loads(raw.content)
    title, text = document.get("title", ""), document.get("text", "")
    return ParsedDocument(title, (Block(BlockKind.PARAGRAPH, text or title),), source_type="text")


def evaluation_principal() -> Principal:
    """Return the only principal that sees judged collections; nobody can sign in as it."""
    user, _ = User.objects.get_or_create(username=EVALUATION, defaults={"password": "!"})
    compartment, _ = Compartment.objects.get_or_create(slug=EVALUATION, defaults={"name": "Evaluation"})
    Grant.objects.get_or_create(user=user, compartment=compartment, defaults={"clearance": Sensitivity.RESTRICTED})
    return Principal(user)


def ingested(dataset: Dataset, progress: Callable[[Sync], None]) -> Connection:
    """Return the connection that holds the collection, synced: what is there already is not embedded again."""
    slug = f"{EVALUATION}-{dataset.name}".lower()[:50]
    connection, _ = Connection.objects.get_or_create(
        slug=slug,
        defaults={
            "name": f"Evaluation {dataset.name}",
            "kind": EVALUATION,
            "compartment": Compartment.objects.get(slug=EVALUATION),
            "sensitivity": Sensitivity.RESTRICTED,
        },
    )
    source = Source(CorpusConnector(dataset), parse_document)
    sync_connection(
        connection, sync=Sync(connection=connection, allow_deletions=True), source=source, progress=progress
    )
    return connection
