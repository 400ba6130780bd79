"""Work for Celery workers. Each task takes the id of a row that says what to do and what became of it."""

import logging
from typing import Any

from celery import shared_task
from celery.signals import worker_ready
from django.db import connection

from retrieval.errors import SyncRunningError
from retrieval.ingest.sync import OPEN, abandoned_syncs, sync_connection
from retrieval.models import Sync

logger = logging.getLogger(__name__)


@shared_task(bind=True, max_retries=None, default_retry_delay=10)
def run_sync(self, sync_id: str) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 -- Celery binds the task itself
    """Run a queued sync; while another one of its connection is at work, try again later."""
    sync = Sync.objects.select_related("connection", "connection__compartment").filter(pk=sync_id).first()
    if sync is None or sync.status not in OPEN:
        logger.info("sync.skipped id=%s", sync_id)
        return
    try:
        sync_connection(sync.connection, sync=sync)
    except SyncRunningError as error:
        raise self.retry(exc=error) from error


@worker_ready.connect
def resend_abandoned(**_: Any) -> None:  # noqa: ANN401 -- Celery's signature
    """Send the messages of open syncs that nobody runs: the queue may have lost them with a worker that was killed."""
    try:
        for sync in abandoned_syncs():
            run_sync.delay(str(sync.pk))
    finally:
        connection.close()
