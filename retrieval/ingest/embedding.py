"""Making the vectors of many chunks: batches across documents, as many at once as memory allows."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corecube.errors import ConfigError
from retrieval.context_line import in_context
from retrieval.encoders import Encoder
from retrieval.encoders.admission import effective_calls, ingest_slot
from retrieval.encoders.protocol import PassageEncoder
from retrieval.encoders.session import side_by_side
from retrieval.models import EmbeddingIndex
from retrieval.types import Vector

#: Called from any thread before the next piece of work; what it raises ends the work.
Progress = Callable[[], None]


def nothing() -> None:
    """Let the work go on."""


@dataclass(frozen=True, slots=True)
class ChunkText:
    """What of a chunk goes into its vector."""

    heading_path: tuple[str, ...]
    text: str
    #: What was written of its place in the document; empty for nothing.
    context: str = ""


@dataclass(frozen=True, slots=True)
class DocumentText:
    """What of a document goes into its chunks' vectors."""

    title: str
    chunks: tuple[ChunkText, ...]

    @property
    def embedded(self) -> list[str]:
        """Each chunk as the model reads it by itself."""
        return [in_context(self.title, it.heading_path, it.text, it.context) for it in self.chunks]

    @property
    def passages(self) -> list[str]:
        """Each chunk as the model reads it among its neighbours: under its last heading."""
        return ["\n".join((*it.heading_path[-1:], it.text)) for it in self.chunks]


def embed_documents(
    documents: Sequence[DocumentText], encoder: Encoder, *, mode: str, progress: Progress = nothing
) -> list[list[Vector]]:
    """Return the unit vector of every chunk of every document, in order.

    Raises EncoderError if the model fails, ConfigError if it cannot make vectors in this mode, and what `progress`
    raises, with nothing more begun.
    """
    if mode == EmbeddingIndex.Mode.LATE:
        return [list(vectors) for vectors in _read_whole(documents, encoder, progress)]
    known = embed_texts([text for document in documents for text in document.embedded], encoder, progress=progress)
    return [[known[text] for text in document.embedded] for document in documents]


def embed_texts(texts: Sequence[str], encoder: Encoder, *, progress: Progress = nothing) -> dict[str, Vector]:
    """Return the unit vector of every text; one that stands there twice is embedded once.

    `progress` is called before each call of the encoder; when it raises, no further call is made.
    """
    # Longest first, so that what takes longest starts first and texts that share a call are alike. Characters will do.
    new = sorted(dict.fromkeys(texts), key=lambda text: (-len(text), text))
    batching = encoder.batching
    batches = [new[start : start + batching.texts] for start in range(0, len(new), batching.texts)]

    def embed(batch: list[str]) -> NDArray[np.float32]:
        with ingest_slot():
            progress()
            return encoder.encode_documents(batch)

    with closing(side_by_side(embed, batches, threads=effective_calls(batching.calls))) as answers:
        return {
            text: vector
            for batch, vectors in zip(batches, answers, strict=True)
            for text, vector in zip(batch, vectors, strict=True)
        }


def _read_whole(documents: Sequence[DocumentText], encoder: Encoder, progress: Progress) -> list[NDArray[np.float32]]:
    if not isinstance(encoder, PassageEncoder):
        raise ConfigError(f"The model {encoder.name!r} is not for late chunking.")

    def read(document: DocumentText) -> NDArray[np.float32]:
        with ingest_slot():
            return encoder.encode_passages(document.title, document.passages, progress=progress)

    with closing(side_by_side(read, documents, threads=effective_calls(encoder.batching.calls))) as answers:
        return list(answers)
