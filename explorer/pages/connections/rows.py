"""What the pages of connections read."""

from django.db.models import Count, Sum
from django.utils import timezone

from corecube.models import Connection
from explorer.pages.connections.panels import ConnectionCounts, ConnectionRow, connection_row
from retrieval.ingest.jobs import job_states
from retrieval.models import Document, Sync, SyncProblem, TermFrequency


def connection_rows(connections: list[Connection]) -> list[ConnectionRow]:
    """Return the rows of connections, counted in seven queries whatever their number."""
    ids = [connection.pk for connection in connections]
    # The empty lexeme counts chunks, so that millions of them need not be counted one by one.
    chunks = TermFrequency.objects.filter(lexeme="", connection_id__in=ids).values_list("connection_id")
    documents = Document.objects.filter(connection_id__in=ids).values_list("connection_id")
    problems = SyncProblem.objects.filter(connection_id__in=ids).values_list("connection_id")
    syncs = Sync.objects.filter(connection_id__in=ids).select_related("connection")
    last = syncs.order_by("connection_id", "-queued_at").distinct("connection_id")
    now = timezone.now()
    counts = ConnectionCounts(
        documents=dict(documents.annotate(Count("pk"))),
        chunks=dict(chunks.annotate(Sum("chunks"))),
        problems=dict(problems.annotate(Count("pk"))),
        syncs={job.sync.connection_id: job for job in job_states(last, now)},
    )
    return [connection_row(connection, counts, now) for connection in connections]
