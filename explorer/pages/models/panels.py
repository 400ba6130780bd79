"""Models: what searches use and what it is, and the embedding indexes with what can be done about each."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from explorer import wording
from explorer.components.bars import percent
from explorer.pages.health.panels import size
from retrieval.encoders import Encoder, OnnxEncoder
from retrieval.encoders.cross_encoder import CrossEncoder
from retrieval.encoders.local import LocalModel
from retrieval.encoders.manifest import ModelManifest
from retrieval.encoders.model_table import MODEL_TABLE, TableModel
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.encoders.reranker import Reranker
from retrieval.index.embedding_index import Progress
from retrieval.models import EmbeddingIndex

_Status = EmbeddingIndex.Status
_TONES: Final = {_Status.ACTIVE: "good", _Status.BUILDING: "accent", _Status.PREVIOUS: ""}
_MODES: Final = {EmbeddingIndex.Mode.CHUNK_FIRST: "each chunk by itself", EmbeddingIndex.Mode.LATE: "late chunking"}
_SCANS: Final = {
    EmbeddingIndex.Scan.HALFVEC: "whole vectors",
    EmbeddingIndex.Scan.INT8: "a byte a component, {oversample:g} candidates a hit",
    EmbeddingIndex.Scan.BINARY: "a bit a component, {oversample:g} candidates a hit",
    EmbeddingIndex.Scan.PREFIX: "the first {dim} components, {oversample:g} candidates a hit",
}
#: Bytes of a row of vectors beside its numbers, which take two each.
_ROW_BYTES: Final = 72
_MINUTE: Final = 60

Fact = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ModelCard:
    """A model that searches use."""

    role: str
    name: str
    facts: tuple[Fact, ...]
    #: Why it cannot be used; empty when it can.
    problem: str = ""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """An embedding index."""

    id: int
    model: str
    source: str
    dimensions: int
    mode: str
    #: "whole vectors", "a bit a component" ...
    scan: str
    #: active, building, complete (built and not searched yet) or previous.
    status: str
    tone: str
    done: int
    chunks: int
    #: Percent of the chunks that have a vector.
    share: float
    #: "42 chunks/s, about 3 min left"; empty where nothing is known, or nothing left.
    pace: str
    size: str
    since: str
    problem: str
    is_building: bool
    #: Nobody builds it just now, as far as is known.
    is_stopped: bool

    @property
    def is_active(self) -> bool:
        """Whether searches use it."""
        return self.status == _Status.ACTIVE

    @property
    def can_switch(self) -> bool:
        """Whether searches could use it from now on."""
        return not self.is_active and self.done == self.chunks

    @property
    def is_previous(self) -> bool:
        """Whether searches used it before."""
        return self.status == _Status.PREVIOUS


def encoder_card(encoder: Encoder) -> ModelCard:
    """Return what the embedding model is, from its manifest or its service."""
    return ModelCard("Embedding model", encoder.name, tuple(_encoder_facts(encoder)))


def _encoder_facts(encoder: Encoder) -> Iterator[Fact]:
    if isinstance(encoder, OnnxEncoder):
        manifest = encoder.manifest
        yield "Runs", f"on this machine, {wording.counted(encoder.threads, 'thread')}"
        yield "Pooling", manifest.pooling
        yield "Prefix of a query", manifest.query_prefix or "none"
        yield from _manifest_facts(manifest)
        yield "Vocabulary", f"{encoder.vocabulary:,} tokens"
    if isinstance(encoder, RemoteEncoder):
        yield "Runs", f"at a service ({encoder.service.kind})"
        yield "Time for a query", f"{encoder.service.query_timeout_seconds * 1000:,.0f} ms"
    yield "Dimensions", f"{encoder.dim:,}"
    yield "Longest input", f"{encoder.max_tokens:,} tokens"
    batching = encoder.batching
    yield "Embeds at once", f"{wording.counted(batching.calls, 'call')} of {wording.counted(batching.texts, 'text')}"


def _manifest_facts(manifest: ModelManifest) -> Iterator[Fact]:
    yield "Precision", manifest.quantisation
    yield "Licence", manifest.licence


def reranker_card(reranker: Reranker | None, *, candidates: int) -> ModelCard:
    """Return what the reranker is; `candidates` hits of a search are given to it."""
    if reranker is None:
        return ModelCard("Reranker", "none", (("Order", "the blend's own"),))
    return ModelCard("Reranker", reranker.name, tuple(_reranker_facts(reranker, candidates)), reranker.problem)


def _reranker_facts(reranker: Reranker, candidates: int) -> Iterator[Fact]:
    yield "Score", reranker.score_type.value
    weight = reranker.blend_weight
    yield "Order", "its own is final" if weight is None else f"added to the blend with weight {weight:g}"
    yield "Reads", f"the best {wording.counted(candidates, 'hit')}"
    if isinstance(reranker, CrossEncoder):
        yield "Longest pair", f"{reranker.manifest.max_tokens:,} tokens"
        yield from _manifest_facts(reranker.manifest)


@dataclass(frozen=True, slots=True)
class ListedModel:
    """An embedding model of the table, as one chooses between them."""

    name: str
    tier: str
    state: str
    tone: str
    dimensions: int
    #: "512, 256"; empty for a model to be kept whole.
    lengths: str
    parameters: str
    mteb: str
    languages: str
    licence: str
    #: Bytes of a chunk's whole vector, and of its components' signs, which an index can be walked by.
    stored: int
    bits: int
    #: Where its authors publish it.
    repository: str


def listed_models(local: Iterable[LocalModel]) -> list[ListedModel]:
    """Return the table of embedding models, with what of it is on this machine."""
    states = {model.name: model.state for model in local}
    return [_listed(model, states.get(model.name, "")) for model in MODEL_TABLE.values()]


def _listed(model: TableModel, state: str) -> ListedModel:
    return ListedModel(
        name=model.name,
        tier=model.tier.value,
        state=state or ("can be fetched" if model.can_be_fetched else "not here"),
        tone="good" if state == "ready" else "bad" if state else "",
        dimensions=model.dim,
        lengths=", ".join(map(str, model.lengths)),
        parameters=f"{model.parameters:g} M",
        mteb="" if model.mteb is None else f"{model.mteb:.2f}",
        languages=model.languages,
        licence=model.licence,
        stored=model.bytes_stored(),
        bits=model.bytes_walked()["binary"],
        repository=model.repository,
    )


def index_row(row: EmbeddingIndex, made: Progress, *, hnsw_bytes: int, now: datetime, alive: datetime) -> IndexRow:
    """Return an index as its list shows it; a builder not heard of since `alive` is taken for lost."""
    is_building = row.status == _Status.BUILDING and bool(made.missing)
    complete = row.status == _Status.BUILDING and not made.missing
    return IndexRow(
        id=row.pk,
        model=row.model,
        source=row.source,
        dimensions=row.dim,
        mode=_MODES.get(EmbeddingIndex.Mode(row.mode), row.mode),
        scan=_SCANS[EmbeddingIndex.Scan(row.scan)].format(dim=row.scan_dim, oversample=row.oversample),
        status="complete" if complete else row.status,
        tone="good" if complete else _TONES[_Status(row.status)],
        done=made.done,
        chunks=made.chunks,
        share=round(percent(made.done, made.chunks), 1) if made.chunks else 100.0,
        pace=pace(made) if is_building else "",
        size=size(hnsw_bytes + made.done * (2 * row.dim + _ROW_BYTES)),
        since=wording.ago(row.switched_at or row.created_at, now),
        problem=row.problem,
        is_building=is_building,
        is_stopped=bool(made.missing) and (bool(row.problem) or (row.heartbeat_at or row.created_at) < alive),
    )


def pace(made: Progress) -> str:
    """Return how fast a building goes, and how long the rest takes; empty before anything is known."""
    if not made.rate or made.seconds_left is None:
        return ""
    seconds = made.seconds_left
    left = f"{seconds:.0f} s" if seconds < _MINUTE else f"{seconds / _MINUTE:.0f} min"
    return f"{made.rate:.0f} chunks/s, about {left} left"


def announcement(rows: Iterable[IndexRow]) -> str:
    """Return what a screen reader is told of a building."""
    return ". ".join(f"Index {row.id}: {row.share:.0f} percent" for row in rows if row.is_building)
