"""Passes of a language model over a connection's chunks, in a worker."""

from celery import shared_task

from corecube.models import Connection
from retrieval.ingest.enrich.services import enrich_after_sync


@shared_task
def enrich_connection(connection_id: int) -> None:
    """Run one pass over the connection's chunks, if it is still there and asks for one."""
    connection = Connection.objects.filter(pk=connection_id, enabled=True).first()
    if connection is not None:
        enrich_after_sync(connection)
