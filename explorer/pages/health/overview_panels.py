"""The figures and problems of the overview."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from corecube.models import ApiKey
from explorer import wording
from explorer.charts.traffic import milliseconds
from explorer.pages.connections.panels import ConnectionRow
from explorer.pages.health.panels import HealthRow
from retrieval.ingest.jobs import STALLED
from retrieval.models import Sync
from retrieval.records.traffic import Figures

#: Periods of the figures: label, duration, width of a bin, and name of the period in the query log.
RANGES: Final = {
    "24h": ("24 hours", timedelta(hours=24), timedelta(hours=1), "day"),
    "7d": ("7 days", timedelta(days=7), timedelta(hours=6), "week"),
    "30d": ("30 days", timedelta(days=30), timedelta(days=1), "month"),
}
#: Time before its expiry from which an API key is listed.
KEY_ENDS_SOON: Final = timedelta(days=14)
_LAST_SYNC: Final = {
    Sync.Status.FAILED.value: ("bad", "The last sync of {} failed"),
    Sync.Status.STOPPED.value: ("warn", "A sync of {} stopped before deleting many documents"),
    STALLED: ("bad", "The sync of {} is stalled"),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its label."""

    label: str
    value: str
    #: The URL of the listed items; empty without one.
    address: str = ""


@dataclass(frozen=True, slots=True)
class _Problem:
    #: bad or warn.
    tone: str
    text: str
    detail: str
    address: str


def search_figures(total: Figures, since: str) -> tuple[Figure, ...]:
    """Return the figures of the searches; `since` names the period in the query log."""
    return (
        Figure("Searches", f"{total.searches:,}", _log(since)),
        Figure("Median latency", _ms(total.p50)),
        Figure("p95 latency", _ms(total.p95)),
        *(
            Figure(label, f"{total.share(count):.1f} %" if total.searches else "–", _log(since, flag))  # noqa: RUF001 -- a dash for nothing
            for label, count, flag in (
                ("Refused", total.refused, "refused"),
                ("Degraded", total.degraded, "degraded"),
                ("No hits", total.empty, "empty"),
            )
        ),
    )


def _ms(value: float | None) -> str:
    return milliseconds(value) if value is None else f"{milliseconds(value)} ms"


def _log(since: str, flag: str = "") -> str:
    query = {"flag": flag, "since": since} if flag else {"since": since}
    return f"{reverse('explorer:log')}?{urlencode(query)}"


def store_figures(rows: Sequence[ConnectionRow]) -> tuple[Figure, ...]:
    """Return the figures of the stored documents."""
    connections = reverse("explorer:connections")
    return (
        Figure("Connections", f"{len(rows):,}", connections),
        Figure("Documents", f"{sum(row.documents for row in rows):,}", reverse("explorer:documents")),
        Figure("Chunks", f"{sum(row.chunks for row in rows):,}"),
    )


def problems(
    rows: Iterable[ConnectionRow], keys: Iterable[ApiKey], parts: Iterable[HealthRow], now: datetime
) -> tuple[_Problem, ...]:
    """Return the problems, errors first."""
    unwell = (part for part in parts if not part.is_well)
    health = reverse("explorer:health")
    found = [
        *(_Problem(it.tone, it.label, it.detail, f"{health}#part-{it.key}") for it in unwell),
        *_of_connections(rows),
        *(_expiring(key, now) for key in keys),
    ]
    return tuple(sorted(found, key=lambda it: it.tone != "bad"))


def _of_connections(rows: Iterable[ConnectionRow]) -> Iterator[_Problem]:
    for row in rows:
        if not row.enabled:
            continue
        address = reverse("explorer:connection", args=[row.slug])
        if row.sync is None:
            if row.kind != "push":
                yield _Problem("warn", f"{row.name} was never synced", "Its documents cannot be found yet.", address)
        elif row.sync.status in _LAST_SYNC:
            tone, text = _LAST_SYNC[row.sync.status]
            yield _Problem(tone, text.format(row.name), row.sync.message or row.sync.since, address)
        if row.problems:
            count = wording.counted(row.problems, "document")
            yield _Problem("warn", f"{count} of {row.name} could not be indexed", "", f"{address}#problems")


def _expiring(key: ApiKey, now: datetime) -> _Problem:
    ended = key.expires_at is not None and key.expires_at <= now
    days = max(0, (key.expires_at - now).days) if key.expires_at else 0
    state = "has expired" if ended else f"expires in {wording.counted(days, 'day')}" if days else "expires today"
    return _Problem("warn", f"The API key {key.name} of {key.user.username} {state}", "", reverse("explorer:keys"))
