"""The watchdog of a worker: it sends heartbeats, ends work that hangs, and stops work on a cancelled sync.

A thread cannot be ended from outside, and a library may block it forever. So when a step makes no progress, or the
worker does not stop after its sync is cancelled, the watchdog ends the process. The pool replaces the process, and
its claims are released as those of a killed worker are.
"""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Final, NoReturn, Self
from uuid import UUID

from django.conf import settings
from django.db import Error, connection, transaction

from retrieval.index.reading import changed
from retrieval.ingest import claims
from retrieval.ingest.parsing import children
from retrieval.ingest.run import Step, Steps
from retrieval.models import Sync

logger = logging.getLogger(__name__)

_CHECK_SECONDS: Final = 1.0
_HEARTBEATS: Final = 5  #: Heartbeats within the time after which a process counts as lost.
_GRACE_SECONDS: Final = 5.0
#: The worker that has to end may hold a row lock in its transaction.
_SHORT_TIMEOUTS: Final = "SET LOCAL lock_timeout = '3s'; SET LOCAL statement_timeout = '5s'"
_CANCELLED: Final = frozenset({Sync.Status.CANCELLING, Sync.Status.CANCELLED})
EXIT_CODE: Final = 75


def new_steps() -> Steps:
    """Return the steps of a starting worker, with the installation's time limit."""
    return Steps(settings.CORECUBE_STEP_SECONDS)


class Watchdog:
    """Watches one worker of a sync from a separate thread while the block runs."""

    def __init__(self, sync: Sync, worker: UUID, steps: Steps) -> None:
        self._sync_id = sync.pk
        self._worker = worker
        self._steps = steps
        self._over = Event()
        #: When the last heartbeat was sent, and when the worker got the signal to stop.
        self._heartbeat_at = self._stopped_at = 0.0
        self._watched = threading.get_ident()
        self._thread = Thread(target=self._run, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._send_heartbeat()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._over.wait(_CHECK_SECONDS):
                try:
                    self._check()
                    if monotonic() - self._heartbeat_at >= settings.CORECUBE_LOST_SECONDS / _HEARTBEATS:
                        with _short_transaction():
                            self._send_heartbeat()
                except Error as error:
                    # The worker meets the same error and handles it.
                    logger.info("watchdog.failed error=%s", type(error).__name__)
                    connection.close()
        finally:
            connection.close()

    def _send_heartbeat(self) -> None:
        claims.record_heartbeat(self._sync_id, self._worker)
        self._heartbeat_at = monotonic()

    def _check(self) -> None:
        if step := self._steps.overdue():
            message = f"{step.doing} made no progress for {step.seconds:.0f} seconds (CORECUBE_STEP_SECONDS)."
            logger.error("watchdog.ends_process doing=%s items=%d", step.doing.name.lower(), len(step.claims))
            with _release_attempt():
                release_overdue(self._sync_id, self._worker, step, message)
            _end_process()
        # A missing sync may not be committed yet.
        status = Sync.objects.filter(pk=self._sync_id).values_list("status", flat=True).first()
        if status in {None, Sync.Status.RUNNING}:
            return
        if not self._steps.is_ended:
            self._steps.is_ended = True
            self._stopped_at = monotonic()
        children.interrupt(self._watched)
        if status in _CANCELLED and monotonic() - self._stopped_at >= _GRACE_SECONDS and not self._over.is_set():
            logger.error("watchdog.ends_process doing=cancelled")
            with _release_attempt():
                claims.delete_claimed(Sync(pk=self._sync_id), self._worker)
            _end_process()


def release_overdue(sync_id: UUID, worker: UUID, step: Step, message: str) -> None:
    """Fail the item of a step that hangs; of several, retry each alone. Release the worker's other claims."""
    overdue = claims.claimed_by(worker, step.claims)
    if len(step.claims) == 1:
        claims.fail(overdue, sync_id=sync_id, reason="too_slow", message=message)
    else:
        claims.release_ended(overdue, message)
    claims.release(worker)


@contextmanager
def _release_attempt() -> Iterator[None]:
    """Run a short transaction and log its failure: without it the claims are released when heartbeats stop."""
    try:
        with _short_transaction():
            yield
    except Error as error:
        logger.warning("watchdog.release_failed error=%s", type(error).__name__)


@contextmanager
def _short_transaction() -> Iterator[None]:
    """Run a transaction that does not wait long for locks."""
    with transaction.atomic():
        changed(_SHORT_TIMEOUTS)
        yield


def _end_process() -> NoReturn:
    """End this process and its children at once, without clean-up that could hang as well."""
    children.kill()
    logging.shutdown()
    os._exit(EXIT_CODE)
