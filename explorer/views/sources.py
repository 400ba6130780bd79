"""Sources, for admins: where each connection stands, and what they can do about it."""

from typing import Final

from django.contrib import messages
from django.db.models import Count, Sum
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django.views.decorators.vary import vary_on_headers

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from corecube.models import Connection
from explorer.forms import NewSourceForm, QualityForm, UploadForm
from explorer.panels.sources import SourceCounts, SourceRow, SyncRow, source_row, sync_row
from explorer.views.viewer import admins_only, viewer_of, wants_fragment
from retrieval.ingest.jobs import job_states
from retrieval.ingest.services import queue_sync, store_upload
from retrieval.models import Document, Sync, SyncItem, SyncProblem, TermFrequency
from retrieval.quality_preview import live_least, preview

#: Syncs and problems that a source's page lists.
_LAST_SYNCS: Final = 10
_MOST_PROBLEMS: Final = 200
#: Errors of the sync at work that its progress names.
_MOST_ERRORS: Final = 20
#: Chunks that a look at the quality filter lists.
_MOST_LOW_CHUNKS: Final = 50


@require_GET
@admins_only
def sources(request: HtmxHttpRequest) -> HttpResponse:
    """List the connections."""
    rows = _rows(list(Connection.objects.select_related("compartment")))
    context = {
        "section": "sources",
        "rows": rows,
        "documents": sum(row.documents for row in rows),
        "chunks": sum(row.chunks for row in rows),
    }
    return render(request, "explorer/sources.html", context)


@require_http_methods(["GET", "POST"])
@admins_only
def new_source(request: HtmxHttpRequest) -> HttpResponse:
    """Add a connection; a folder is synced at once, an upload waits for its files."""
    form = NewSourceForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        connection = form.save()
        viewer = viewer_of(request)
        audit.record("connection.created", actor=viewer, subject=connection.slug, kind=connection.kind)
        if connection.kind == "folder":
            queue_sync(connection, actor=viewer)
        messages.success(request, f"{connection.name} was added.")
        return redirect("explorer:source", slug=connection.slug)
    context = {"section": "sources", "form": form}
    return render(request, "explorer/source_new.html", context, status=422 if form.errors else 200)


@require_GET
@admins_only
def source(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show one connection: its last syncs, its problems, and what can be done."""
    return render(request, "explorer/source.html", _source_context(slug))


@require_GET
@admins_only
def source_progress(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show where a connection's syncs stand; the page asks again while one is at work."""
    return render(request, "explorer/_source_progress.html", _source_context(slug))


@require_GET
@admins_only
@never_cache
@vary_on_headers("HX-Request")
def source_quality(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show what the quality filter would drop of one connection; its text only to who may read it."""
    connection = get_object_or_404(Connection, slug=slug)
    form = QualityForm(request.GET if "least" in request.GET else {"least": f"{live_least():g}"})
    context: dict[str, object] = {"section": "sources", "connection": connection, "form": form, "live": live_least()}
    if form.is_valid():
        is_readable = scope_for(Principal(viewer_of(request))).allows(connection.pk)
        limit = _MOST_LOW_CHUNKS if is_readable else 0
        found = preview(connection, least=form.cleaned_data["least"], limit=limit)
        context |= {"preview": found, "is_readable": is_readable}
    template = "explorer/_source_quality.html" if wants_fragment(request) else "explorer/source_quality.html"
    return render(request, template, context, status=422 if form.errors else 200)


@require_POST
@admins_only
def sync_source(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Queue a sync."""
    connection = get_object_or_404(Connection, slug=slug)
    if connection.enabled:
        confirmed = request.POST.get("allow_deletions") == "yes"
        is_dry = request.POST.get("dry_run") == "yes"
        queue_sync(connection, actor=viewer_of(request), allow_deletions=confirmed, dry_run=is_dry)
    else:
        messages.error(request, "A disabled source is not synced. Enable it in the administration first.")
    return redirect("explorer:source", slug=slug)


@require_POST
@admins_only
def upload(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Keep uploaded files and queue a sync that takes them in; a file that is refused stops none of the others."""
    connection = get_object_or_404(Connection, slug=slug, kind="upload")
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for error in form.errors["uploads"]))
        return redirect("explorer:source", slug=slug)
    viewer = viewer_of(request)
    kept = 0
    for file in form.cleaned_data["uploads"]:
        try:
            store_upload(connection, name=file.name, content=file, actor=viewer)
            kept += 1
        except CoreCubeError as error:
            messages.error(request, f"{file.name}: {error}")
    if kept:
        queue_sync(connection, actor=viewer)
    return redirect("explorer:source", slug=slug)


def _source_context(slug: str) -> dict[str, object]:
    connection = get_object_or_404(Connection.objects.select_related("compartment"), slug=slug)
    row = _rows([connection])[0]
    now = timezone.now()
    last = connection.syncs.select_related("connection")[:_LAST_SYNCS]
    syncs: list[SyncRow] = [sync_row(job, now, known=row.documents) for job in job_states(last, now)]
    return {
        "section": "sources",
        "connection": connection,
        "source": row,
        "path": connection.config.get("path", ""),
        "syncs": syncs,
        "is_open": any(sync.is_open for sync in syncs),
        "errors": SyncItem.objects.filter(
            sync__connection=connection, sync__status=Sync.Status.RUNNING, state=SyncItem.State.FAILED
        )[:_MOST_ERRORS],
        "problems": connection.problems.all()[:_MOST_PROBLEMS],
    }


def _rows(connections: list[Connection]) -> list[SourceRow]:
    """Return the rows of connections, counted in six queries whatever their number."""
    ids = [connection.pk for connection in connections]
    # The empty lexeme counts chunks, so that millions of them need not be counted one by one.
    chunks = TermFrequency.objects.filter(lexeme="", connection_id__in=ids).values_list("connection_id")
    documents = Document.objects.filter(connection_id__in=ids).values_list("connection_id")
    problems = SyncProblem.objects.filter(connection_id__in=ids).values_list("connection_id")
    syncs = Sync.objects.filter(connection_id__in=ids).select_related("connection")
    last = syncs.order_by("connection_id", "-queued_at").distinct("connection_id")
    now = timezone.now()
    counts = SourceCounts(
        documents=dict(documents.annotate(Count("pk"))),
        chunks=dict(chunks.annotate(Sum("chunks"))),
        problems=dict(problems.annotate(Count("pk"))),
        syncs={job.sync.connection_id: job for job in job_states(last, now)},
    )
    return [source_row(connection, counts, now) for connection in connections]
