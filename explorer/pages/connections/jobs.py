"""Jobs, for admins: all syncs with their progress and actions."""

from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone

from corecube.http import HtmxHttpRequest
from corecube.models import Connection
from explorer import wording
from explorer.components.bars import percent
from explorer.components.search_page import with_chosen
from explorer.viewer import admin_action, admin_page, errors_shown, render_page, viewer_of, wants_fragment
from explorer.wording import STAGE_LABELS, WORDS, duration, time_left
from retrieval.ingest.jobs import JobState, Wait, job_states
from retrieval.ingest.services import cancel_sync, retry_failed
from retrieval.models import Sync, SyncItem

_OPEN_STAGES: Final = ("parsing", "embedding", "storing", "queued")
_STAGES: Final = (*_OPEN_STAGES, "failed", "gone")
_ESTIMATING: Final = "estimating time left"
_JOBS_PER_PAGE: Final = 50
_ERRORS_PER_PAGE: Final = 50


def sync_row(job: JobState, now: datetime, *, known: int) -> dict[str, Any]:
    """Return the row of a sync; progress is estimated from the `known` stored documents until the source is listed."""
    sync = job.sync
    is_open = sync.status in Sync.OPEN
    wait = wait_words(job.wait) if job.wait else ""
    counts = ("seen", "added", "changed", "unchanged", "failed", "deleted", "chunks")
    return {
        "id": sync.pk,
        "slug": sync.connection.slug,
        "connection_name": sync.connection.name,
        "kind": "" if sync.kind == Sync.Kind.FULL else sync.get_kind_display().lower(),
        "description": WORDS["sync_kinds"][sync.kind],
        "status": job.state,
        "label": job.label,
        "tone": "warn" if job.state == Sync.Status.DONE and sync.failed else WORDS["sync_tones"][job.state],
        "stage": _stage(job),
        "rate": f"{job.documents_per_second:.1f} documents/s, {job.chunks_per_second:.1f} chunks/s"
        if job.documents_per_second
        else "",
        "left": _left(job),
        "wait": "Stopping. This takes a few seconds." if sync.status == Sync.Status.CANCELLING else wait,
        "found": _found(sync),
        "since": wording.ago(sync.started_at or sync.queued_at, now),
        "seconds": ""
        if sync.started_at is None
        else duration(((sync.finished_at or now) - sync.started_at).total_seconds()),
        "message": sync.message,
        "progress": _progress(job, known) if is_open else None,
        "is_open": is_open,
        "can_cancel": is_open and sync.status != Sync.Status.CANCELLING,
        "is_stopped": sync.status == Sync.Status.STOPPED,
        "retryable": job.retryable,
        **{name: getattr(sync, name) for name in counts},
    }


def stage_rows(job: JobState) -> list[tuple[str, int]]:
    """Return the items of a running sync by stage, in order: ("parsing", 3)."""
    return [
        (f"{label}{_chunks(job, name)}", job.items[name]) for name, label in STAGE_LABELS.items() if name in job.items
    ]


def dry_run_names(sync: Sync) -> dict[str, list[str]]:
    """Return the first items that a dry run would add, change or delete; empty for none and for any other sync."""
    named = list(sync.items.values_list("external_id", "state", "outcome")) if sync.kind == Sync.Kind.DRY_RUN else []
    names = {
        "added": [name for name, _, outcome in named if outcome == SyncItem.Outcome.ADDED],
        "changed": [name for name, _, outcome in named if outcome == SyncItem.Outcome.CHANGED],
        "deleted": [name for name, state, _ in named if state == SyncItem.State.GONE],
    }
    return names if any(names.values()) else {}


def wait_words(wait: Wait) -> str:
    """Return the reason why a queued sync waits, as a sentence."""
    if wait.reason in WORDS["sync_waits"]:
        return WORDS["sync_waits"][wait.reason]
    if not wait.ahead:
        return "Next in the queue. It starts when a worker is free."
    return f"Waiting for a free worker, after {wording.counted(wait.ahead, 'sync')}."


def _found(sync: Sync) -> str:
    if sync.kind != Sync.Kind.DRY_RUN or sync.status != Sync.Status.DONE:
        return ""
    failed = f"; {sync.failed:,} cannot be indexed" if sync.failed else ""
    return f"Would add {sync.added:,}, change {sync.changed:,}, delete {sync.deleted:,}{failed}."


def _stage(job: JobState) -> str:
    if job.sync.status != Sync.Status.RUNNING:
        return ""
    items = ", ".join(f"{job.items[name]} {name}{_chunks(job, name)}" for name in _STAGES if name in job.items)
    return items if job.sync.stage == Sync.Stage.WORKING and items else ": ".join(filter(None, (job.sync.stage, items)))


