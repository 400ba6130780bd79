"""Cards of the models in use, rows of embedding indexes, and the table of available models."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from explorer import wording
from explorer.components.bars import percent
from explorer.pages.health.panels import size
from explorer.wording import WORDS
from retrieval.encoders import Encoder, OnnxEncoder
from retrieval.encoders.cross_encoder import CrossEncoder
from retrieval.encoders.manifest import LocalModel
from retrieval.encoders.model_table import MODEL_TABLE, TableModel
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.encoders.reranker import Reranker
from retrieval.index.embedding_index import Progress
from retrieval.index.reranking import StoredInteraction
from retrieval.models import Chunk, EmbeddingIndex

_Status = EmbeddingIndex.Status
_TONES: Final = {_Status.ACTIVE: "good", _Status.BUILDING: "accent", _Status.PREVIOUS: ""}
_MODES: Final = {EmbeddingIndex.Mode.CHUNK_FIRST: "each chunk separately", EmbeddingIndex.Mode.LATE: "late chunking"}
_ROW_BYTES: Final = 72  #: Overhead of a row of vectors, whose numbers take two bytes each.
_MINUTE: Final = 60

Fact = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ModelCard:
    """A model in use."""

    role: str
    name: str
    facts: tuple[Fact, ...]
    problem: str = ""  #: Why it is unavailable; empty if it is not.


def encoder_card(encoder: Encoder) -> ModelCard:
    """Return the card of the embedding model, local or at a service."""
    return ModelCard("Embedding model", encoder.name, tuple(_encoder_facts(encoder)))


def _encoder_facts(encoder: Encoder) -> Iterator[Fact]:
    if isinstance(encoder, OnnxEncoder):
        manifest = encoder.manifest
        yield "Runs on", f"this machine, {wording.counted(encoder.threads, 'thread')}"
        yield "Pooling", manifest.pooling
        yield "Query prefix", manifest.query_prefix or "none"
        yield "Precision", manifest.quantisation
        yield "Licence", manifest.licence
        yield "Vocabulary", f"{encoder.vocabulary:,} tokens"
    if isinstance(encoder, RemoteEncoder):
        yield "Runs on", f"a service ({encoder.service.kind})"
        yield "Query timeout", f"{encoder.service.query_timeout_seconds * 1000:,.0f} ms"
    yield "Dimensions", f"{encoder.dim:,}"
    yield "Maximum input", f"{encoder.max_tokens:,} tokens"
    batching = encoder.batching
    yield "Parallel requests", f"{wording.counted(batching.calls, 'call')} of {wording.counted(batching.texts, 'text')}"


def reranker_card(reranker: Reranker | None, *, candidates: int) -> ModelCard:
    """Return the card of the reranker, which scores `candidates` hits of a search."""
    if reranker is None:
        return ModelCard("Reranker", "none", (("Final order", "blended score"),))
    return ModelCard("Reranker", reranker.name, tuple(_reranker_facts(reranker, candidates)), reranker.problem)


def _reranker_facts(reranker: Reranker, candidates: int) -> Iterator[Fact]:
    yield "Score", reranker.score_type.value
    weight = reranker.blend_weight
    yield "Final order", "reranker score" if weight is None else f"blended score + {weight:g} * reranker score"
    yield "Candidates", f"top {wording.counted(candidates, 'hit')}"
    if isinstance(reranker, CrossEncoder):
        yield "Maximum input", f"{reranker.manifest.max_tokens:,} tokens"
        yield "Precision", reranker.manifest.quantisation
        yield "Licence", reranker.manifest.licence
    if isinstance(reranker, StoredInteraction):
        yield "Token vectors", f"{reranker.count_chunks():,} of {wording.counted(Chunk.objects.count(), 'chunk')}"


def listed_models(local: Iterable[LocalModel]) -> Iterator[tuple[TableModel, str, str]]:
    """Yield the table of embedding models, each with its state and tone."""
    states = {model.name: model.state for model in local}
    for model in MODEL_TABLE.values():
        state = states.get(model.name, "")
        tone = "good" if state == "ready" else "bad" if state else ""
        yield model, state or ("downloadable" if model.can_be_fetched else "not installed"), tone


def index_row(
    row: EmbeddingIndex, made: Progress, *, hnsw_bytes: int, now: datetime, alive: datetime
) -> dict[str, Any]:
    """Return the row of an index; a build without a heartbeat since `alive` counts as stopped."""
    is_building = row.status == _Status.BUILDING and bool(made.missing)
    complete = row.status == _Status.BUILDING and not made.missing
    is_active = row.status == _Status.ACTIVE
    return {
        "index": row,
        "made": made,
        "mode": _MODES.get(EmbeddingIndex.Mode(row.mode), row.mode),
        "scan": WORDS["index_scans"][EmbeddingIndex.Scan(row.scan)].format(dim=row.scan_dim, oversample=row.oversample),
        "status": "complete" if complete else row.status,
        "tone": "good" if complete else _TONES[_Status(row.status)],
        # Percent of the chunks that have a vector.
        "share": round(percent(made.done, made.chunks), 1) if made.chunks else 100.0,
        "pace": pace(made) if is_building else "",
        "size": size(hnsw_bytes + made.done * (2 * row.dim + _ROW_BYTES)),
        "since": wording.ago(row.switched_at or row.created_at, now),
        "is_building": is_building,
        "is_active": is_active,
        "is_previous": row.status == _Status.PREVIOUS,
        "can_switch": not is_active and made.done == made.chunks,
        "is_stopped": bool(made.missing) and (bool(row.problem) or (row.heartbeat_at or row.created_at) < alive),
    }


def pace(made: Progress) -> str:
    """Return speed and time left of a build; empty if unknown."""
    if not made.rate or made.seconds_left is None:
        return ""
    seconds = made.seconds_left
    left = f"{seconds:.0f} s" if seconds < _MINUTE else f"{seconds / _MINUTE:.0f} min"
    return f"{made.rate:.0f} chunks/s, about {left} left"


def announcement(rows: Iterable[dict[str, Any]]) -> str:
    """Return the progress of builds for screen readers."""
    return ". ".join(f"Index {row['index'].pk}: {row['share']:.0f} percent" for row in rows if row["is_building"])
