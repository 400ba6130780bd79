"""Work for Celery workers. Each task takes the id of a row that says what to do and what became of it."""

import logging

from celery import shared_task

from retrieval.errors import SyncRunningError
from retrieval.ingest.sync import sync_connection
from retrieval.models import Sync

logger = logging.getLogger(__name__)


@shared_task(bind=True, max_retries=None, default_retry_delay=10)
def run_sync(self, sync_id: str) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 -- Celery binds the task itself
    """Run a queued sync; while another one of its connection is at work, try again later."""
    sync = Sync.objects.select_related("connection", "connection__compartment").filter(pk=sync_id).first()
    if sync is None or sync.status not in {Sync.Status.QUEUED, Sync.Status.RUNNING}:
        logger.info("sync.skipped id=%s", sync_id)
        return
    try:
        sync_connection(sync.connection, sync=sync)
    except SyncRunningError as error:
        raise self.retry(exc=error) from error
