"""One record of the query log, limited to what its reader may see now."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from corecube.scope import AccessScope
from explorer import wording
from explorer.charts.chart import ABSENT, Chart
from explorer.charts.waterfall import waterfall
from explorer.components.answerability import signal_label
from explorer.components.bars import BarPart, score_bar
from explorer.components.drops import ChunkLabels, chunk_label
from explorer.components.funnel import Funnel, stored_funnel
from explorer.components.preset_numbers import version_label
from explorer.components.timeline import TraceRow, span_rows
from retrieval.engine.types import ChunkId, TermMatch
from retrieval.models import Chunk, SearchRecord
from retrieval.presets.preset import PresetConfig
from retrieval.records.stored_trace import hits_of, ranking_of, spans_of


class Presence(StrEnum):
    """The current state of a chunk that was found."""

    SAME = "same"
    CHANGED = "changed"
    GONE = "gone"
    #: It may exist, but the reader may not see it.
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class Figure:
    """A named number of a hit."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class StoredHit:
    """A logged hit, with the current label of its chunk."""

    rank: int
    chunk_id: ChunkId
    #: Empty for a deleted chunk.
    label: str
    presence: Presence
    score: float
    score_type: str
    bar: tuple[BarPart, ...]
    #: Its rank in each leg, or a dash.
    legs: tuple[Figure, ...]
    contributions: tuple[Figure, ...]
    signals: tuple[Figure, ...]
    matches: tuple[TermMatch, ...]
    #: The number of its passage, if it was packed.
    citation: int | None


@dataclass(frozen=True, slots=True)
class Found:
    """The chunks of a record that exist now, within its reader's scope."""

    labels: ChunkLabels
    hashes: Mapping[ChunkId, str]
    #: Chunks that exist outside the reader's scope; set for an admin only.
    outside: Collection[ChunkId]
    tells_gone: bool
    scope: AccessScope

    def presence(self, chunk_id: ChunkId, content_hash: str) -> Presence:
        """Return the state of a chunk. A user who is not an admin learns only whether they can see it."""
        if chunk_id in self.labels:
            return Presence.SAME if content_hash in {"", self.hashes[chunk_id]} else Presence.CHANGED
        is_gone = self.tells_gone and chunk_id not in self.outside
        return Presence.GONE if is_gone else Presence.HIDDEN


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPanels:
    """The panels of a record's page."""

    trace_id: UUID
    preset: str
    preset_version: str
    version: str
    is_draft: bool
    #: "maya", "maya via key cc_12…".
    principal: str
    funnel: Funnel
    trace: tuple[TraceRow, ...]
    waterfall: Chart | None
    hits: tuple[StoredHit, ...]
    #: Hits that the reader may not see now.
    hidden: int
    #: The answerability signals.
    signals: tuple[Figure, ...]
    presences: Mapping[str, int]


def find_chunks(record: SearchRecord, scope: AccessScope, *, tells_gone: bool) -> Found:
    """Return the chunks of a record that exist now, within the reader's `scope`."""
    spans = spans_of(record.trace)
    named = {hit.chunk_id for hit in hits_of(record.trace)} | {drop.chunk_id for span in spans for drop in span.drops}
    sources = {inclusion.connection.id: inclusion.connection.name for inclusion in scope.included}
    here = Chunk.objects.filter(
        document_id__in={it.document_id for it in named}, ordinal__in={it.ordinal for it in named}
    )
    labels, hashes = {}, {}
    rows = here.filter(connection_id__in=sources).values_list(
        "document_id", "ordinal", "connection_id", "content_hash", "document__title", "heading_path"
    )
    for document, ordinal, connection_id, content_hash, title, path in rows:
        chunk_id = ChunkId(document, ordinal)
        labels[chunk_id] = chunk_label(title, path, source=sources[connection_id])
        hashes[chunk_id] = content_hash
    others = here.exclude(connection_id__in=sources).values_list("document_id", "ordinal") if tells_gone else ()
    return Found(labels, hashes, {ChunkId(*it) for it in others}, tells_gone, scope)


def record_panels(record: SearchRecord, found: Found, config: PresetConfig) -> RecordPanels:
    """Return the panels of a record; `config` has its settings."""
    spans = spans_of(record.trace)
    hits = tuple(_hits(record, found, config))
    listed = tuple(hit for hit in hits if hit.presence is not Presence.HIDDEN)
    signals = (record.trace.get("answerability") or {}).get("signals", {})
    return RecordPanels(
        trace_id=record.pk,
        preset=record.preset,
        preset_version=record.preset_version,
        version=version_label(record.trace.get("version", 0)),
        is_draft=record.trace.get("is_draft", False),
        principal=principal_label(record),
        funnel=stored_funnel(spans, config, found.labels, found.scope),
        trace=span_rows(spans, found.scope),
        waterfall=waterfall(
            record.trace.get("spans", ()), deadline_ms=config.deadline_ms, soft_share=config.soft_share
        ),
        hits=listed,
        hidden=len(hits) - len(listed),
        signals=tuple(Figure(signal_label(name), f"{value:.2f}") for name, value in signals.items()),
        presences={kind.value: sum(hit.presence is kind for hit in hits) for kind in Presence},
    )


def principal_label(record: SearchRecord) -> str:
    """Return the user and API key of a search; empty if the account was deleted."""
    name = record.user.username if record.user else ""
    return f"{name} via key {record.key.prefix}…" if record.key else name


def _hits(record: SearchRecord, found: Found, config: PresetConfig) -> Iterator[StoredHit]:
    trace = record.trace
    hashes = dict(ranking_of(trace))
    legs = frozenset(span.stage for span in spans_of(trace) if span.parent)
    citations = {passage["chunk"]: passage["number"] for passage in trace.get("passages", ())}
    for rank, hit in enumerate(hits_of(trace), start=1):
        yield StoredHit(
            rank=rank,
            chunk_id=hit.chunk_id,
            label=found.labels.get(hit.chunk_id, ""),
            presence=found.presence(hit.chunk_id, hashes.get(hit.chunk_id, "")),
            score=hit.score,
            score_type=hit.score_type.value,
            bar=score_bar(hit, legs=legs, full=config.highest_score),
            legs=tuple(Figure(wording.leg_label(leg), str(hit.ranks.get(leg, ABSENT))) for leg in sorted(legs)),
            contributions=tuple(_figures(hit.contributions, wording.signal_label)),
            signals=tuple(_figures(hit.signals, lambda name: name.replace("_", " "))),
            matches=hit.matches,
            citation=citations.get(str(hit.chunk_id)),
        )


def _figures(values: Mapping[str, float], label: Callable[[str], str]) -> Iterator[Figure]:
    for name, value in values.items():
        yield Figure(label(name), f"{value:.4f}".rstrip("0").rstrip("."))
