"""Measuring evaluation runs and sweeps in Celery workers."""

import logging

from celery import shared_task
from django.db import transaction
from kombu.exceptions import OperationalError as QueueError

from retrieval.evaluation import runs, schedules, sweeps

logger = logging.getLogger(__name__)


@shared_task(name="retrieval.measure_evaluation_runs")
def measure_evaluation_runs() -> None:
    """Measure the waiting runs, then the sweeps; one that is missed begins at the next check."""
    runs.run_waiting()
    sweeps.run_waiting()


def wake_worker_on_commit() -> None:
    """Send workers a message about a waiting run or sweep when the transaction is committed."""
    transaction.on_commit(_send)


def tick() -> None:
    """Release what lost workers ran, queue the runs that are due, and wake a worker if something waits."""
    runs.take_up_lost()
    sweeps.take_up_lost()
    schedules.queue_due()
    if runs.are_waiting() or sweeps.are_waiting():
        _send()


def _send() -> None:
    try:
        measure_evaluation_runs.apply_async(retry=False)
    except (QueueError, OSError) as error:
        logger.warning("evaluation_run.not_sent error=%s", type(error).__name__)
