"""Scheduled backups in Celery workers."""

import logging
import os
from contextlib import suppress
from threading import Thread, get_native_id
from time import monotonic
from typing import Final

from celery import shared_task
from django.conf import settings
from kombu.exceptions import OperationalError as QueueError

from corecube.backup.create import back_up
from corecube.database import release_connection
from corecube.errors import ConflictError, CoreCubeError
from retrieval.operations.backups import backup_request, is_backup_due

logger = logging.getLogger(__name__)

_NICE: Final = 10  #: Searches come first where the processors are busy.
_SEND_SECONDS: Final = 60.0  #: Between two messages about the same backup.
_sent_at = -_SEND_SECONDS


@shared_task(name="retrieval.make_backup")
def make_backup() -> None:
    """Make the backup that is due; one that is missed begins at the next check."""
    # A thread, because only a thread can have a lower priority than the process that goes on after it.
    thread = Thread(target=_make_backup, name="backup")
    thread.start()
    thread.join()


def _make_backup() -> None:
    with suppress(OSError):  # only Linux has priorities of threads
        os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICE)
    try:
        if is_backup_due():
            back_up(backup_request())
    except ConflictError:
        logger.info("backup.running")
    except CoreCubeError as error:
        logger.error("backup.failed reason=%s", error)  # noqa: TRY400 -- the reason says it all
    finally:
        release_connection()


def tick() -> None:
    """Send workers a message about a backup that is due."""
    global _sent_at  # noqa: PLW0603 -- one message a minute for each worker
    if not settings.CORECUBE_BACKUP_TO or monotonic() - _sent_at < _SEND_SECONDS or not is_backup_due():
        return
    _sent_at = monotonic()
    try:
        make_backup.apply_async(retry=False)
    except (QueueError, OSError) as error:
        logger.warning("backup.not_sent error=%s", type(error).__name__)
