"""Running queued searches in Celery workers."""

import logging
from functools import partial
from typing import Final

from celery import shared_task
from django.db import transaction
from kombu.exceptions import OperationalError as QueueError

from retrieval.search.queued_searches import are_waiting, forget_finished, run_queued, take_up_lost

logger = logging.getLogger(__name__)

_TASK: Final = "retrieval.run_queued_searches"


@shared_task(name=_TASK)
def run_queued_searches() -> None:
    """Run what waits; a search that nobody runs is found by the next look."""
    run_queued()


def search_soon() -> None:
    """Tell a worker, once the transaction has ended, that a search waits."""
    transaction.on_commit(partial(_send))


def tick() -> None:
    """Take up what a lost worker left, wake one where searches wait, and forget what ended long ago."""
    take_up_lost()
    forget_finished()
    if are_waiting():
        _send()


def _send() -> None:
    try:
        run_queued_searches.apply_async(retry=False)
    except (QueueError, OSError) as error:
        logger.warning("queued_search.not_sent error=%s", type(error).__name__)
