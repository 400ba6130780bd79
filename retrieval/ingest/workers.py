"""The worker processes: each stores a heartbeat regularly."""

import logging
import os
import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from django.utils import timezone
from kombu.exceptions import OperationalError as QueueError

from corecube.celery import app
from retrieval.ingest.claims import alive_since
from retrieval.models import Worker

logger = logging.getLogger(__name__)

#: Pages do not wait longer for a queue that does not answer.
_SHORT_TIMEOUTS: Final = {"socket_connect_timeout": 1, "socket_timeout": 1, "max_retries": 0}
_MAX_AGE: Final = timedelta(hours=1)


def record_worker(*, host: str = "", pid: int = 0) -> None:
    """Store a heartbeat of this process, and delete the rows of workers without one for an hour."""
    now = timezone.now()
    Worker.objects.update_or_create(
        host=host or socket.gethostname(),
        pid=pid or os.getpid(),
        defaults={"seen_at": now},
        create_defaults={"seen_at": now, "started_at": now},
    )
    Worker.objects.filter(seen_at__lt=now - _MAX_AGE).delete()


def remove_worker() -> None:
    """Delete the row of this process, which is about to end."""
    Worker.objects.filter(host=socket.gethostname(), pid=os.getpid()).delete()


def messages_waiting() -> int | None:
    """Return how many messages wait for a worker; None when the queue does not answer."""
    queue = app.connection_for_read(transport_options=_SHORT_TIMEOUTS)
    try:
        with queue:
            channel: Any = queue.default_channel
            return int(channel.queue_declare(app.conf.task_default_queue, passive=True).message_count)
    except queue.channel_errors:
        # No message was ever sent.
        return 0
    except (QueueError, OSError) as error:
        logger.warning("queue.unavailable error=%s", type(error).__name__)
        return None


def lost_workers(workers: Sequence[Worker]) -> list[Worker]:
    """Return the workers without a recent heartbeat."""
    since = alive_since()
    return [worker for worker in workers if worker.seen_at < since]
