"""Deleting all that a connection has in the store."""

from corecube.models import Connection
from retrieval.index.common_mentions import count_common
from retrieval.index.writer import delete_documents, fold_term_counts
from retrieval.models import Document


def delete_all_documents(connection: Connection) -> None:
    """Delete every document of a connection, with all that they own."""
    delete_documents(list(Document.objects.filter(connection=connection).values_list("pk", flat=True)))
    fold_term_counts(connection.pk)
    count_common(connection.pk)
