"""Measuring evaluation runs in Celery workers."""

import logging

from celery import shared_task
from django.db import transaction
from kombu.exceptions import OperationalError as QueueError

from retrieval.evaluation.runs import are_waiting, run_waiting, take_up_lost

logger = logging.getLogger(__name__)


@shared_task(name="retrieval.measure_evaluation_runs")
def measure_evaluation_runs() -> None:
    """Measure the waiting runs; one that is missed begins at the next check."""
    run_waiting()


def wake_worker_on_commit() -> None:
    """Send workers a message about a waiting run when the transaction is committed."""
    transaction.on_commit(_send)


def tick() -> None:
    """Release the runs of lost workers, and wake a worker if runs wait."""
    take_up_lost()
    if are_waiting():
        _send()


def _send() -> None:
    try:
        measure_evaluation_runs.apply_async(retry=False)
    except (QueueError, OSError) as error:
        logger.warning("evaluation_run.not_sent error=%s", type(error).__name__)
