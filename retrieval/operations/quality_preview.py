"""The chunks that the quality filter would drop, by connection: helps admins to choose a threshold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Sum

from corecube.models import Connection
from retrieval.models import Chunk, TermFrequency
from retrieval.presets.catalog import DEFAULT_PRESET, preset_named
from retrieval.search.configuration import configuration_of

_MAX_CHARACTERS: Final = 80


@dataclass(frozen=True, slots=True)
class LowChunk:
    """A chunk that the filter would drop."""

    document_id: UUID
    ordinal: int
    title: str
    quality: float
    parts: Mapping[str, float]  #: Deductions from the quality, largest first.
    beginning: str


@dataclass(frozen=True, slots=True)
class QualityPreview:
    """The number of chunks of a connection that the filter would drop."""

    slug: str
    minimum: float
    dropped: int
    chunks: int
    lowest: tuple[LowChunk, ...]


def live_minimum() -> float:
    """Return the live threshold."""
    return configuration_of(preset_named(DEFAULT_PRESET)).config.quality.minimum


def preview(connection: Connection, *, minimum: float, limit: int) -> QualityPreview:
    """Return what a threshold (0 to 1) would drop of a connection, with the `limit` lowest chunks.

    The chunks contain text: show them only to users with access to the connection.
    """
    low = Chunk.objects.filter(connection_id=connection.pk, quality__lt=minimum)
    counted = TermFrequency.objects.filter(lexeme="", connection_id=connection.pk)
    ordered, lowest = low.order_by("quality", "document_id", "ordinal"), []
    for chunk in ordered[:limit].select_related("document").defer("search") if limit else ():
        parts = sorted(chunk.quality_parts.items(), key=lambda part: (-part[1], part[0]))
        beginning = " ".join(chunk.text[: 2 * _MAX_CHARACTERS].split())[:_MAX_CHARACTERS]
        title = chunk.document.title
        lowest.append(LowChunk(chunk.document_id, chunk.ordinal, title, chunk.quality, dict(parts), beginning))
    return QualityPreview(
        slug=connection.slug,
        minimum=minimum,
        dropped=low.count(),
        # The empty lexeme stores chunk counts, which is faster than counting millions of rows.
        chunks=counted.aggregate(sum=Sum("chunks"))["sum"] or 0,
        lowest=tuple(lowest),
    )
