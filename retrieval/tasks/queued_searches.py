"""Running queued searches in Celery workers."""

import logging

from celery import shared_task
from django.db import transaction
from kombu.exceptions import OperationalError as QueueError

from retrieval.search.queued_searches import are_waiting, forget_finished, run_queued, take_up_lost

logger = logging.getLogger(__name__)


@shared_task(name="retrieval.run_queued_searches")
def run_queued_searches() -> None:
    """Run the waiting searches; a search that is missed runs at the next check."""
    run_queued()


def wake_worker_on_commit() -> None:
    """Send workers a message about a waiting search when the transaction is committed."""
    transaction.on_commit(_send)


def tick() -> None:
    """Release the searches of lost workers, delete old ones, and wake a worker if searches wait."""
    take_up_lost()
    forget_finished()
    if are_waiting():
        _send()


def _send() -> None:
    try:
        run_queued_searches.apply_async(retry=False)
    except (QueueError, OSError) as error:
        logger.warning("queued_search.not_sent error=%s", type(error).__name__)
