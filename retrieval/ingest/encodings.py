"""Encoding what a connection has with the optional models that the settings name: at the end of syncs, and by command.

What is made depends on title, headings and text alone, not on what a language model wrote of a chunk: so it stays as it
is until the chunk changes.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final

from retrieval.encoders.admission import ingest_slot
from retrieval.encoders.encodings import key_of, sparse_encoder, token_encoder
from retrieval.encoders.late_encoder import LateEncoder
from retrieval.encoders.sparse import SparseVector
from retrieval.encoders.sparse_encoder import SparseEncoder
from retrieval.encoders.token_vectors import TokenVectors
from retrieval.errors import EncoderError
from retrieval.index.encodings import (
    Encodings,
    Unencoded,
    create_sparse_index,
    drop_other_encodings,
    drop_other_sparse_indexes,
    store_encodings,
    unencoded,
)
from retrieval.text.context_line import in_context

logger = logging.getLogger(__name__)

#: Chunks that are encoded and stored together; a token's vector has a byte a component, a chunk some 60 kB of them.
_AT_ONCE: Final = 64

Progress = Callable[[int], None]


def fill_encodings(connection_id: int, progress: Progress = lambda _: None) -> dict[str, int]:
    """Encode the chunks of a connection that lack what a configured model makes, and return how many, by kind.

    What a model made that was chosen before goes, as no search reads it.
    `progress` gets the chunks of each batch. Raises EncoderError.
    """
    made: dict[str, int] = {}
    if sparse := sparse_encoder():
        create_sparse_index(model_key=key_of(sparse), dim=sparse.dim)
        drop_other_sparse_indexes(model_key=key_of(sparse))
        made["sparse"] = _fill(Encodings.SPARSE, sparse, connection_id, progress)
    if tokens := token_encoder():
        made["tokens"] = _fill(Encodings.TOKENS, tokens, connection_id, progress)
    return made


def fill_encodings_or_say(connection_id: int, progress: Callable[[], None]) -> None:
    """Encode what lacks; a model that fails is logged, and the next sync tries again: searches go on without it.

    `progress` is called after each batch; what it raises ends the work.
    """
    try:
        fill_encodings(connection_id, lambda _: progress())
    except EncoderError as error:
        logger.warning("ingest.encodings_left_out connection=%d code=%s", connection_id, error.code)


def _fill(kind: Encodings, model: SparseEncoder | LateEncoder, connection_id: int, progress: Progress) -> int:
    key, stored = key_of(model), 0
    drop_other_encodings(kind, connection_id, model_key=key)
    for chunks in unencoded(kind, connection_id=connection_id, model_key=key, at_once=_AT_ONCE):
        stored += store_encodings(kind, chunks, _encoded(model, chunks), model_key=key)
        progress(len(chunks))
    return stored


def _encoded(model: SparseEncoder | LateEncoder, chunks: Sequence[Unencoded]) -> Sequence[SparseVector | TokenVectors]:
    texts = [in_context(it.title, it.heading_path, it.text) for it in chunks]
    with ingest_slot():
        if isinstance(model, SparseEncoder):
            return model.encode_documents(texts)
        return [TokenVectors.of(vectors) for vectors in model.document_vectors(texts)]
