"""Passes of a language model over a connection's chunks, in a worker."""

from typing import Final

from celery import shared_task
from django.db import InterfaceError, OperationalError

from corecube.models import Connection
from retrieval.ingest.enrich.services import enrich_after_sync

#: How long a pass waits for a database that does not answer.
_RETRY_SECONDS: Final = 5


@shared_task(autoretry_for=(OperationalError, InterfaceError), max_retries=None, default_retry_delay=_RETRY_SECONDS)
def enrich_connection(connection_id: int) -> None:
    """Run one pass over the connection's chunks, if it is still there and asks for one."""
    connection = Connection.objects.filter(pk=connection_id, enabled=True).first()
    if connection is not None:
        enrich_after_sync(connection)
