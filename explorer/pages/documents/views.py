"""Documents that the viewer may see: the list, and one document."""

from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.errors import NotFoundError, NotPermittedError
from corecube.http import HtmxHttpRequest
from corecube.sanitise import storable
from corecube.scope import AccessScope
from explorer.components.choices import with_chosen
from explorer.pages.documents.panels import (
    MAX_LISTED,
    PER_PAGE,
    DocumentPage,
    document_panel,
    document_row,
    page_number,
)
from explorer.viewer import principal_for, render_page, user_page, viewer_of, wants_fragment
from retrieval.models import Chunk, Document
from retrieval.records.accesses import note_accesses


@user_page("GET", varies=True)
def documents(request: HtmxHttpRequest) -> HttpResponse:
    """List the documents that the viewer may see, by title."""
    scope = scope_for(Principal(viewer_of(request)))
    filters = {name: storable(request.GET.get(name, "")).strip() for name in ("q", "connection", "type")}
    page = _page(_matching(scope, filters), request.GET)
    context: dict[str, Any] = {"section": "documents", "filters": filters, "page": page}
    if not wants_fragment(request):
        connections = ((it.connection.slug, it.connection.name) for it in scope.included)
        context["connections"] = with_chosen(connections, filters["connection"])
        types = Document.objects.in_scope(scope).order_by("source_type").values_list("source_type", flat=True)
        context["types"] = with_chosen(((it, it) for it in types.distinct()), filters["type"])
    page_template, fragment = "explorer/documents/documents.html", "explorer/documents/_documents_fragment.html"
    return render_page(request, page_template, fragment, context)


def _matching(scope: AccessScope, filters: dict[str, str]) -> QuerySet[Document]:
    """Return the documents in scope that match the filters."""
    found = Document.objects.in_scope(scope)
    if filters["connection"]:
        ids = [it.connection.id for it in scope.included if it.connection.slug == filters["connection"]]
        found = found.filter(connection_id__in=ids)
    if filters["type"]:
        found = found.filter(source_type=filters["type"])
    return found.named(filters["q"]) if filters["q"] else found


def _page(found: QuerySet[Document], query: QueryDict) -> DocumentPage:
    """Return the requested page, in two queries."""
    total = found[: MAX_LISTED + 1].count()
    number = page_number(query.get("page", ""), total)
    chunks = Chunk.objects.filter(document_id=OuterRef("pk"), connection_id=OuterRef("connection_id")).order_by()
    counted = chunks.values("document_id").annotate(count=Count("ordinal")).values("count")
    rows = found.select_related("connection").defer("metadata", "connection__config").order_by("title", "pk")
    listed = rows.annotate(chunk_count=Subquery(counted, output_field=IntegerField()))
    now, start = timezone.now(), (number - 1) * PER_PAGE
    shown = listed[start : min(start + PER_PAGE, MAX_LISTED)]
    return DocumentPage(tuple(document_row(it, chunks=it.chunk_count or 0, now=now) for it in shown), total, number)


@user_page("GET")
def document(request: HtmxHttpRequest, document_id: UUID) -> HttpResponse:
    """Show a document with its chunks; one outside the scope is a 404."""
    viewer = viewer_of(request)
    try:
        principal = principal_for(viewer, request.GET.get("as", ""))
    except NotPermittedError as error:
        raise PermissionDenied from error
    except NotFoundError as error:
        raise Http404 from error
    scope = scope_for(principal)
    found = Document.objects.in_scope(scope).filter(pk=document_id).first()
    if found is None:
        raise Http404
    audit.record("document.read", actor=viewer, subject=str(found.pk))
    note_accesses([found.pk])
    chunks = found.chunks.filter(connection_id__in=scope.connection_ids).defer("search").order_by("ordinal")
    panel = document_panel(found, chunks, scope=scope, now=timezone.now())
    context = {"document": panel, "section": "documents", "run_as": "" if principal.user == viewer else principal.user}
    return render(request, "explorer/documents/document.html", context)
