"""Embedding many chunks in batches across documents, as many calls at once as memory allows."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from corecube.errors import ConfigError
from retrieval.encoders import Encoder
from retrieval.encoders.admission import effective_calls, ingest_slot
from retrieval.encoders.protocol import PassageEncoder
from retrieval.encoders.session import side_by_side
from retrieval.engine.types import Vector
from retrieval.models import EmbeddingIndex
from retrieval.text.context_line import in_context


class Listener:
    """Follows the progress of embedding, and may end it."""

    def calling(self) -> None:
        """Allow the next call of the model, in any thread; an exception ends the work."""

    def embedded(self, share: float) -> None:
        """Get the share of the texts that have vectors, 0 to 1; called repeatedly."""


NO_LISTENER: Final = Listener()


@dataclass(frozen=True, slots=True)
class ChunkText:
    """The parts of a chunk that its vector is made from."""

    heading_path: tuple[str, ...]
    text: str
    #: Its context line; empty for none.
    context: str = ""


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The parts of a document that its chunks' vectors are made from."""

    title: str
    chunks: tuple[ChunkText, ...]

    @property
    def embedded(self) -> list[str]:
        """Each chunk as the model reads it alone."""
        return [in_context(self.title, it.heading_path, it.text, it.context) for it in self.chunks]

    @property
    def passages(self) -> list[str]:
        """Each chunk as the model reads it within its document: under its last heading."""
        return ["\n".join((*it.heading_path[-1:], it.text)) for it in self.chunks]


def embed_documents(
    documents: Sequence[DocumentText], encoder: Encoder, *, mode: str, listener: Listener = NO_LISTENER
) -> list[list[Vector]]:
    """Return the unit vector of every chunk of every document, in order.

    Raises EncoderError if the model fails, ConfigError if it cannot make vectors in this mode, and what the listener
    raises, with no further calls.
    """
    if mode == EmbeddingIndex.Mode.LATE:
        return [list(vectors) for vectors in _embed_late(documents, encoder, listener)]
    known = embed_texts([text for document in documents for text in document.embedded], encoder, listener)
    return [[known[text] for text in document.embedded] for document in documents]


def embed_texts(texts: Sequence[str], encoder: Encoder, listener: Listener = NO_LISTENER) -> dict[str, Vector]:
    """Return the unit vector of every text; a repeated text is embedded once."""
    # Longest first, so that the slowest calls start first and texts of a call have similar lengths, in characters.
    new = sorted(dict.fromkeys(texts), key=lambda text: (-len(text), text))
    batching = encoder.batching
    batches = [new[start : start + batching.texts] for start in range(0, len(new), batching.texts)]

    def embed(batch: list[str]) -> NDArray[np.float32]:
        with ingest_slot():
            listener.calling()
            return encoder.encode_documents(batch)

    with closing(side_by_side(embed, batches, threads=effective_calls(batching.calls))) as answers:
        made: dict[str, Vector] = {}
        for batch, vectors in zip(batches, answers, strict=True):
            made |= zip(batch, vectors, strict=True)
            listener.embedded(len(made) / len(new))
        return made


def _embed_late(documents: Sequence[DocumentText], encoder: Encoder, listener: Listener) -> list[NDArray[np.float32]]:
    if not isinstance(encoder, PassageEncoder):
        raise ConfigError(f"The model {encoder.name!r} is not for late chunking.")

    def read(document: DocumentText) -> NDArray[np.float32]:
        with ingest_slot():
            return encoder.encode_passages(document.title, document.passages, progress=listener.calling)

    chunks = sum(len(document.chunks) for document in documents)
    with closing(side_by_side(read, documents, threads=effective_calls(encoder.batching.calls))) as answers:
        made: list[NDArray[np.float32]] = []
        for vectors in answers:
            made.append(vectors)
            listener.embedded(sum(map(len, made)) / chunks)
        return made
