"""Conversion of search results to API responses. Chunks reach a response only through this module."""

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from corecube.scope import ConnectionFacts
from retrieval.api import schemas
from retrieval.engine.state import Span
from retrieval.engine.types import ChunkFacts, Hit
from retrieval.models import Document
from retrieval.presets.contextpack.judge import RubricScores
from retrieval.search.outcome import SearchOutcome
from retrieval.text.document import row_unit

Absolute = Callable[[str], str]  #: Converts a path to a URL of this server.
Documents = Mapping[UUID, Document]


def document_path(document_id: UUID, ordinal: int | None = None) -> str:
    """Return the path of a document's page, at one of its chunks if `ordinal` is given."""
    return f"/documents/{document_id}/" + ("" if ordinal is None else f"#chunk-{ordinal}")


def source(connection: ConnectionFacts) -> schemas.Source:
    """Return the connection of a chunk or document."""
    return schemas.filled(
        schemas.Source,
        connection,
        connection=connection.slug,
        sensitivity=connection.sensitivity.name.lower(),
        trust=connection.trust.name.lower(),
    )


def pages(start: int | None, end: int | None) -> schemas.Pages | None:
    """Return a range of pages; None for formats without pages."""
    return None if start is None else schemas.Pages(start=start, end=start if end is None else end)


def rows(start: int | None, end: int | None, source_type: str) -> schemas.Rows | None:
    """Return a range of rows, records or lines; None for formats without them."""
    if start is None:
        return None
    return schemas.Rows(start=start, end=start if end is None else end, unit=row_unit(source_type))


def search_out(outcome: SearchOutcome, absolute: Absolute, explain: schemas.Explanation | None) -> schemas.SearchOut:
    """Return a search's response; with an explanation it contains the score breakdown of each hit."""
    has_explanation, documents = explain is not None, documents_of(outcome)
    answer = schemas.SearchOut(
        trace_id=outcome.id,
        preset=outcome.preset.name,
        preset_version=outcome.preset_version,
        version=outcome.version_number,
        mode=outcome.configuration.mode,
        hits=[
            hit_out(*it, outcome, absolute, documents, with_ledger=has_explanation)
            for it in enumerate(outcome.hits, start=1)
        ],
        passages=[
            schemas.filled(schemas.PassageOut, passage, chunk_id=str(passage.hit.chunk_id))
            for passage in outcome.passages
        ],
        answerability=answerability(outcome, with_signals=has_explanation),
        degraded=list(outcome.state.degraded),
        skipped=outcome.skipped,
        timings=timings(outcome),
    )
    if explain is not None:
        answer.explain = explain
    return answer


def documents_of(outcome: SearchOutcome) -> Documents:
    """Return the documents of a search's hits; those that were deleted meanwhile are missing."""
    wanted = {hit.chunk_id.document_id for hit in outcome.hits}
    found = Document.objects.in_scope(outcome.state.scope).filter(pk__in=wanted).only("external_id", "metadata")
    return {it.pk: it for it in found}


def metadata_of(document: Document | None) -> dict[str, str]:
    """Return a document's metadata as texts."""
    return {name: str(value) for name, value in document.metadata.items()} if document else {}


def groups_of(hits: Sequence[schemas.HitOut], absolute: Absolute) -> list[schemas.GroupOut]:
    """Return the documents of hits, in the order of their best hits."""
    ranks: dict[UUID, list[schemas.HitOut]] = {}
    for hit in hits:
        ranks.setdefault(hit.document_id, []).append(hit)
    return [
        schemas.filled(schemas.GroupOut, own[0], url=absolute(document_path(key)), ranks=[it.rank for it in own])
        for key, own in ranks.items()
    ]


def hit_out(
    rank: int, hit: Hit, outcome: SearchOutcome, absolute: Absolute, documents: Documents, *, with_ledger: bool
) -> schemas.HitOut:
    """Return a hit; raise KeyError for one outside the scope."""
    chunk: ChunkFacts = hit.chunk
    document = documents.get(hit.chunk_id.document_id)
    out = schemas.filled(
        schemas.HitOut,
        chunk,
        rank=rank,
        chunk_id=str(hit.chunk_id),
        document_id=hit.chunk_id.document_id,
        external_id=document.external_id if document else "",
        position=hit.chunk_id.ordinal,
        metadata=metadata_of(document),
        url=absolute(document_path(*hit.chunk_id)),
        # Raises for a connection outside the scope, so that such a chunk fails the request and is not shown.
        source=source(outcome.state.scope.inclusion(chunk.connection_id).connection),
        pages=pages(chunk.page_start, chunk.page_end),
        rows=rows(chunk.row_start, chunk.row_end, chunk.source_type),
        score=hit.score,
        score_type=hit.score_type.value,
    )
    if with_ledger:
        out.explain = ledger(hit)
        relevance = (outcome.state.part(RubricScores) or RubricScores()).relevance
        if (judged := relevance.get(hit.chunk_id)) is not None:
            out.explain.relevance = schemas.RelevanceOut(
                relevance_score=judged.score, answerability=judged.is_answering, key_evidence=judged.evidence
            )
    return out


def ledger(hit: Hit) -> schemas.HitLedger:
    """Return all signals and contributions of a hit's score."""
    return schemas.filled(
        schemas.HitLedger,
        hit,
        matches=[schemas.MatchOut.model_validate(match, from_attributes=True) for match in hit.matches],
        lifts=[
            schemas.filled(schemas.LiftOut, lift, source_chunk=None if lift.source is None else str(lift.source))
            for lift in hit.lifts
        ],
    )


def answerability(outcome: SearchOutcome, *, with_signals: bool) -> schemas.AnswerabilityOut | None:
    """Return the verdict on a search; None if the deadline passed before the answerability stage."""
    judged = outcome.state.answerability
    if judged is None:
        return None
    out = schemas.filled(schemas.AnswerabilityOut, judged, calibrated=judged.is_calibrated)
    if with_signals:
        out.signals, out.contributions = dict(judged.signals), dict(judged.contributions)
    return out


def timings(outcome: SearchOutcome) -> schemas.Timings:
    """Return the duration of a search: the total and each stage."""
    return schemas.Timings(
        total_ms=_milliseconds(outcome.seconds),
        stages={span.stage: _milliseconds(span.seconds) for span in outcome.trace},
    )


def explanation(outcome: SearchOutcome) -> schemas.Explanation:
    """Return what each stage did."""
    return schemas.Explanation(spans=[_span(span) for span in outcome.trace])


def _span(span: Span) -> schemas.SpanOut:
    return schemas.filled(
        schemas.SpanOut,
        span,
        ms=_milliseconds(span.seconds),
        # Chunks that access removed, or that may be outside the scope, are not named.
        drops=[
            schemas.DropOut(chunk_id=str(drop.chunk_id), reason=drop.reason.value)
            for drop in span.drops
            if not drop.is_nameless
        ],
        notes=[schemas.NoteOut.model_validate(note, from_attributes=True) for note in span.notes],
    )


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
