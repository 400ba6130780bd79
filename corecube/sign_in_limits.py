"""How many failed sign-ins are accepted: under a name from one address, under a name, and from an address.

An attempt counts before its password is checked, and is given back when the password was right: attempts at the same
time cannot pass a limit together. Each limit is a bucket that fills evenly, like an API key's (`corecube.rate_limit`):
once it is empty there is one attempt at a time, so nobody stays locked out. A browser in which the user has signed in
before has a bucket to itself, which attempts from elsewhere cannot empty. The clock is the database's.
"""

import ipaddress
import math
import unicodedata
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Final, Self

from django.conf import settings
from django.db import connection, transaction
from django.db.models import DurationField, ExpressionWrapper, F, Q, QuerySet
from django.db.models.functions import Greatest, Now
from django.utils.crypto import salted_hmac

from corecube.errors import RefusedForNowError
from corecube.models import SignInPace

_WINDOW: Final = timedelta(minutes=15)
#: Stands for the name in the bucket of refusals by the sign-in provider; no digest is this short.
_PROVIDER: Final = "provider"
_PROVIDER_REFUSALS: Final = 30
_IPV6_NETWORK_BITS: Final = 64
_MAX_ADDRESS_CHARACTERS: Final = 64
#: Rows that one attempt deletes at the most.
_BATCH: Final = 100
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
    """One bucket. Empty fields stand for any name, address or browser."""

    name: str
    address: str
    browser: str
    #: Failed attempts in 15 minutes.
    failures: int

    @property
    def label(self) -> str:
        """What the bucket is counted by, in words: "name and address"."""
        parts = {"name": self.name, "address": self.address, "browser": self.browser}
        return " and ".join(word for word, value in parts.items() if value)

    @property
    def interval(self) -> timedelta:
        """How long one attempt takes to come back."""
        return _WINDOW / self.failures

    def rows(self) -> QuerySet[SignInPace]:
        """Return the bucket's row, if there is one."""
        return SignInPace.objects.filter(name=self.name, address=self.address, browser=self.browser)


class SignInLimitError(RefusedForNowError):
    """Too many passwords were wrong."""

    code: ClassVar[str] = "sign_in_limit"

    def __init__(self, limit: Limit, *, retry_after_seconds: int) -> None:
        message = f"Too many wrong passwords. Try again in {_in_words(retry_after_seconds)}."
        super().__init__(message, retry_after_seconds=retry_after_seconds)
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Attempt:
    """A sign-in with a password, and the buckets that it counts against."""

    username: str
    limits: tuple[Limit, ...]

    @classmethod
    def of(cls, username: str, address: str, browser: str = "") -> Self:
        """Return the attempt under a name from an address, in a browser that is known for this name or in none."""
        name, network = name_digest(username), network_of(address)
        few = settings.CORECUBE_SIGN_IN_FAILURES
        if browser:
            return cls(username, (Limit(name, "", browser, few),))
        limits = (
            Limit(name, network, "", few),
            Limit(name, "", "", settings.CORECUBE_SIGN_IN_FAILURES_PER_NAME),
            Limit("", network, "", settings.CORECUBE_SIGN_IN_FAILURES_PER_ADDRESS),
        )
        return cls(username, limits)


def name_digest(username: str) -> str:
    """Return what stands for a name: the same for all spellings that people take for the same."""
    spelling = unicodedata.normalize("NFKC", username).strip().casefold()
    return salted_hmac("corecube.sign_in", spelling.encode("utf-8", "replace"), algorithm="sha256").hexdigest()


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
    """Count an attempt; raise SignInLimitError, and count nothing, when one of its buckets is empty."""
    with transaction.atomic():
        # In the same order everywhere, so that two attempts never wait for each other.
        full = next((limit for limit in sorted(attempt.limits) if not _take(limit)), None)
        if full:
            transaction.set_rollback(True)
    if full:
        raise SignInLimitError(full, retry_after_seconds=max(map(_wait_seconds, attempt.limits)))
    _delete_full_buckets()


def give_back(attempt: Attempt) -> None:
    """Take back the count of an attempt that was right; what failed under this name from here is forgiven."""
    with transaction.atomic():
        for limit in sorted(attempt.limits):
            if limit.name and (limit.address or limit.browser):
                limit.rows().delete()
            else:
                limit.rows().update(paced_until=F("paced_until") - limit.interval)


def begins_refusing(limit: Limit) -> bool:
    """Return whether the audit log does not yet know that a bucket is empty; it does for the next 15 minutes."""
    is_new = Q(noted_until__isnull=True) | Q(noted_until__lte=Now())
    return bool(limit.rows().filter(is_new).update(noted_until=Now() + _WINDOW))


def may_note_provider_refusal(address: str) -> bool:
    """Count a refusal by the sign-in provider; return whether the audit log has room for it."""
    return _take(Limit(_PROVIDER, network_of(address), "", _PROVIDER_REFUSALS))


def lift(*, username: str = "", address: str = "") -> int:
    """Forget the failed attempts under a name, from an address, or both; all of them without either.

    Return how many buckets that fills.
    """
    rows = SignInPace.objects.exclude(name=_PROVIDER)
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
    """Return the whole seconds until a bucket has room for one attempt, at least 1."""
    ahead = ExpressionWrapper(Greatest(F("paced_until"), Now()) - Now(), output_field=DurationField())
    lead = limit.rows().values_list(ahead, flat=True).first() or timedelta()
    return max(1, math.ceil((lead - (_WINDOW - limit.interval)).total_seconds()))


def _delete_full_buckets() -> None:
    """Delete rows that limit nothing any more; attempts at the same time do not wait for each other."""
    past = SignInPace.objects.filter(paced_until__lt=Now()).order_by("paced_until")
    with transaction.atomic():
        ids = list(past.select_for_update(skip_locked=True).values_list("pk", flat=True)[:_BATCH])
        if ids:
            SignInPace.objects.filter(pk__in=ids).delete()


def _in_words(seconds: int) -> str:
    minutes = math.ceil(seconds / 60)
    if minutes > 1:
        return f"{minutes} minutes"
    return "1 second" if seconds == 1 else f"{seconds} seconds"
