"""Connections, for admins: the list, one connection and its actions."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.db.models import Count, Exists, OuterRef, QuerySet, Sum
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET
from django_htmx.http import trigger_client_event

from corecube.access import Principal, scope_for
from corecube.connections import switch_connection
from corecube.connectors.check import STEPS
from corecube.connectors.kinds import KINDS
from corecube.connectors.types import Capability
from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from corecube.models import Connection, User
from corecube.reach import ConnectionAccess
from corecube.sanitise import storable
from corecube.scope import Sensitivity, TrustLevel
from explorer import wording
from explorer.components.forms import QualityForm, UploadForm
from explorer.pages.connections.jobs import dry_run_names, sync_row
from explorer.viewer import admin_action, admin_page, render_page, viewer_of, wants_fragment
from explorer.wording import STAGE_LABELS, capability_label, config_label, time_left
from retrieval.ingest.jobs import JobState, job_states
from retrieval.ingest.languages import misread_language, read_language
from retrieval.ingest.problems import retryable
from retrieval.ingest.services import queue_sync, store_upload
from retrieval.ingest.versions import older_documents_of
from retrieval.models import Document, Sync, SyncItem, SyncProblem, TermFrequency
from retrieval.operations.quality_preview import live_minimum, preview

#: The steps of adding a source.
_STEPS: Final = {"kind": "Kind", "source": "Source", "access": "Access", "schedule": "Schedule", "sync": "First sync"}
_RECEIVING_STEPS: Final = {"kind": "Kind", "source": "Source and access", "sync": "Documents"}
_LAST_SYNCS: Final = 10
_PROBLEMS: Final = 50
_MAX_REFUSED: Final = 20  #: Items that a dry run could not read, listed on the connection's page.
_MAX_LOW_CHUNKS: Final = 50
_DOCUMENTS: Final = 25
_MAX_IN_PROGRESS: Final = 12  #: Items of a running sync that are listed.
_ANY: Final = "any"  #: The filter for documents with any problem.


def wizard_steps(current: str, *, is_read: bool) -> list[dict[str, object]]:
    """Return the steps of adding a source, with what is done and what is current.

    A source that CoreCube does not read, but that receives documents, has one form and no schedule.
    """
    steps = _STEPS if is_read else _RECEIVING_STEPS
    at = list(steps).index(current)
    return [
        {"name": name, "label": label, "is_done": number < at, "is_current": number == at}
        for number, (name, label) in enumerate(steps.items())
    ]


def connection_rows(connections: list[Connection]) -> list[dict[str, Any]]:
    """Return the rows of connections in seven queries."""
    ids = [connection.pk for connection in connections]
    # The empty lexeme counts chunks, so that millions of them need not be counted one by one.
    chunks = TermFrequency.objects.filter(lexeme="", connection_id__in=ids).values_list("connection_id")
    documents = Document.objects.filter(connection_id__in=ids).values_list("connection_id")
    problems = SyncProblem.objects.filter(connection_id__in=ids).values_list("connection_id")
    syncs = Sync.objects.filter(connection_id__in=ids).select_related("connection")
    latest = syncs.order_by("connection_id", "-queued_at").distinct("connection_id")
    now = timezone.now()
    jobs = {job.sync.connection_id: job for job in job_states(latest, now)}
    counts = [
        dict(documents.annotate(Count("pk"))),
        dict(chunks.annotate(Sum("chunks"))),
        dict(problems.annotate(Count("pk"))),
    ]
    return [_row(it, jobs.get(it.pk), now, *(count.get(it.pk, 0) for count in counts)) for it in connections]


def _row(
    connection: Connection, job: JobState | None, now: datetime, documents: int, chunks: int, problems: int
) -> dict[str, Any]:
    return {
        "connection": connection,
        "kind_label": KINDS[connection.kind].label if connection.kind in KINDS else connection.kind,
        "sensitivity": wording.level(Sensitivity(connection.sensitivity)),
        "trust": wording.level(TrustLevel(connection.trust)),
        "documents": documents,
        "chunks": chunks,
        "synced": wording.ago(connection.last_synced_at, now) if connection.last_synced_at else "never",
        "next_sync": _next_sync(connection, now),
        "sync": sync_row(job, now, known=documents) if job else None,
        "problems": problems,
    }


def check_rows(capabilities: Sequence[Capability]) -> list[tuple[str, str, str]]:
    """Return label, state and message of a test's steps; the state after a failure is "not tested"."""
    rows = [(capability_label(it.name), "passed" if it.ok else "failed", it.message) for it in capabilities]
    if capabilities and not capabilities[-1].ok and capabilities[-1].name in STEPS:
        later = STEPS[STEPS.index(capabilities[-1].name) + 1 :]
        rows += [(capability_label(name), "not tested", "") for name in later]
    return rows


