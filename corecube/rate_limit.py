"""How many requests an API key may send in a minute. Counted in the database, so the same for every process.

A bucket that holds a minute's requests and fills evenly, kept as one moment per key: when everything that was sent
would have come, had it come at the rate (the generic cell rate algorithm, ITU-T I.371). The clock is the database's.
"""

import math
from datetime import timedelta
from typing import Final

from django.db import connection, transaction
from django.db.models import DurationField, ExpressionWrapper, F, Q
from django.db.models.functions import Coalesce, Greatest, Now

from corecube.errors import RateLimitedError
from corecube.models import ApiKey

_MINUTE: Final = timedelta(minutes=1)


def take(key: ApiKey) -> None:
    """Count one request of a key; raise RateLimitedError, and count nothing, when it has sent its minute's already.

    A key without a limit costs nothing here.
    """
    if key.requests_per_minute is None:
        return
    interval = _MINUTE / key.requests_per_minute
    is_within = Q(paced_until__isnull=True) | Q(paced_until__lte=Now() + (_MINUTE - interval))
    # A server that crashes may forget the last second's requests; waiting for the disk would cost more than a search.
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit TO off")
        taken = ApiKey.objects.filter(is_within, pk=key.pk).update(
            paced_until=Greatest(Coalesce(F("paced_until"), Now()), Now()) + interval
        )
    if not taken:
        raise RateLimitedError(retry_after_seconds=_wait(key, interval))


def charge(key: ApiKey, requests: int) -> None:
    """Count requests of a key that are let in whatever it has sent; what goes beyond its minute's it waits for later.

    So what does the work of many requests counts as many, and a key with a low limit can still send it.
    """
    if key.requests_per_minute is None or requests < 1:
        return
    cost = requests * (_MINUTE / key.requests_per_minute)
    ApiKey.objects.filter(pk=key.pk).update(paced_until=Greatest(Coalesce(F("paced_until"), Now()), Now()) + cost)


def _wait(key: ApiKey, interval: timedelta) -> int:
    """Return the whole seconds until there is room for one request, at least 1."""
    ahead = ExpressionWrapper(F("paced_until") - Now(), output_field=DurationField())
    lead = ApiKey.objects.filter(pk=key.pk).values_list(ahead, flat=True).first() or timedelta()
    return max(1, math.ceil((lead - (_MINUTE - interval)).total_seconds()))
