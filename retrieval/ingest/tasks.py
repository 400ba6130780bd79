"""Work for Celery workers. What there is to do stands in the database; a message only says that there is something."""

import logging
from typing import Final

from celery import shared_task
from django.db import Error, connection
from kombu.exceptions import OperationalError as QueueError

from retrieval.ingest.crew import work_through

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 5


@shared_task(bind=True, max_retries=None, default_retry_delay=_RETRY_SECONDS)
def work(self) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 -- Celery binds the task itself
    """Do what is to be done until nothing is left; when the database goes away, look again a little later."""
    try:
        work_through(wake_workers)
    except Error as error:
        logger.warning("work.interrupted error=%s", type(error).__name__)
        connection.close()
        raise self.retry(exc=error) from error


def wake_workers() -> None:
    """Tell a worker to look. Without a queue nothing is lost: workers look by themselves now and then."""
    try:
        work.apply_async(retry=False)
    except (QueueError, OSError) as error:
        logger.warning("queue.unavailable error=%s", type(error).__name__)
