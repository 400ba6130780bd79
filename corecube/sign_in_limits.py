"""Limits of failed sign-ins: by name and address, by name, and by address.

An attempt is counted before the password is checked, and removed if it was correct, so that concurrent attempts cannot
exceed a limit. Each limit is a token bucket as in `corecube.rate_limit`: an empty bucket still permits single attempts,
so nobody is locked out. A browser in which the user has signed in before has its own bucket, which attempts from
elsewhere do not affect. The clock is that of the database.
"""

import ipaddress
import math
import unicodedata
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Self

from django.conf import settings
from django.db import connection, transaction
from django.db.models import DurationField, ExpressionWrapper, F, Q, QuerySet
from django.db.models.functions import Greatest, Now
from django.utils.crypto import salted_hmac

from corecube.errors import RefusedForNowError
from corecube.models import SignInPace

_WINDOW: Final = timedelta(minutes=15)
_PROVIDER: Final = "provider"  #: The name in the bucket of refusals by the sign-in provider; digests are longer.
_PROVIDER_REFUSALS: Final = 30
_REGISTRATION: Final = "client registration"  #: The name in the bucket of clients that register themselves.
_REGISTRATIONS: Final = 20
_IPV6_NETWORK_BITS: Final = 64
_MAX_ADDRESS_CHARACTERS: Final = 64
_BATCH: Final = 100  #: Limit of rows deleted per attempt.
_TAKE_SQL: Final = """
INSERT INTO corecube_signinpace AS pace (name, address, browser, paced_until)
VALUES (%(name)s, %(address)s, %(browser)s, statement_timestamp() + make_interval(secs => %(interval)s))
ON CONFLICT (name, address, browser) DO UPDATE
SET paced_until = greatest(pace.paced_until, statement_timestamp()) + make_interval(secs => %(interval)s)
WHERE pace.paced_until <= statement_timestamp() + make_interval(secs => %(lead)s)
RETURNING 1
"""


@dataclass(frozen=True, slots=True, order=True)
class Limit:
    """A bucket. An empty field matches any name, address or browser."""

    name: str
    address: str
    browser: str
    failures: int  #: Failed attempts in 15 minutes.

    @property
    def label(self) -> str:
        """The fields of the bucket as text: "name and address"."""
        parts = {"name": self.name, "address": self.address, "browser": self.browser}
        return " and ".join(word for word, value in parts.items() if value)

    @property
    def interval(self) -> timedelta:
        """The time after which one attempt is permitted again."""
        return _WINDOW / self.failures

    def rows(self) -> QuerySet[SignInPace]:
        """Return the row of the bucket, if any."""
        return SignInPace.objects.filter(name=self.name, address=self.address, browser=self.browser)


class SignInLimitError(RefusedForNowError, code="sign_in_limit"):
    """Too many failed sign-ins."""

    def __init__(self, limit: Limit, *, retry_after_seconds: int) -> None:
        message = f"Too many failed sign-ins. Try again in {_in_words(retry_after_seconds)}."
        super().__init__(message, retry_after_seconds=retry_after_seconds)
        self.limit = limit


class RegistrationLimitError(RefusedForNowError, code="registration_limit"):
    """Too many clients were registered from this address. Try again later."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A sign-in with a password, and its buckets."""

    username: str
    limits: tuple[Limit, ...]

    @classmethod
    def of(cls, username: str, address: str, browser: str = "") -> Self:
        """Return the attempt; `browser` is the mark of a browser known for this name, or empty."""
        name, network = name_digest(username), network_of(address)
        failures = settings.CORECUBE_SIGN_IN_FAILURES
        if browser:
            return cls(username, (Limit(name, "", browser, failures),))
        limits = (
            Limit(name, network, "", failures),
            Limit(name, "", "", settings.CORECUBE_SIGN_IN_FAILURES_PER_NAME),
            Limit("", network, "", settings.CORECUBE_SIGN_IN_FAILURES_PER_ADDRESS),
        )
        return cls(username, limits)


