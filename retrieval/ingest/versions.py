"""Which documents an earlier version of parsing and chunking made."""

from dataclasses import dataclass

from django.db.models import Count

from corecube.models import Connection
from retrieval.ingest import prepared_document
from retrieval.models import Document
from retrieval.models.document import DocumentQuerySet


@dataclass(frozen=True, slots=True)
class OlderDocuments:
    """The documents of a connection that its next full sync makes again."""

    slug: str
    name: str
    version: int  #: Their ingestion version; 0 if it was not recorded.
    documents: int


def ingest_version() -> int:
    """Return the version by which syncs parse and chunk documents."""
    return prepared_document.INGEST_VERSION


def older_documents() -> list[OlderDocuments]:
    """Return the documents of other ingestion versions than the current one, by connection and version."""
    listed = _older().filter(connection__in=Connection.objects.listed())
    groups = listed.values_list("connection__slug", "connection__name", "ingest_version").annotate(Count("pk"))
    return [OlderDocuments(*group) for group in groups.order_by("connection__name", "ingest_version")]


def older_documents_of(connection: Connection) -> int:
    """Return the number of such documents in a connection."""
    return _older().filter(connection=connection).count()


def _older() -> DocumentQuerySet:
    return Document.objects.exclude(ingest_version=ingest_version())
