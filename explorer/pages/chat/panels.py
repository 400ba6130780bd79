"""The parts around a conversation: the list, the choice of sources, and a passage with its context."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any, Final

from django.utils import timezone

from corecube.models import User
from corecube.scope import AccessScope
from explorer import wording
from explorer.components.links import document_url
from retrieval.answers.conversations.shelf import conversations_of
from retrieval.engine.types import ChunkId
from retrieval.models import Chunk, Conversation

PER_PAGE: Final = 60
#: Chunks before and after the cited one.
_AROUND: Final = 1
_MAX_DIGITS: Final = 4
_WEEK: Final = timedelta(days=7)
_MONTH: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class _ShelfGroup:
    heading: str
    items: tuple[Conversation, ...]


@dataclass(frozen=True, slots=True)
class _SourceChoice:
    slug: str
    name: str
    compartment: str
    sensitivity: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class _PassageBlock:
    #: The last heading above it; empty if it is the same as in the block before.
    heading: str
    text: str
    is_cited: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _PassagePanel:
    number: int
    title: str
    connection: str
    path: str
    #: Pages, rows or lines, in words.
    pages: str
    address: str
    blocks: tuple[_PassageBlock, ...]


def shelf_of(viewer: User, find: str, *, page: str = "", now: datetime | None = None) -> dict[str, Any]:
    """Return the viewer's conversations for the list, the latest first; `more` counts those after this page."""
    found = conversations_of(viewer, find)
    number = int(page) if page.isdecimal() and len(page) <= _MAX_DIGITS else 1
    start = (max(number, 1) - 1) * PER_PAGE
    items = list(found[start : start + PER_PAGE])
    more = max(found.count() - start - PER_PAGE, 0) if len(items) == PER_PAGE else 0
    today = timezone.localdate(now)
    groups = groupby(items, key=lambda it: _heading(timezone.localdate(it.updated_at), today))
    history = tuple(_ShelfGroup(heading, tuple(group)) for heading, group in groups)
    return {"history": history, "find": find, "more": more, "next_page": number + 1}


def _heading(day: date, today: date) -> str:
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if day > today - _WEEK:
        return "Last 7 days"
    return "Last 30 days" if day > today - _MONTH else f"{day:%B %Y}"


def source_choices(scope: AccessScope, include: Collection[str], exclude: Collection[str]) -> tuple[_SourceChoice, ...]:
    """Return the connections in scope, those of a conversation selected; an empty `include` means all."""
    return tuple(
        _SourceChoice(
            it.connection.slug,
            it.connection.name,
            it.connection.compartment,
            wording.level(it.connection.sensitivity),
            (not include or it.connection.slug in include) and it.connection.slug not in exclude,
        )
        for it in scope.included
    )


def scope_words(choices: Sequence[_SourceChoice]) -> str:
    """Return the chosen sources in words: "All sources", "Handbook", "3 of 9 sources"."""
    chosen = [it for it in choices if it.is_chosen]
    if len(chosen) == len(choices):
        return "All sources"
    return chosen[0].name if len(chosen) == 1 else f"{len(chosen)} of {len(choices)} sources"


def passage_panel(scope: AccessScope, chunk_id: ChunkId, number: int) -> _PassagePanel | None:
    """Return a passage with its neighbours; None if the scope has no such passage."""
    document_id, ordinal = chunk_id
    around = range(ordinal - _AROUND, ordinal + _AROUND + 1)
    own = Chunk.objects.filter(document_id=document_id, connection_id__in=scope.connection_ids, ordinal__in=around)
    chunks = list(own.select_related("document").defer("search", "document__metadata").order_by("ordinal"))
    cited = next((it for it in chunks if it.ordinal == ordinal), None)
    if cited is None:
        return None
    return _PassagePanel(
        number=number,
        title=cited.document.title,
        connection=scope.inclusion(cited.connection_id).connection.name,
        path=" \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ".join(cited.heading_path),
        pages=wording.place(cited, cited.document.source_type),
        address=document_url(chunk_id, ""),
        blocks=tuple(_blocks(chunks, ordinal)),
    )


def _blocks(chunks: Iterable[Chunk], cited: int) -> Iterator[_PassageBlock]:
    before: list[str] | None = None
    for chunk in chunks:
        heading = chunk.heading_path[-1] if chunk.heading_path and chunk.heading_path != before else ""
        yield _PassageBlock(heading, chunk.text, chunk.ordinal == cited)
        before = chunk.heading_path
