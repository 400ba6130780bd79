"""Which worker processes there are: each says now and then that it is alive."""

import logging
import os
import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from django.utils import timezone
from kombu.exceptions import OperationalError as QueueError

from corecube.celery import app
from retrieval.ingest.heartbeat import alive_since
from retrieval.models import Worker

logger = logging.getLogger(__name__)

#: A page waits no longer than this for a queue that does not answer.
_HASTE: Final = {"socket_connect_timeout": 1, "socket_timeout": 1, "max_retries": 0}
#: A worker that was not heard of for so long is forgotten.
_FORGOTTEN: Final = timedelta(hours=1)


def give_sign(*, host: str = "", pid: int = 0) -> None:
    """Note that this process works, and forget those that were not heard of for an hour."""
    now = timezone.now()
    Worker.objects.update_or_create(
        host=host or socket.gethostname(),
        pid=pid or os.getpid(),
        defaults={"seen_at": now},
        create_defaults={"seen_at": now, "started_at": now},
    )
    Worker.objects.filter(seen_at__lt=now - _FORGOTTEN).delete()


def take_leave() -> None:
    """Forget this process, which is about to end."""
    Worker.objects.filter(host=socket.gethostname(), pid=os.getpid()).delete()


def messages_waiting() -> int | None:
    """Return how many messages wait for a worker; None when the queue does not answer."""
    queue = app.connection_for_read(transport_options=_HASTE)
    try:
        with queue:
            channel: Any = queue.default_channel
            return int(channel.queue_declare(app.conf.task_default_queue, passive=True).message_count)
    except queue.channel_errors:
        # Nobody has sent anything yet.
        return 0
    except (QueueError, OSError) as error:
        logger.warning("queue.unavailable error=%s", type(error).__name__)
        return None


def lost(workers: Sequence[Worker]) -> list[Worker]:
    """Return those that fell silent without taking leave."""
    since = alive_since()
    return [worker for worker in workers if worker.seen_at < since]
