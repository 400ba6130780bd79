"""The life of a Celery worker: what it does when it starts, every few seconds, and when it stops."""

import logging
from threading import Event, Thread
from time import monotonic
from typing import Any, Final

from celery.signals import worker_process_init, worker_ready, worker_shutting_down
from django.db import Error, connection

from corecube.commands import database_problem
from retrieval.answers.conversations.shelf import forget_old_conversations
from retrieval.index.bm25.follower import keep_up
from retrieval.index.outbox import prune
from retrieval.ingest.completion import finish_all_cancelled
from retrieval.ingest.dispatch import has_work
from retrieval.ingest.schedule import is_wake_due, queue_due, refresh_waiting_syncs
from retrieval.ingest.tasks import wake_workers
from retrieval.ingest.workers import record_worker, remove_worker
from retrieval.llm.reachability import check_due
from retrieval.records.retention import forget_old_searches
from retrieval.search import warm_up
from retrieval.tasks import queued_searches

logger = logging.getLogger(__name__)

#: How often a worker looks for what is due by a schedule and for what nobody works on.
_TICK_SECONDS: Final = 5.0
#: How often read models take over what changed, how long they wait after a failure, and how often old changes go.
_FOLLOW_SECONDS: Final = 2.0
_FOLLOW_AGAIN_SECONDS: Final = 60.0
_PRUNE_SECONDS: Final = 600.0
#: How often a worker looks which language models are due to be checked.
_CHECK_SECONDS: Final = 10.0
_stopping = Event()


@worker_process_init.connect
def open_model(**_: Any) -> None:  # noqa: ANN401 -- Celery's signature
    """Load the model beside the start of a worker's process, so that its first document does not wait for it."""
    warm_up.begin(is_worker=True)


def tick() -> None:
    """Queue the syncs that are due, end those that were cancelled, forget what is old, and wake a worker for work."""
    queue_due()
    forget_old_searches()
    forget_old_conversations()
    refresh_waiting_syncs()
    finish_all_cancelled()
    queued_searches.tick()
    if has_work() and is_wake_due():
        wake_workers()


@worker_ready.connect
def keep_ticking(**_: Any) -> None:  # noqa: ANN401 -- Celery's signature
    """Tick in the worker's main process as long as it runs: neither a schedule nor a lost message needs more."""
    _stopping.clear()
    Thread(target=_tick_until_stopped, name="tick", daemon=True).start()
    # Apart from the ticks, as building an index anew takes its time, and so does waiting for language models.
    Thread(target=_follow_until_stopped, name="follow", daemon=True).start()
    Thread(target=_check_until_stopped, name="check", daemon=True).start()


@worker_shutting_down.connect
def stop_ticking(**_: Any) -> None:  # noqa: ANN401 -- Celery's signature
    """Queue nothing more."""
    _stopping.set()


def _tick_until_stopped() -> None:
    while not _stopping.is_set():
        try:
            record_worker()
            tick()
        except Error as error:
            logger.warning("tick.failed error=%s %s", type(error).__name__, database_problem(error))
        finally:
            connection.close()
        _stopping.wait(_TICK_SECONDS)
    _leave()


def _follow_until_stopped() -> None:
    """Let read models follow the outbox, and forget what all of them have."""
    pruned = 0.0
    while not _stopping.is_set():
        wait = _FOLLOW_AGAIN_SECONDS
        try:
            if keep_up():
                wait = _FOLLOW_SECONDS
            if monotonic() - pruned >= _PRUNE_SECONDS:
                prune()
                pruned = monotonic()
        except Error as error:
            logger.warning("follow.failed error=%s %s", type(error).__name__, database_problem(error))
        finally:
            connection.close()
        _stopping.wait(wait)


def _check_until_stopped() -> None:
    """Check again and again which language models can be reached."""
    while not _stopping.is_set():
        try:
            check_due()
        except Exception as error:  # noqa: BLE001 -- whatever went wrong with one check, the next is made
            logger.warning("language_model.check_failed error=%s", type(error).__name__)
        finally:
            connection.close()
        _stopping.wait(_CHECK_SECONDS)


def _leave() -> None:
    try:
        remove_worker()
    except Error as error:
        logger.info("worker.not_forgotten error=%s", type(error).__name__)
    finally:
        connection.close()
