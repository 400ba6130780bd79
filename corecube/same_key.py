"""Whether all machines have the same SECRET_KEY. With different ones, sign-ins and secrets fail on some of them.

Each process notes the id of its key in the database while it runs, and a process with another key does not start.
"""

import logging
import os
import socket
import time
from datetime import timedelta
from typing import Any, Final

from django.db.models import QuerySet
from django.db.models.functions import Now

from corecube.errors import ConfigError
from corecube.models import KeyUse
from corecube.secrets import key_ids

logger = logging.getLogger(__name__)

_NOTE_SECONDS: Final = 20.0  #: A process notes its key at most this often.
_ALIVE: Final = timedelta(seconds=60)
_noted: "Final[dict[tuple[str, int], float]]" = {}  #: When each process and key was noted, by the monotonic clock.


def require_same_key() -> None:
    """Raise ConfigError if a process that runs elsewhere has another key."""
    if other := _others().first():
        raise ConfigError(
            f"SECRET_KEY differs from that of {other.host}, which uses the same database. Set the same SECRET_KEY on "
            "every machine, or copy the file `secret_key` of the data directory there. If you have changed the key, "
            "stop all processes with the old one and wait a minute."
        )


def note_key() -> None:
    """Note that this process runs with its key, unless that was noted just now; log the hosts with other keys."""
    key, pid, now = key_ids()[0], os.getpid(), time.monotonic()
    if now - _noted.get((key, pid), -_NOTE_SECONDS) < _NOTE_SECONDS:
        return
    facts: dict[str, Any] = {"key_id": key, "seen_at": Now()}
    KeyUse.objects.update_or_create(host=socket.gethostname(), pid=pid, defaults=facts)
    KeyUse.objects.filter(seen_at__lt=Now() - _ALIVE).delete()
    _noted[key, pid] = now
    if hosts := sorted({it.host for it in _others()}):
        # Both started at the same moment.
        logger.error("secret_key.differs hosts=%s", ",".join(hosts))


def forget_key() -> None:
    """Note that this process ends."""
    KeyUse.objects.filter(host=socket.gethostname(), pid=os.getpid()).delete()
    _noted.clear()


def _others() -> QuerySet[KeyUse]:
    """Return the other processes that run with another key, the one seen last first."""
    alive = KeyUse.objects.filter(seen_at__gt=Now() - _ALIVE).exclude(key_id__in=key_ids())
    # In a container that was restarted, an earlier process had this one's number.
    return alive.exclude(host=socket.gethostname(), pid=os.getpid()).order_by("-seen_at")
