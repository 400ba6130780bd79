"""Ingestion in Celery workers. The database holds the work; a message only wakes a worker."""

import logging
from typing import Final

from celery import shared_task
from django.db import Error, connection
from kombu.exceptions import OperationalError as QueueError

from retrieval.ingest.dispatch import work_until_idle

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 5


@shared_task(bind=True, max_retries=None, default_retry_delay=_RETRY_SECONDS)
def work(self) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 -- Celery binds the task itself
    """Work until nothing is left; try again later when the database is unavailable."""
    try:
        work_until_idle(wake_workers)
    except Error as error:
        logger.warning("work.interrupted error=%s", type(error).__name__)
        connection.close()
        raise self.retry(exc=error) from error


def wake_workers() -> None:
    """Send a worker a message. Without a queue nothing is lost: workers also check regularly by themselves."""
    try:
        work.apply_async(retry=False)
    except (QueueError, OSError) as error:
        logger.warning("queue.unavailable error=%s", type(error).__name__)