def _chunks(job: JobState, stage: str) -> str:
    """Return the embedded and all chunks of the items in progress, for the stage "embedding"."""
    if stage != SyncItem.Stage.EMBEDDING or not job.chunks_in_hand:
        return ""
    return f" ({job.chunks_embedded:,} of {wording.counted(job.chunks_in_hand, 'chunk')})"


def _left(job: JobState) -> str:
    """Return the estimated time left; empty if no item is left or the sync is not running."""
    if job.state != Sync.Status.RUNNING or job.sync.kind == Sync.Kind.DRY_RUN:
        return ""
    is_listed = job.sync.listed_at is not None
    if is_listed and not any(job.items.get(name) for name in _OPEN_STAGES):
        return ""
    return _ESTIMATING if job.seconds_left is None else time_left(job.seconds_left)


def _progress(job: JobState, known: int) -> float | None:
    """Return percent of the listed items, or, until all are listed, an estimate from the stored ones."""
    sync = job.sync
    if sync.listed_at is not None and sync.seen:
        done = sync.added + sync.changed + sync.unchanged + sync.failed
        in_hand = sum(job.items.get(name, 0) for name in (SyncItem.Stage.EMBEDDING, SyncItem.Stage.STORING))
        share = job.chunks_embedded / job.chunks_in_hand if job.chunks_in_hand else 0.0
        return round(percent(done + in_hand * share, sync.seen), 1)
    return round(percent(sync.seen, known), 1) if known and sync.unchanged else None


@admin_page("GET", varies=True, may_cache=True)
def jobs(request: HtmxHttpRequest) -> HttpResponse:
    """List the latest syncs, filtered by state or connection; the page polls while one is open."""
    now = timezone.now()
    filters = {name: value for name in ("state", "connection") if (value := request.GET.get(name, ""))}
    # An unknown state is ignored.
    syncs = Sync.objects.filter(connection__in=Connection.objects.listed()).select_related("connection")
    state = filters.get("state", "")
    if state == "open":
        syncs = syncs.filter(status__in=Sync.OPEN)
    elif state == "problems":
        syncs = syncs.filter(status=Sync.Status.DONE, failed__gt=0)
    elif state in Sync.Status:
        syncs = syncs.filter(status=state)
    slug = filters.get("connection", "").replace("\0", "")
    page = Paginator(syncs.filter(connection__slug=slug) if slug else syncs, _JOBS_PER_PAGE).get_page(
        request.GET.get("page")
    )
    rows = [sync_row(job, now, known=0) for job in job_states(page.object_list, now)]
    context = {
        "jobs": rows,
        "page": page,
        "filters": filters,
        "query": urlencode(filters),
        "states": WORDS["sync_filters"],
        "connections": with_chosen(
            Connection.objects.listed().values_list("slug", "name"), filters.get("connection", "")
        ),
        "is_open": any(row["is_open"] for row in rows),
        "is_swapped": wants_fragment(request),
    }
    return render_page(request, "explorer/connections/jobs.html", "explorer/connections/_jobs.html", context)


@admin_page("GET", varies=True, may_cache=True)
def job(request: HtmxHttpRequest, job_id: UUID) -> HttpResponse:
    """Show one sync: progress, figures and a page of its errors."""
    sync = _sync(job_id)
    now = timezone.now()
    state = job_states([sync], now)[0]
    failed = sync.items.filter(state=SyncItem.State.FAILED)
    row = sync_row(state, now, known=sync.connection.documents.count())
    context = {
        "sync": sync,
        "row": row,
        "stages": stage_rows(state),
        "names": dry_run_names(sync),
        "errors": Paginator(failed, _ERRORS_PER_PAGE).get_page(request.GET.get("page")),
        "is_open": row["is_open"],
        "is_swapped": wants_fragment(request),
    }
    return render_page(request, "explorer/connections/job.html", "explorer/connections/_job.html", context)


@admin_action
def cancel(request: HtmxHttpRequest, job_id: UUID) -> HttpResponse:
    """Cancel a queued or running sync; a running one ends when its workers have stopped."""
    sync = _sync(job_id)
    cancel_sync(sync, actor=viewer_of(request))
    return redirect("explorer:connection", slug=sync.connection.slug)


@admin_action
def retry(request: HtmxHttpRequest, job_id: UUID) -> HttpResponse:
    """Queue a retry of the failed items of a sync, or of the given ones."""
    sync = _sync(job_id)
    items = request.POST.getlist("item") or None
    with errors_shown(request):
        retry_failed(sync, actor=viewer_of(request), external_ids=items)
    return redirect("explorer:connection", slug=sync.connection.slug)


def _sync(job_id: UUID) -> Sync:
    syncs = Sync.objects.filter(connection__in=Connection.objects.listed())
    return get_object_or_404(syncs.select_related("connection"), pk=job_id)
