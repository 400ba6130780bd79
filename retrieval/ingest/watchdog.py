"""The watchdog of a worker: it says that the worker is alive, ends what hangs, and stops what nobody wants any more.

A thread cannot be ended from outside, and a library may hold on to it for ever. So a worker whose step makes no
progress, or who does not stop when its sync is cancelled, ends with its whole process. The pool replaces the process,
and the items come back as those of a killed worker do.
"""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from types import TracebackType
from typing import Final, NoReturn, Self
from uuid import UUID

from django.conf import settings
from django.db import Error, connection, transaction

from retrieval.ingest import claims
from retrieval.ingest.heartbeat import beat
from retrieval.ingest.parsing import children
from retrieval.ingest.steps import Step, Steps
from retrieval.models import Sync

logger = logging.getLogger(__name__)

#: How often it looks.
_LOOK_SECONDS: Final = 1.0
#: How many times a process speaks up before it would be taken for lost.
_BEATS: Final = 5
#: How long a worker may take to stop by itself.
_GRACE_SECONDS: Final = 5.0
#: The worker that is to end may hold a row in a transaction of its own.
_NO_LONG_WAIT: Final = "SET LOCAL lock_timeout = '3s'; SET LOCAL statement_timeout = '5s'"
_CANCELLED: Final = frozenset({Sync.Status.CANCELLING, Sync.Status.CANCELLED})
#: What a process ends with that its watchdog ended.
EXIT_CODE: Final = 75


def new_steps() -> Steps:
    """Return the steps of a worker that begins, with the installation's limit."""
    return Steps(settings.CORECUBE_STEP_SECONDS)


class Watchdog:
    """Watches one worker of a sync while the block runs, from a thread of its own."""

    def __init__(self, sync: Sync, worker: UUID, steps: Steps) -> None:
        self._sync_id = sync.pk
        self._worker = worker
        self._steps = steps
        self._over = Event()
        #: When it spoke up last, and when the worker was told to stop.
        self._beaten = self._ended = 0.0
        self._watched = threading.get_ident()
        self._thread = Thread(target=self._run, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._beat()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._over.wait(_LOOK_SECONDS):
                self._look_safely()
        finally:
            connection.close()

    def _look_safely(self) -> None:
        try:
            self._look()
            if monotonic() - self._beaten >= settings.CORECUBE_LOST_SECONDS / _BEATS:
                with _briefly():
                    self._beat()
        except Error as error:
            # The work itself meets it too, and knows what to do.
            logger.info("watchdog.failed error=%s", type(error).__name__)
            connection.close()

    def _beat(self) -> None:
        beat(self._sync_id, self._worker)
        self._beaten = monotonic()

    def _look(self) -> None:
        if step := self._steps.overdue():
            self._give_up(step)
        # One that is not there may not be committed yet.
        status = Sync.objects.filter(pk=self._sync_id).values_list("status", flat=True).first()
        if status in {None, Sync.Status.RUNNING}:
            return
        if not self._steps.is_ended:
            self._steps.end()
            self._ended = monotonic()
        children.interrupt(self._watched)
        if status in _CANCELLED and monotonic() - self._ended >= _GRACE_SECONDS and not self._over.is_set():
            self._leave()

    def _give_up(self, step: Step) -> NoReturn:
        """Say what hung, give back the worker's claims, and end the process."""
        message = f"{step.doing} made no progress for {step.seconds:.0f} seconds (CORECUBE_STEP_SECONDS)."
        logger.error("watchdog.ends_process doing=%s items=%d", step.doing.name.lower(), len(step.claims))
        try:
            with _briefly():
                give_back(self._sync_id, self._worker, step, message)
        except Error as error:
            # They come back in any case, once the worker has given no sign of life.
            logger.warning("watchdog.nothing_given_back error=%s", type(error).__name__)
        end_process()

    def _leave(self) -> NoReturn:
        """End a process that did not stop when its sync was cancelled."""
        logger.error("watchdog.ends_process doing=cancelled")
        try:
            with _briefly():
                claims.drop(Sync(pk=self._sync_id), self._worker)
        except Error as error:
            logger.warning("watchdog.nothing_given_back error=%s", type(error).__name__)
        end_process()


def give_back(sync_id: UUID, worker: UUID, step: Step, message: str) -> None:
    """Fail the item that a step hangs over, and give back what else the worker holds.

    Of several items nobody knows which one it is: each is tried by itself then, and fails when it was tried often.
    """
    guilty = claims.held(step.claims, worker)
    if len(step.claims) == 1:
        claims.fail(guilty, sync_id=sync_id, reason="too_slow", message=message)
    else:
        claims.return_ended(guilty, message)
    claims.release(worker)


@contextmanager
def _briefly() -> Iterator[None]:
    """Run a transaction that waits for nobody for long."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_NO_LONG_WAIT)
        yield


def end_process() -> NoReturn:
    """End this process and its children at once: whatever else it does may hang as well."""
    children.kill()
    logging.shutdown()
    os._exit(EXIT_CODE)