def name_digest(username: str) -> str:
    """Return a digest of a name, the same for equivalent spellings."""
    normalized = unicodedata.normalize("NFKC", username).strip().casefold()
    return salted_hmac("corecube.sign_in", normalized.encode("utf-8", "replace"), algorithm="sha256").hexdigest()


def network_of(address: str) -> str:
    """Return an IPv4 address, the /64 network of an IPv6 address, or "unknown" where there is none."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:_MAX_ADDRESS_CHARACTERS] or "unknown"
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), _IPV6_NETWORK_BITS), strict=False))


def count(attempt: Attempt) -> None:
    """Count an attempt; raise SignInLimitError without counting if one of its buckets is empty."""
    with transaction.atomic():
        # In a fixed order, to prevent deadlocks.
        full = next((limit for limit in sorted(attempt.limits) if not _take(limit)), None)
        if full:
            transaction.set_rollback(True)
    if full:
        raise SignInLimitError(full, retry_after_seconds=max(map(_wait_seconds, attempt.limits)))
    # Expired rows go, without waiting for concurrent attempts.
    past = SignInPace.objects.filter(paced_until__lt=Now()).order_by("paced_until")
    with transaction.atomic():
        ids = list(past.select_for_update(skip_locked=True).values_list("pk", flat=True)[:_BATCH])
        if ids:
            SignInPace.objects.filter(pk__in=ids).delete()


def undo_attempt(attempt: Attempt) -> None:
    """Remove the count of a successful attempt, and the failures of this name from this address or browser."""
    with transaction.atomic():
        for limit in sorted(attempt.limits):
            if limit.name and (limit.address or limit.browser):
                limit.rows().delete()
            else:
                limit.rows().update(paced_until=F("paced_until") - limit.interval)


def begins_refusing(limit: Limit) -> bool:
    """Return whether to record that a bucket is empty, at most once in 15 minutes."""
    is_new = Q(noted_until__isnull=True) | Q(noted_until__lte=Now())
    return bool(limit.rows().filter(is_new).update(noted_until=Now() + _WINDOW))


def may_note_provider_refusal(address: str) -> bool:
    """Count a refusal by the sign-in provider; return whether to record it."""
    return _take(Limit(_PROVIDER, network_of(address), "", _PROVIDER_REFUSALS))


def count_registration(address: str) -> None:
    """Count the registration of an OAuth client; raise RegistrationLimitError for too many from an address."""
    limit = Limit(_REGISTRATION, network_of(address), "", _REGISTRATIONS)
    if not _take(limit):
        raise RegistrationLimitError(retry_after_seconds=_wait_seconds(limit))


def reset_limits(*, username: str = "", address: str = "") -> int:
    """Delete the failed attempts of a name, an address, both, or all; return the number of deleted buckets."""
    rows = SignInPace.objects.exclude(name__in=[_PROVIDER, _REGISTRATION])
    rows = rows.filter(name=name_digest(username)) if username else rows
    rows = rows.filter(address=network_of(address)) if address else rows
    return rows.delete()[0]


def _take(limit: Limit) -> bool:
    values: dict[str, str | float] = {
        "name": limit.name,
        "address": limit.address,
        "browser": limit.browser,
        "interval": limit.interval.total_seconds(),
        "lead": (_WINDOW - limit.interval).total_seconds(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_SQL, values)
        return cursor.fetchone() is not None


def _wait_seconds(limit: Limit) -> int:
    """Return the seconds until a bucket permits an attempt, at least 1."""
    ahead = ExpressionWrapper(Greatest(F("paced_until"), Now()) - Now(), output_field=DurationField())
    lead = limit.rows().values_list(ahead, flat=True).first() or timedelta()
    return max(1, math.ceil((lead - (_WINDOW - limit.interval)).total_seconds()))


def _in_words(seconds: int) -> str:
    minutes = math.ceil(seconds / 60)
    if minutes > 1:
        return f"{minutes} minutes"
    return "1 second" if seconds == 1 else f"{seconds} seconds"
