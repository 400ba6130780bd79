"""The Explorer's tab "Document trace": the documents to choose from, and the path of the chosen one."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from corecube.access import Principal, scope_for
from corecube.sanitise import storable
from corecube.scope import AccessScope
from explorer.pages.explorer.lifeline import Candidate, WherePanel, candidates, lifeline_panel
from retrieval.models import Document, SyncItem
from retrieval.models.document import id_in
from retrieval.records.lifeline.service import Reader, follow
from retrieval.search.outcome import SearchOutcome

#: Documents that the search box offers.
_MAX_CANDIDATES: Final = 20


def where_panel(outcome: SearchOutcome, reader: Reader, *, find: str, pin: str) -> WherePanel:
    """Return the tab: the path of the pinned document, and the documents that the search box found, each once."""
    find = storable(find).strip()
    rows = chain(_indexed(find, reader), _failed(find, reader)) if find else ()
    found, has_more = candidates(rows, _MAX_CANDIDATES)
    document_id = id_in(pin)
    line = follow(document_id, outcome, reader) if document_id else None
    return WherePanel(
        find=find,
        candidates=found,
        has_more=has_more,
        lifeline=lifeline_panel(line) if line else None,
        is_pinned=bool(pin),
    )


def reader_of(principal: Principal, whole: AccessScope) -> Reader:
    """Return what the viewer of the page may see: an admin with another user's view has the access of both.

    `whole` is everything that the principal may see, for an admin with the excluded connections.
    """
    viewer = principal.actor or principal.user
    own = whole if viewer == principal.user else scope_for(Principal(viewer))
    readable = frozenset((*whole.connection_ids, *own.connection_ids))
    return Reader(whole, readable, is_admin=viewer.is_admin)


def pinned_title(pin: str, reader: Reader) -> str:
    """Return the title of a pinned document; empty if the reader may not see it."""
    document_id = id_in(pin)
    if document_id is None:
        return ""
    readable = Document.objects.filter(connection_id__in=sorted(reader.readable), pk=document_id)
    return readable.values_list("title", flat=True).first() or ""


def _indexed(find: str, reader: Reader) -> Iterator[Candidate]:
    """Yield the documents with this name that the reader may see."""
    readable = Document.objects.filter(connection_id__in=sorted(reader.readable)).named(find)
    rows = readable.order_by("title", "pk").values_list("pk", "title", "connection__name")
    return (Candidate(*row) for row in rows[: _MAX_CANDIDATES + 1])


def _failed(find: str, reader: Reader) -> Iterator[Candidate]:
    """Yield items with this name that could not be ingested, of the connections that the reader knows."""
    known = SyncItem.objects.filter(state=SyncItem.State.FAILED, sync__connection_id__in=sorted(reader.known))
    rows = known.filter(external_id__icontains=find).order_by("external_id", "pk")
    named = rows.values_list("document_id", "external_id", "sync__connection__name", "reason")
    return (Candidate(*row) for row in named[: _MAX_CANDIDATES + 1])
