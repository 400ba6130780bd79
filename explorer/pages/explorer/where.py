"""The explorer's tab "Document trace": which documents may be asked about, and what is told of them."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from corecube.access import Principal, scope_for
from corecube.sanitise import storable
from corecube.scope import AccessScope
from explorer.pages.explorer.lifeline import Candidate, LifelinePanel, WherePanel, candidates, lifeline_panel
from retrieval.models import Document, SyncItem
from retrieval.models.document import id_in
from retrieval.records.lifeline.service import Reader, follow
from retrieval.search.outcome import SearchOutcome

#: Documents that the search box offers at once.
_MAX_CANDIDATES: Final = 20


def where_panel(outcome: SearchOutcome, reader: Reader, *, find: str, pin: str) -> WherePanel:
    """Return the tab: the pinned document's way through the search, and the documents that the search box found."""
    find = storable(find).strip()
    found, has_more = candidates(_candidates(find, reader), _MAX_CANDIDATES) if find else ((), False)
    return WherePanel(
        find=find,
        candidates=found,
        has_more=has_more,
        lifeline=_lifeline(pin, outcome, reader),
        is_pinned=bool(pin),
    )


def reader_of(principal: Principal, whole: AccessScope) -> Reader:
    """Return what whoever looks at the page may be told: an admin who looks through other eyes sees with both.

    `whole` is all that the principal may see, with what they may not where an admin looks.
    """
    viewer = principal.actor or principal.user
    own = whole if viewer == principal.user else scope_for(Principal(viewer))
    readable = frozenset((*whole.connection_ids, *own.connection_ids))
    return Reader(whole, readable, is_admin=viewer.is_admin)


def pinned_title(pin: str, reader: Reader) -> str:
    """Return the title of a pinned document; empty for one that the reader may not read."""
    document_id = id_in(pin)
    if document_id is None:
        return ""
    readable = Document.objects.filter(connection_id__in=sorted(reader.readable), pk=document_id)
    return readable.values_list("title", flat=True).first() or ""


def _lifeline(pin: str, outcome: SearchOutcome, reader: Reader) -> LifelinePanel | None:
    document_id = id_in(pin)
    line = follow(document_id, outcome, reader) if document_id else None
    return lifeline_panel(line) if line else None


def _candidates(find: str, reader: Reader) -> Iterator[Candidate]:
    return chain(_indexed(find, reader), _failed(find, reader))


def _indexed(find: str, reader: Reader) -> Iterator[Candidate]:
    """Yield the documents that are called so, among those that the reader may read."""
    readable = Document.objects.filter(connection_id__in=sorted(reader.readable)).named(find)
    rows = readable.order_by("title", "pk").values_list("pk", "title", "connection__name")
    return (Candidate(*row) for row in rows[: _MAX_CANDIDATES + 1])


def _failed(find: str, reader: Reader) -> Iterator[Candidate]:
    """Yield what could not be taken in and is called so, of the connections that the reader knows."""
    known = SyncItem.objects.filter(state=SyncItem.State.FAILED, sync__connection_id__in=sorted(reader.known))
    rows = known.filter(external_id__icontains=find).order_by("external_id", "pk")
    named = rows.values_list("document_id", "external_id", "sync__connection__name", "reason")
    return (Candidate(*row) for row in named[: _MAX_CANDIDATES + 1])
