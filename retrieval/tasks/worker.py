"""The background threads of a Celery worker: what it does at its start, every few seconds, and at its end."""

import atexit
import logging
from collections.abc import Callable
from threading import Event, Thread
from time import monotonic, time
from typing import Any, Final

from celery.signals import worker_ready, worker_shutting_down
from django.db import Error, connection

from corecube.commands import database_problem
from corecube.oauth.clients import forget_ended
from corecube.same_key import forget_key, note_key
from retrieval.answers.conversations.shelf import forget_old_conversations
from retrieval.index.following import PARTS
from retrieval.index.outbox import prune
from retrieval.index.read_models import keep_consistent, keep_up
from retrieval.ingest.completion import finish_all_cancelled
from retrieval.ingest.dispatch import has_work
from retrieval.ingest.schedule import is_wake_due, queue_due, refresh_waiting_syncs
from retrieval.ingest.tasks import wake_workers
from retrieval.ingest.workers import record_worker, remove_worker
from retrieval.llm.reachability import check_due
from retrieval.records.retention import forget_old_searches
from retrieval.tasks import backups, evaluation_runs, queued_searches

logger = logging.getLogger(__name__)

_TICK_SECONDS: Final = 5.0  #: How often a worker checks schedules and abandoned work.
#: How often read models follow the outbox, the wait after a failure, and how often old entries are deleted.
_FOLLOW_SECONDS: Final = 2.0
_FOLLOW_RETRY_SECONDS: Final = 60.0
_PRUNE_SECONDS: Final = 600.0
_PART_SECONDS: Final = 300.0  #: How often read models compare the next of 256 parts with the database: all in 21 hours.
_END_SECONDS: Final = 5.0  #: Maximum wait of an ending process until the worker is no longer recorded.
_CHECK_SECONDS: Final = 10.0  #: How often a worker checks which language models are due for a check.
_stopping = Event()


def tick() -> None:
    """Queue due syncs and backups, end cancelled ones, delete what is old, and wake a worker for new work."""
    queue_due()
    forget_old_searches()
    forget_old_conversations()
    refresh_waiting_syncs()
    finish_all_cancelled()
    queued_searches.tick()
    evaluation_runs.tick()
    backups.tick()
    if has_work() and is_wake_due():
        wake_workers()


@worker_ready.connect
def start_threads(**_: Any) -> None:  # noqa: ANN401 -- Celery's signature
    """Start the background threads in the worker's main process, which need no other scheduler."""
    _stopping.clear()
    # Separate threads, because building an index and waiting for language models can take long.
    ticking = Thread(target=_tick_until_stopped, name="tick", daemon=True)
    following = Thread(target=_follow_until_stopped, name="follow", daemon=True)
    checking = Thread(target=_check_until_stopped, name="check", daemon=True)
    for thread in (ticking, following, checking):
        thread.start()
    atexit.register(_end, ticking)  # A daemon thread is ended with the process, wherever it is.


def _end(ticking: Thread) -> None:
    """Wait until the thread that ticks has removed the worker, as far as it can."""
    _stopping.set()
    ticking.join(_END_SECONDS)


@worker_shutting_down.connect
def stop_threads(**_: Any) -> None:  # noqa: ANN401 -- Celery's signature
    """Stop the background threads after their current step."""
    _stopping.set()


def _repeat(step: Callable[[], float]) -> None:
    """Repeat a step, which returns the seconds until the next one, until the worker stops."""
    while not _stopping.is_set():
        try:
            seconds = step()
        finally:
            connection.close()
        _stopping.wait(seconds)


def _tick_until_stopped() -> None:
    def step() -> float:
        try:
            record_worker()
            note_key()
            tick()
        except Error as error:
            logger.warning("tick.failed error=%s %s", type(error).__name__, database_problem(error))
        return _TICK_SECONDS

    _repeat(step)
    try:
        remove_worker()
        forget_key()
    except Error as error:
        logger.info("worker.not_removed error=%s", type(error).__name__)
    finally:
        connection.close()


def _follow_until_stopped() -> None:
    """Let read models follow the outbox and compare, and delete the entries that all have, and ended OAuth tokens."""
    pruned, compared = 0.0, -1

    def step() -> float:
        nonlocal pruned, compared
        wait = _FOLLOW_RETRY_SECONDS
        try:
            if keep_up():
                wait = _FOLLOW_SECONDS
            if compared != (part := int(time() // _PART_SECONDS) % PARTS):
                keep_consistent(part)
                compared = part
            if monotonic() - pruned >= _PRUNE_SECONDS:
                prune()
                forget_ended()
                pruned = monotonic()
        except Error as error:
            logger.warning("follow.failed error=%s %s", type(error).__name__, database_problem(error))
        return wait

    _repeat(step)


def _check_until_stopped() -> None:
    def step() -> float:
        try:
            check_due()
        except Exception as error:  # noqa: BLE001 -- a failed check does not stop the next one
            logger.warning("language_model.check_failed error=%s", type(error).__name__)
        return _CHECK_SECONDS

    _repeat(step)
