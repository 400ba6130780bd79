"""What templates need beyond Django's own tags: figures with separators, and addresses of passages."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from explorer.panels.bars import BarPart
from explorer.panels.lane_cards import Place
from explorer.snippets import Segment
from retrieval.types import ChunkId

register = template.Library()

#: Addresses kept at hand: a page names the same documents over and over, and to make one takes a while.
_MOST_ADDRESSES: Final = 4096


@register.filter
def thousands(number: int) -> str:
    """Return a whole number with separators: 1,204."""
    return f"{number:,}"


@register.simple_tag
def document_url(chunk_id: ChunkId, run_as: str) -> str:
    """Return the address of a chunk in its document, read as `run_as` where that is someone else."""
    query = f"?{urlencode({'as': run_as})}" if run_as else ""
    return f"{_document_path(chunk_id.document_id)}{query}#chunk-{chunk_id.ordinal}"


@lru_cache(maxsize=_MOST_ADDRESSES)
def _document_path(document_id: UUID) -> str:
    return reverse("explorer:document", args=[document_id])


@register.filter
def bar_parts(parts: Iterable[BarPart]) -> SafeString:
    """Return the pieces of a bar."""
    pieces = ((part.signal, " is-absent" if part.absent else "", part.x, part.width) for part in parts)
    return format_html_join("", '<rect class="fill-stage fill-{}{}" x="{}" width="{}" height="6"/>', pieces)


@register.filter
def marked(segments: Iterable[Segment]) -> SafeString:
    """Return text with what matches the query marked."""
    pieces = (format_html("<mark>{}</mark>", it.text) if it.matched else it.text for it in segments)
    return format_html_join("", "{}", ((piece,) for piece in pieces))


@register.filter
def lane_places(places: Iterable[Place]) -> SafeString:
    """Return where other lanes have a card's chunk."""
    return format_html_join("", '<span class="lane-place{}">{}{} {}{}</span>', map(_place_parts, places))


def _place_parts(place: Place) -> tuple[str, SafeString, str, SafeString | str, str]:
    said = format_html('<span class="visually-hidden">{}, </span>', place.direction or "not there")
    arrow = format_html('<span aria-hidden="true">{}</span>', place.arrow) if place.arrow else ""
    return (f" is-{place.direction}" if place.direction else "", said, place.lane, arrow, place.text)


@register.filter
def table_rows(rows: Iterable[Sequence[str]]) -> SafeString:
    """Return the rows of a table's body; the first cell of each names its row."""
    return format_html_join("", "<tr>{}</tr>", ((_cells(row),) for row in rows))


def _cells(row: Sequence[str]) -> SafeString:
    cells = format_html_join("", "<td>{}</td>", ((cell,) for cell in row[1:]))
    return format_html('<th scope="row">{}</th>{}', row[0], cells)
