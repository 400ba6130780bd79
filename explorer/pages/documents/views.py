"""Documents that the viewer may see: the list, and one document."""

from collections.abc import Iterable, Iterator
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.errors import NotPermittedError
from corecube.http import HtmxHttpRequest
from corecube.sanitise import storable
from explorer import wording
from explorer.components.search_page import with_chosen
from explorer.viewer import principal_for, render_page, user_page, viewer_of, wants_fragment, whole_number
from retrieval.models import Chunk, Document
from retrieval.records.accesses import note_accesses

PER_PAGE: Final = 50  #: Rows per page, and documents that paging can reach.
MAX_LISTED: Final = 10_000
_KIB: Final = 1024


def page_of(total: int, requested: str) -> Page[int]:
    """Return the requested page of the list, limited to the existing ones: the positions of its documents."""
    pages = Paginator(range(min(total, MAX_LISTED)), PER_PAGE)
    return pages.page(max(1, min(whole_number(requested, 1, digits=4), pages.num_pages)))


def chunk_blocks(chunks: Iterable[Chunk], source_type: str) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a document, in order."""
    path: tuple[str, ...] = ()
    for chunk in chunks:
        headings = tuple(chunk.heading_path)
        yield {
            "chunk": chunk,
            "headings": headings if headings != path else (),
            "pages": wording.place(chunk, source_type),
            "triples": tuple(" \N{EM DASH} ".join(triple) for triple in chunk.triples or ()),
        }
        path = headings


def web_link(uri: str) -> str:
    """Return an HTTP URL, empty for any other scheme, which may be unsafe to open."""
    return uri if uri.startswith(("http://", "https://")) else ""


def size(count: int) -> str:
    """Return a number of bytes as text: "812 B", "4.2 KB", "1.3 MB"."""
    if count < _KIB:
        return f"{count} B"
    return f"{count / _KIB:.1f} KB" if count < _KIB**2 else f"{count / _KIB**2:.1f} MB"


@user_page("GET", varies=True)
def documents(request: HtmxHttpRequest) -> HttpResponse:
    """List the documents that the viewer may see, by title."""
    scope = scope_for(Principal(viewer_of(request)))
    filters = {name: storable(request.GET.get(name, "")).strip() for name in ("q", "connection", "type")}
    found = Document.objects.in_scope(scope)
    if filters["connection"]:
        ids = [it.connection.id for it in scope.included if it.connection.slug == filters["connection"]]
        found = found.filter(connection_id__in=ids)
    if filters["type"]:
        found = found.filter(source_type=filters["type"])
    page = _page(found.named(filters["q"]) if filters["q"] else found, request.GET)
    context: dict[str, Any] = {"filters": filters, **page}
    if not wants_fragment(request):
        connections = ((it.connection.slug, it.connection.name) for it in scope.included)
        context["connections"] = with_chosen(connections, filters["connection"])
        types = Document.objects.in_scope(scope).order_by("source_type").values_list("source_type", flat=True)
        context["types"] = with_chosen(((it, it) for it in types.distinct()), filters["type"])
    page_template, fragment = "explorer/documents/documents.html", "explorer/documents/_documents_fragment.html"
    return render_page(request, page_template, fragment, context)


def _page(found: QuerySet[Document], query: QueryDict) -> dict[str, Any]:
    total = found[: MAX_LISTED + 1].count()
    page = page_of(total, query.get("page", ""))
    chunks = Chunk.objects.filter(document_id=OuterRef("pk"), connection_id=OuterRef("connection_id")).order_by()
    counted = chunks.values("document_id").annotate(count=Count("ordinal")).values("count")
    rows = found.select_related("connection").defer("metadata", "connection__config").order_by("title", "pk")
    listed = rows.annotate(chunk_count=Subquery(counted, output_field=IntegerField()))
    shown = listed[max(page.start_index() - 1, 0) : page.end_index()]
    return {"page": page, "rows": tuple(shown), "is_capped": total > MAX_LISTED}


@user_page("GET")
def document(request: HtmxHttpRequest, document_id: UUID) -> HttpResponse:
    """Show a document with its chunks; one outside the scope is a 404."""
    viewer = viewer_of(request)
    try:
        principal = principal_for(viewer, request.GET.get("as", ""))
    except NotPermittedError as error:
        raise PermissionDenied from error
    scope = scope_for(principal)
    found = get_object_or_404(Document.objects.in_scope(scope), pk=document_id)
    audit.record("document.read", actor=viewer, subject=str(found.pk))
    note_accesses([found.pk])
    chunks = found.chunks.filter(connection_id__in=scope.connection_ids).defer("search").order_by("ordinal")
    inclusion = scope.inclusion(found.connection_id)
    context = {
        "document": found,
        "link": web_link(found.uri),
        "size": size(found.byte_size),
        "connection": inclusion.connection,
        "access": wording.inclusion_rule(inclusion),
        "blocks": list(chunk_blocks(chunks, found.source_type)),
        "run_as": "" if principal.user == viewer else principal.user,
    }
    return render(request, "explorer/documents/document.html", context)
