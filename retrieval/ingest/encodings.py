"""Encoding a connection's chunks: with the configured optional models by syncs, their sentences by idle workers.

Encodings depend only on title, headings and text, not on enrichment, so they stay valid until the chunk changes.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Final, cast

from corecube.models import Connection
from retrieval.encoders import Encoder
from retrieval.encoders.admission import ingest_slot
from retrieval.encoders.compressed_vectors import CompressedVectors
from retrieval.encoders.embedders import key_of, sparse_encoder, token_encoder
from retrieval.encoders.late_interaction import LateEncoder
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.encoders.sparse_encoder import SparseEncoder, SparseVector
from retrieval.errors import EncoderError
from retrieval.index import active, encodings
from retrieval.index.reading import advisory_lock
from retrieval.ranking.quotes.candidates import embedded_texts
from retrieval.text.document import in_context

logger = logging.getLogger(__name__)

#: Chunks that are encoded and stored together; before compression the token vectors of a chunk take about 500 kB.
_BATCH_CHUNKS: Final = 64
_IDLE_CHUNKS: Final = 16  #: Chunks whose sentences an idle worker encodes before it looks for other work; 2 s.
_LOCK_CLASS: Final = 7_304  #: First key of the advisory lock that keeps two processes from encoding the same.

Progress = Callable[[int], None]
Model = SparseEncoder | LateEncoder | Encoder


def fill_encodings(connection_id: int, progress: Progress = lambda _: None) -> dict[str, int]:
    """Encode the chunks of a connection that lack an encoding, and return how many, by kind.

    Encodings by models that are no longer configured are deleted.
    `progress` gets the chunks of each batch. Raises EncoderError.
    """
    made = _fill_optional(connection_id, progress)
    if sentences := local_encoder():
        made["sentences"] = _fill(encodings.Encodings.SENTENCES, sentences, connection_id, progress)
    return made


def _fill_optional(connection_id: int, progress: Progress) -> dict[str, int]:
    made: dict[str, int] = {}
    if sparse := sparse_encoder():
        encodings.require_sparse_index(model_key=key_of(sparse), dim=sparse.dim)
        made["sparse"] = _fill(encodings.Encodings.SPARSE, sparse, connection_id, progress)
    if tokens := token_encoder():
        made["tokens"] = _fill(encodings.Encodings.TOKENS, tokens, connection_id, progress)
    return made


def fill_optional_or_log(connection_id: int, progress: Callable[[], None]) -> None:
    """Encode the missing chunks with the optional models; a failing one is logged, and the next sync tries again.

    Searches work without these encodings. `progress` is called after each batch; an exception ends the work.
    """
    try:
        _fill_optional(connection_id, lambda _: progress())
    except EncoderError as error:
        logger.warning("ingest.encodings_skipped connection=%d code=%s", connection_id, error.code)


def fill_all_or_log() -> None:
    """Encode the missing chunks of all connections with the optional models, unless another process does it."""
    with advisory_lock(_LOCK_CLASS, 0) as is_ours:
        for connection_id in Connection.objects.order_by("pk").values_list("pk", flat=True) if is_ours else ():
            fill_optional_or_log(connection_id, lambda: None)


def encode_next() -> bool:
    """Encode the sentences of the next chunks that lack them, and return whether there were any.

    Also false where another process does it, and where the model fails, which is logged.
    """
    kind, model = encodings.Encodings.SENTENCES, local_encoder()
    if model is None:
        return False
    with advisory_lock(_LOCK_CLASS, 1) as is_ours:
        for connection_id in Connection.objects.order_by("pk").values_list("pk", flat=True) if is_ours else ():
            encodings.drop_encodings(kind, connection_id, but=kind.key(model))
            try:
                if any(_filled(kind, model, connection_id, at_once=_IDLE_CHUNKS)):
                    return True
            except EncoderError as error:
                logger.warning("ingest.encodings_skipped connection=%d code=%s", connection_id, error.code)
    return False


def local_encoder() -> Encoder | None:
    """Return the model of the searched index, which encodes sentences; None where it is a remote service."""
    encoder = active.encoder()
    return None if isinstance(encoder, RemoteEncoder) else encoder


def _fill(kind: encodings.Encodings, model: Model, connection_id: int, progress: Progress) -> int:
    stored = 0
    encodings.drop_encodings(kind, connection_id, but=kind.key(model))
    for chunks in _filled(kind, model, connection_id, at_once=_BATCH_CHUNKS):
        stored += chunks
        progress(chunks)
    return stored


def _filled(kind: encodings.Encodings, model: Model, connection_id: int, *, at_once: int) -> Iterator[int]:
    """Encode the missing chunks batch by batch, and yield how many of each were stored."""
    key = kind.key(model)
    for chunks in encodings.unencoded(kind, connection_id=connection_id, model_key=key, at_once=at_once):
        yield encodings.store_encodings(kind, chunks, _encoded(kind, model, chunks), model_key=key)


def _encoded(
    kind: encodings.Encodings, model: Model, chunks: Sequence[encodings.Unencoded]
) -> Sequence[SparseVector | CompressedVectors]:
    if kind is encodings.Encodings.SENTENCES:
        return _sentences(cast("Encoder", model), chunks)
    texts = [in_context(it.title, it.heading_path, it.text) for it in chunks]
    with ingest_slot():
        if isinstance(model, SparseEncoder):
            return model.encode_documents(texts)
        return [CompressedVectors.of_tokens(vectors) for vectors in cast("LateEncoder", model).document_vectors(texts)]


def _sentences(encoder: Encoder, chunks: Sequence[encodings.Unencoded]) -> list[CompressedVectors]:
    texts = [embedded_texts(it.title, it.heading_path, it.text) for it in chunks]
    with ingest_slot():
        vectors = encoder.encode_documents(list(chain.from_iterable(texts)))
    ends = accumulate(map(len, texts))
    return [CompressedVectors.of(vectors[end - len(own) : end]) for own, end in zip(texts, ends, strict=True)]
