"""Leaving a pass to a worker."""

import logging
from functools import partial

from django.db import transaction
from kombu.exceptions import OperationalError as QueueError

from corecube.models import Connection
from retrieval.ingest.enrich.allowed import writable_for
from retrieval.ingest.enrich.tasks import enrich_connection
from retrieval.ingest.enrich.wants import asked_for

logger = logging.getLogger(__name__)


def enrich_soon(connection: Connection) -> None:
    """Queue a pass over a connection's chunks where it asks for what a configured model can write.

    A message that is lost costs nothing: the next sync, or `manage.py enrich`, makes up for it.
    """
    if asked_for(connection) & writable_for(connection):
        transaction.on_commit(partial(_send, connection.pk))


def _send(connection_id: int) -> None:
    try:
        enrich_connection.apply_async((connection_id,), retry=False)
    except (QueueError, OSError) as error:
        logger.warning("enrich.not_queued error=%s", type(error).__name__)
