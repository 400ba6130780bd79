"""The overview and the health page, for admins."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from corecube import audit
from corecube.access import Principal
from corecube.data import read_toml
from corecube.env import readings
from corecube.http import HtmxHttpRequest
from corecube.models import ApiKey, AuditEvent, Connection, Grant, User
from corecube.overload import overload_guard
from explorer import wording
from explorer.charts.traffic import milliseconds, traffic_charts
from explorer.pages.connections.jobs import sync_row
from explorer.pages.connections.views import connection_rows
from explorer.pages.evaluation.schedules import alarm_words
from explorer.pages.health.panels import Figure, HealthRow, health_rows, load_panel, overall
from explorer.pages.health.summary import quality_trends, source_rows, unanswered_topics, usage_figures
from explorer.pages.log.panels import log_row, with_facts
from explorer.viewer import admin_action, admin_page, viewer_of
from retrieval.engine.types import Verdict
from retrieval.evaluation.schedules import alarms
from retrieval.ingest.jobs import STALLED, job_states
from retrieval.models import Document, EvaluationRun, QuestionSet, SearchRecord, Sync
from retrieval.operations.installation import installation
from retrieval.records.traffic import Figures, traffic

#: Periods of the figures: label, duration, width of a bin, and name of the period in the query log.
RANGES: Final = {
    "24h": ("24 hours", timedelta(hours=24), timedelta(hours=1), "day"),
    "7d": ("7 days", timedelta(days=7), timedelta(hours=6), "week"),
    "30d": ("30 days", timedelta(days=30), timedelta(days=1), "month"),
}
KEY_ENDS_SOON: Final = timedelta(days=14)  #: Time before its expiry from which an API key is listed.
_LAST_SYNC: Final = {
    Sync.Status.FAILED.value: ("bad", "The last sync of {} failed"),
    Sync.Status.STOPPED.value: ("warn", "A sync of {} stopped before deleting many documents"),
    STALLED: ("bad", "The sync of {} is stalled"),
}
_GUIDE: Final = read_toml("explorer.pages.health", "guide.toml")
_ADVICE: Final = read_toml("explorer.pages.health", "advice.toml")
_DISMISSED = "guide.dismissed"
_LAST_SEARCHES: Final = 8
_MAX_JOBS: Final = 10
_MAX_KEYS: Final = 10


@dataclass(frozen=True, slots=True)
class _Problem:
    tone: str  #: bad or warn.
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


def store_figures(rows: Sequence[dict[str, Any]]) -> tuple[Figure, ...]:
    """Return the figures of the stored documents."""
    connections = reverse("explorer:connections")
    return (
        Figure("Connections", f"{len(rows):,}", connections),
        Figure("Documents", f"{sum(row['documents'] for row in rows):,}", reverse("explorer:documents")),
        Figure("Chunks", f"{sum(row['chunks'] for row in rows):,}"),
    )


def problems(
    rows: Iterable[dict[str, Any]], keys: Iterable[ApiKey], parts: Iterable[HealthRow], now: datetime
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


def _of_connections(rows: Iterable[dict[str, Any]]) -> Iterator[_Problem]:
    for row in rows:
        if not row["connection"].enabled:
            continue
        address = reverse("explorer:connection", args=[row["connection"].slug])
        if row["sync"] is None:
            if row["connection"].kind != "push":
                yield _Problem(
                    "warn", f"{row['connection'].name} was never synced", "Its documents cannot be found yet.", address
                )
        elif row["sync"]["status"] in _LAST_SYNC:
            tone, text = _LAST_SYNC[row["sync"]["status"]]
            yield _Problem(
                tone, text.format(row["connection"].name), row["sync"]["message"] or row["sync"]["since"], address
            )
        if row["problems"]:
            count = wording.counted(row["problems"], "document")
            yield _Problem(
                "warn", f"{count} of {row['connection'].name} could not be indexed", "", f"{address}#problems"
            )


def _expiring(key: ApiKey, now: datetime) -> _Problem:
    ended = key.expires_at is not None and key.expires_at <= now
    days = max(0, (key.expires_at - now).days) if key.expires_at else 0
    state = "has expired" if ended else f"expires in {wording.counted(days, 'day')}" if days else "expires today"
    return _Problem("warn", f"The API key {key.name} of {key.user.username} {state}", "", reverse("explorer:keys"))


def guide(viewer: User) -> dict[str, Any]:
    """Return the steps with their state; the only question set is opened at once."""
    useful = Q(verdict__in=(Verdict.ANSWERABLE.value, Verdict.PARTIAL.value))
    done = {
        "source": Document.objects.exists(),
        "people": Grant.objects.exclude(user=viewer).exists(),
        "question": SearchRecord.objects.filter(useful, hit_count__gt=0).exists(),
        "measure": EvaluationRun.objects.exists(),
    }
    sets = QuestionSet.objects.values_list("slug", flat=True)[:2]
    addresses = {key: reverse(f"explorer:{row['page']}") for key, row in _GUIDE.items()}
    if len(sets) == 1:
        addresses["measure"] = reverse("explorer:question_set", args=[*sets])
    steps = [
        {**_GUIDE[key], "key": key, "address": addresses[key], "is_done": is_done} for key, is_done in done.items()
    ]
    return {
        "steps": steps,
        "done": sum(done.values()),
        "is_done": all(done.values()),
        "next_step": next((step for step in steps if not step["is_done"]), None),
    }


def is_dismissed(viewer: User) -> bool:
    """Return whether this admin has dismissed the guide."""
    return AuditEvent.objects.filter(actor=viewer, action=_DISMISSED).exists()


def dismiss(viewer: User) -> None:
    """Dismiss the guide for this admin, recorded in the audit log."""
    if not is_dismissed(viewer):
        audit.record(_DISMISSED, actor=viewer)


@admin_page("GET")
def overview(request: HtmxHttpRequest) -> HttpResponse:
    """Show recent searches, running syncs and problems."""
    now = timezone.now()
    requested = request.GET.get("range", "")
    chosen = requested if requested in RANGES else next(iter(RANGES))
    rows = connection_rows(list(Connection.objects.listed().select_related("compartment")))
    ending = ApiKey.objects.filter(revoked_at__isnull=True, expires_at__lt=now + KEY_ENDS_SOON)
    recently = ending.filter(expires_at__gt=now - KEY_ENDS_SOON).select_related("user").order_by("expires_at")
    parts = health_rows(installation(), now)
    _, span, _, name = RANGES[chosen]
    sources, more_sources = source_rows(rows, now)
    context = {
        "usage": usage_figures(now - span, now, name),
        "topics": unanswered_topics(now - span, name),
        "has_questions": SearchRecord.objects.asked().filter(at__gte=now - span).exists,
        "sources": sources,
        "more_sources": more_sources,
        "trends": quality_trends(Principal(viewer_of(request)), now),
        "ranges": [(name, label) for name, (label, *_) in RANGES.items()],
        "range": chosen,
        **_searches(chosen, now),
        "store": store_figures(rows),
        "problems": problems(rows, recently[:_MAX_KEYS], parts, now),
        **_jobs(now),
        "guide": _guide(viewer_of(request), is_requested="guide" in request.GET),
    }
    return render(request, "explorer/health/overview.html", context)


@admin_page("GET")
def overview_jobs(request: HtmxHttpRequest) -> HttpResponse:
    """Show the open syncs; the page polls while there is one."""
    return render(request, "explorer/health/_overview_jobs.html", _jobs(timezone.now()))


@admin_action
def dismiss_guide(request: HtmxHttpRequest) -> HttpResponse:
    """Dismiss the first steps for this admin."""
    dismiss(viewer_of(request))
    return redirect("explorer:overview")


@admin_page("GET")
def health(request: HtmxHttpRequest) -> HttpResponse:
    """Show the state of each part, the versions, and all settings with their origin."""
    found = installation()
    rows = health_rows(found, timezone.now())
    context = {
        "rows": rows,
        "first": [(row, _ADVICE[row.key]) for row in sorted(rows, key=lambda it: it.tone != "bad") if not row.is_well],
        "overall": overall(rows),
        "load": load_panel(found.load, found.ingest, refused_early=overload_guard.refused),
        "versions": found.versions,
        "settings_rows": readings(),
        "alarms": [(alarm_words(it), it.schedule.question_set) for it in alarms(Principal(viewer_of(request)))],
    }
    return render(request, "explorer/health/health.html", context)


def _searches(chosen: str, now: datetime) -> dict[str, Any]:
    _, span, width, since = RANGES[chosen]
    found = traffic(until=now, span=span, width=width)
    ids = list(SearchRecord.objects.order_by("-at", "-id").values_list("pk", flat=True)[:_LAST_SEARCHES])
    last = with_facts(SearchRecord.objects.filter(pk__in=ids)).defer("trace").order_by("-at", "-id")
    rows: list[dict[str, Any]] = [log_row(record, now) for record in last]
    return {"figures": search_figures(found.total, since), "charts": traffic_charts(found), "searches": rows}


def _jobs(now: datetime) -> dict[str, Any]:
    found = Sync.objects.filter(connection__in=Connection.objects.listed(), status__in=Sync.OPEN)
    syncs = found.select_related("connection").order_by("queued_at")[:_MAX_JOBS]
    rows: list[dict[str, Any]] = [sync_row(job, now, known=0) for job in job_states(syncs, now)]
    return {"jobs": rows, "is_open": bool(rows)}


def _guide(viewer: User, *, is_requested: bool) -> object:
    """Return the first steps if requested, or while some are left and the admin has not dismissed them."""
    steps = guide(viewer)
    return steps if is_requested or not (steps["is_done"] or is_dismissed(viewer)) else None