def config_rows(connection: Connection) -> list[tuple[str, str]]:
    """Return the config values of a connection that differ from the defaults, as label and value."""
    config = connection.config if isinstance(connection.config, dict) else {}
    return [(config_label(name), _shown(name, value)) for name, value in config.items()]


def access_summary(access: ConnectionAccess) -> dict[str, str]:
    """Return groups and users as text, with long lists truncated: "groups engineers, staff", "14 users"."""
    noun = "group" if len(access.groups) == 1 else "groups"
    return {
        "groups": f"{noun} {wording.short_list(access.groups)}" if access.groups else "",
        "users": wording.counted(len(access.users), "user"),
        "names": wording.short_list(access.users),
    }


def _shown(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if name.endswith("_bytes") and isinstance(value, int):
        return f"{value / 2**20:g}"
    return str(value)


def _next_sync(connection: Connection, now: datetime) -> str:
    """Return the time of the next scheduled sync; empty without a schedule or for a disabled connection."""
    if not connection.enabled or connection.sync_every_minutes is None:
        return ""
    if connection.next_sync_at is None or connection.next_sync_at <= now:
        return "due now"
    return f"in {time_left((connection.next_sync_at - now).total_seconds()).removesuffix(' left')}"


@admin_page("GET", varies=True, may_cache=True)
def connections(request: HtmxHttpRequest) -> HttpResponse:
    """List the connections; the page polls while a sync is open."""
    rows = connection_rows(list(Connection.objects.listed().select_related("compartment")))
    context = {
        "rows": rows,
        "documents": sum(row["documents"] for row in rows),
        "chunks": sum(row["chunks"] for row in rows),
        "is_open": any(row["sync"] and row["sync"]["is_open"] for row in rows),
        "is_swapped": wants_fragment(request),
    }
    page, fragment = "explorer/connections/connections.html", "explorer/connections/_connections.html"
    return render_page(request, page, fragment, context)


@require_GET
def moved(request: HtmxHttpRequest, rest: str) -> HttpResponse:
    """Redirect an address from the time when connections were called sources."""
    query = request.META.get("QUERY_STRING", "")
    path = reverse("explorer:connections") + rest
    return redirect(f"{path}?{query}" if query else path, permanent=True)


@admin_page("GET", varies=True, may_cache=True)
def connection(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show one connection with its last syncs, problems and documents; htmx gets only the documents."""
    if wants_fragment(request):
        found = get_object_or_404(Connection.objects.listed(), slug=slug)
        context = {"connection": found, "is_filtered": True, **_documents(request, found)}
        return render(request, "explorer/connections/_connection_documents_list.html", context)
    return render(request, "explorer/connections/connection.html", _connection_context(request, slug))


@admin_page("GET", may_cache=True)
def connection_progress(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show the progress of a connection's syncs; the page polls while one is open."""
    context = {**_connection_context(request, slug), "is_swapped": True}
    response = render(request, "explorer/connections/_connection_progress.html", context)
    # The list of documents is loaded again when the sync has ended.
    return response if context["is_open"] else trigger_client_event(response, "synced")


@admin_page("GET", varies=True)
def first_sync(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show the last step of adding a source: its first sync, and then what to do with it."""
    context = _connection_context(request, slug)
    context["wizard"] = wizard_steps("sync", is_read=not context["receives_documents"])
    context["is_swapped"] = wants_fragment(request)
    page, fragment = "explorer/connections/first_sync.html", "explorer/connections/_first_sync.html"
    return render_page(request, page, fragment, context)


@admin_page("GET", varies=True)
def connection_quality(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Preview which chunks of a connection a quality threshold drops; texts only for viewers with access."""
    connection = get_object_or_404(Connection.objects.listed(), slug=slug)
    # `least` is the parameter's name in bookmarks of an earlier release.
    minimum = request.GET.get("minimum", request.GET.get("least", f"{live_minimum():g}"))
    form = QualityForm({"minimum": minimum})
    context = {"connection": connection, "form": form, "live": live_minimum()}
    if form.is_valid():
        is_readable = _is_readable(request, connection)
        limit = _MAX_LOW_CHUNKS if is_readable else 0
        found = preview(connection, minimum=form.cleaned_data["minimum"], limit=limit)
        context |= {"preview": found, "is_readable": is_readable}
    page, fragment = "explorer/connections/connection_quality.html", "explorer/connections/_connection_quality.html"
    return render_page(request, page, fragment, context, status=422 if form.errors else 200)


@admin_action
def sync_connection(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Queue a sync."""
    connection = get_object_or_404(Connection.objects.listed(), slug=slug)
    confirmed = request.POST.get("allow_deletions") == "yes"
    is_dry = request.POST.get("dry_run") == "yes"
    try:
        queue_sync(connection, actor=viewer_of(request), allow_deletions=confirmed, dry_run=is_dry)
    except CoreCubeError:
        messages.error(request, "The connection is disabled. Enable it before syncing.")
    return redirect("explorer:connection", slug=slug)


@admin_action
def switch(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Enable or disable a connection."""
    connection = get_object_or_404(Connection.objects.listed(), slug=slug)
    switch_connection(connection, enabled=request.POST.get("enabled") == "yes", actor=viewer_of(request))
    if connection.enabled:
        messages.success(request, f"{connection.name} was enabled. It is searched, and synced on schedule.")
    else:
        messages.success(request, f"{connection.name} was disabled. It is no longer synced or searched.")
    return redirect("explorer:connection", slug=slug)


@admin_action
def upload(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Store uploaded files and queue a sync that imports them; a rejected file does not affect the others."""
    connection = get_object_or_404(Connection.objects.listed(), slug=slug, kind="upload")
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for error in form.errors["uploads"]))
        return redirect("explorer:connection", slug=slug)
    viewer = viewer_of(request)
    if request.POST.get("alone") == "yes":
        return _store_one(connection, form.cleaned_data["uploads"][0], request.POST.get("folder", ""), viewer)
    stored = 0
    for file in form.cleaned_data["uploads"]:
        try:
            store_upload(connection, name=file.name, content=file, actor=viewer)
            stored += 1
        except CoreCubeError as error:
            messages.error(request, f"{file.name}: {error}")
    if stored:
        queue_sync(connection, actor=viewer)
    return redirect("explorer:connection", slug=slug)


def _store_one(connection: Connection, file: UploadedFile, folder: str, viewer: User) -> HttpResponse:
    """Store one of many files that a script sends; it queues the sync after the last one."""
    try:
        store_upload(connection, name=file.name or "", content=file, actor=viewer, folder=folder)
    except CoreCubeError as error:
        return HttpResponse(str(error), status=error.status, content_type="text/plain; charset=utf-8")
    return HttpResponse(status=204)


def _is_readable(request: HtmxHttpRequest, connection: Connection) -> bool:
    return scope_for(Principal(viewer_of(request))).allows(connection.pk)


def _documents(request: HtmxHttpRequest, connection: Connection) -> dict[str, Any]:
    """Return a page of a connection's documents that match the filters, with the problem of each."""
    find, problem = (storable(request.GET.get(name, "")).strip() for name in ("q", "problem"))
    problems = connection.problems.order_by("external_id")
    is_readable = _is_readable(request, connection)
    shown: QuerySet[Any]
    if problem:
        shown = problems if problem == _ANY else problems.filter(reason=problem)
        shown = shown.filter(external_id__icontains=find) if find else shown
    else:
        own = Document.objects.filter(connection=connection) if is_readable else Document.objects.none()
        shown = (own.named(find) if find else own).order_by("title", "pk")
    page = Paginator(shown.values_list("external_id", flat=True), _DOCUMENTS).get_page(request.GET.get("documents"))
    names = list(page)
    stored = Document.objects.filter(connection=connection, external_id__in=names) if is_readable else ()
    documents = {it.external_id: it for it in stored}
    failed = {it.external_id: it for it in problems.filter(external_id__in=names)}
    return {
        "documents": [{"name": it, "document": documents.get(it), "problem": failed.get(it)} for it in names],
        "documents_page": page,
        "documents_find": find,
        "documents_problem": problem,
        "reasons": list(problems.order_by("reason").values_list("reason", flat=True).distinct()),
        "is_readable": is_readable,
    }


def _problem_groups(connection: Connection, shown: Iterable[SyncProblem], retries: Mapping[str, UUID]) -> list[Any]:
    """Return a page of problems by reason, with how many there are and the jobs from which they can be retried."""
    counts = dict(connection.problems.order_by().values_list("reason").annotate(Count("pk")))
    groups = ((reason, list(found)) for reason, found in groupby(shown, attrgetter("reason")))
    return [
        {
            "reason": reason,
            "count": counts.get(reason, len(found)),
            "rows": [(it, retries.get(it.external_id)) for it in found],
            "jobs": _by_job(found, retries),
        }
        for reason, found in groups
    ]


def _by_job(found: Iterable[SyncProblem], retries: Mapping[str, UUID]) -> dict[UUID, list[str]]:
    jobs: dict[UUID, list[str]] = {}
    for problem in found:
        if problem.external_id in retries:
            jobs.setdefault(retries[problem.external_id], []).append(problem.external_id)
    return jobs


def _coverage(connection: Connection, documents: int) -> int | None:
    """Return the percentage of the source's items that are searchable, rounded down; None before there are any."""
    stored = Document.objects.filter(connection=connection, external_id=OuterRef("external_id"))
    missing = connection.problems.filter(~Exists(stored)).count()
    return documents * 100 // (documents + missing) if documents + missing else None


def _in_progress(syncs: Iterable[Sync]) -> list[dict[str, Any]]:
    """Return items that a sync works on, with the share of their chunks that have vectors, in percent."""
    running = [sync.pk for sync in syncs if sync.status == Sync.Status.RUNNING]
    items = SyncItem.objects.filter(sync__in=running, state=SyncItem.State.RUNNING)[:_MAX_IN_PROGRESS]
    return [
        {
            "name": it.external_id,
            "stage": STAGE_LABELS.get(it.stage, it.stage),
            "percent": it.embedded * 100 // it.chunks if it.chunks else 0,
            "chunks": it.chunks,
            "embedded": it.embedded,
        }
        for it in items
    ]


def _connection_context(request: HtmxHttpRequest, slug: str) -> dict[str, object]:
    connection = get_object_or_404(Connection.objects.listed().select_related("compartment"), slug=slug)
    row = connection_rows([connection])[0]
    now = timezone.now()
    last = list(connection.syncs.select_related("connection")[:_LAST_SYNCS])
    syncs: list[dict[str, Any]] = [sync_row(job, now, known=row["documents"]) for job in job_states(last, now)]
    ordered = connection.problems.order_by("reason", "external_id")
    problems = Paginator(ordered, _PROBLEMS).get_page(request.GET.get("page"))
    # By item, the finished sync in which it failed and from which it can be retried.
    failed = retryable(
        SyncItem.objects.filter(
            sync__connection=connection, external_id__in=[problem.external_id for problem in problems]
        )
    )
    ended = failed.exclude(sync__status__in=Sync.OPEN)
    retries: dict[str, UUID] = dict(ended.values_list("external_id", "sync_id"))
    listed = _documents(request, connection)
    return {
        **listed,
        "connection": connection,
        "receives_documents": connection.kind in KINDS and KINDS[connection.kind].receives_documents,
        "row": row,
        "config": config_rows(connection),
        "syncs": syncs,
        "dry_run": _dry_run(last, syncs),
        "is_open": any(sync["is_open"] for sync in syncs),
        "older": older_documents_of(connection),
        "misread": misread_language(connection),
        "read_language": read_language(connection),
        "problems": problems,
        "problem_groups": _problem_groups(connection, problems, retries),
        "coverage": _coverage(connection, row["documents"]),
        "in_progress": _in_progress(last) if listed["is_readable"] else [],
        "max_upload_bytes": settings.CORECUBE_MAX_FILE_BYTES,
    }


def _dry_run(last: list[Sync], rows: list[dict[str, Any]]) -> dict[str, object] | None:
    if not last or last[0].kind != Sync.Kind.DRY_RUN or last[0].status != Sync.Status.DONE:
        return None
    failed = last[0].items.filter(state=SyncItem.State.FAILED)
    return {"row": rows[0], "names": dry_run_names(last[0]), "failed": failed[:_MAX_REFUSED]}
