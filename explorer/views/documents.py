"""A document, as far as its reader may see it."""

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from corecube.access import scope_for
from corecube.errors import NotFoundError, NotPermittedError
from corecube.http import HtmxHttpRequest
from explorer.panels.document import document_panel
from explorer.views.viewer import principal_for, signed_in, viewer_of
from retrieval.models import Document


@require_GET
@signed_in
@never_cache
def document(request: HtmxHttpRequest, document_id: UUID) -> HttpResponse:
    """Show a document's chunks in order; one outside the scope does not exist."""
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
    chunks = found.chunks.filter(connection_id__in=scope.connection_ids).defer("search").order_by("ordinal")
    panel = document_panel(found, chunks, scope=scope, now=timezone.now())
    context = {"document": panel, "section": "explorer", "run_as": "" if principal.user == viewer else principal.user}
    return render(request, "explorer/document.html", context)
