"""The rate limit of API keys, counted for all processes: in Redis where there is one, else in the database.

A token bucket of one minute, stored as one time per key: when all requests would have arrived at the permitted rate
(the generic cell rate algorithm, ITU-T I.371). The clock is that of Redis or of the database.
"""

import math
from datetime import timedelta
from typing import Final

from django.db import connection, transaction
from django.db.models import DurationField, ExpressionWrapper, F, Q
from django.db.models.functions import Coalesce, Greatest, Now

from corecube.errors import RateLimitedError
from corecube.models import ApiKey
from corecube.shared_state.store import Store, shared

_MINUTE: Final = timedelta(minutes=1)


def take(key: ApiKey) -> None:
    """Count one request of a key with a limit; raise RateLimitedError without counting if the limit is exceeded."""
    if key.requests_per_minute is None:
        return
    interval = _MINUTE / key.requests_per_minute
    store = _store()
    lead = _taken_in(store, key, interval) if store else _taken_in_database(key, interval)
    if lead is not None:
        seconds = math.ceil((lead - (_MINUTE - interval)).total_seconds())
        raise RateLimitedError(retry_after_seconds=max(1, seconds))


def charge(key: ApiKey, requests: int) -> None:
    """Count additional requests of a key without rejecting them; later requests wait if they exceed the limit.

    Expensive requests count as several, and a key with a low limit can still send them.
    """
    if key.requests_per_minute is None or requests < 1:
        return
    cost = requests * (_MINUTE / key.requests_per_minute)
    if store := _store():
        _taken_in(store, key, cost, limit=timedelta.max)
        return
    ApiKey.objects.filter(pk=key.pk).update(paced_until=Greatest(Coalesce(F("paced_until"), Now()), Now()) + cost)


def _store() -> Store | None:
    """Return the store that all processes count in; None for the database."""
    store = shared()
    return None if store is None or store.is_away else store


def _taken_in(store: Store, key: ApiKey, cost: timedelta, *, limit: timedelta = _MINUTE) -> timedelta | None:
    """Move the key's time by a cost and return None; where that is beyond the limit, return how far ahead it is."""

    def pace(until: float | None, now: float) -> tuple[float | None, timedelta | None]:
        lead = timedelta(seconds=max(0.0, (until or now) - now))
        if lead > limit - cost:
            return until, lead
        return now + (lead + cost).total_seconds(), None

    return store.update(f"requests of key {key.pk}", pace)


def _taken_in_database(key: ApiKey, interval: timedelta) -> timedelta | None:
    is_within = Q(paced_until__isnull=True) | Q(paced_until__lte=Now() + (_MINUTE - interval))
    # A crash may lose the last second of counts; waiting for the disk would take longer than a search.
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit TO off")
        taken = ApiKey.objects.filter(is_within, pk=key.pk).update(
            paced_until=Greatest(Coalesce(F("paced_until"), Now()), Now()) + interval
        )
    if taken:
        return None
    ahead = ExpressionWrapper(F("paced_until") - Now(), output_field=DurationField())
    return ApiKey.objects.filter(pk=key.pk).values_list(ahead, flat=True).first() or timedelta()
