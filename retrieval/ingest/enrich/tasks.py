"""Enrichment of a connection's chunks in a worker."""

import logging
from functools import partial
from typing import Final

from celery import shared_task
from django.db import InterfaceError, OperationalError, transaction
from kombu.exceptions import OperationalError as QueueError

from corecube.models import Connection
from retrieval.ingest.enrich.services import enrich_after_sync
from retrieval.ingest.enrich.wants import requested, writable_for

logger = logging.getLogger(__name__)

_DATABASE_RETRY_SECONDS: Final = 5


@shared_task(
    autoretry_for=(OperationalError, InterfaceError), max_retries=None, default_retry_delay=_DATABASE_RETRY_SECONDS
)
def enrich_connection(connection_id: int) -> None:
    """Enrich the chunks of an enabled connection if it requests that."""
    connection = Connection.objects.filter(pk=connection_id, enabled=True).first()
    if connection is not None:
        enrich_after_sync(connection)


def queue_enrichment(connection: Connection) -> None:
    """Queue a connection's enrichment if a model may write any; a lost message waits for the next sync."""
    if requested(connection) & writable_for(connection):
        transaction.on_commit(partial(_send, connection.pk))


def _send(connection_id: int) -> None:
    try:
        enrich_connection.apply_async((connection_id,), retry=False)
    except (QueueError, OSError) as error:
        logger.warning("enrich.not_queued error=%s", type(error).__name__)
