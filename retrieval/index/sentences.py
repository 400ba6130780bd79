"""The stored vectors of what can be quoted, compared with a search's question."""

from dataclasses import dataclass

from corecube.scope import AccessScope
from retrieval.encoders.compressed_vectors import products
from retrieval.encoders.protocol import Encoder
from retrieval.engine.types import Ranking, RunCosines, Vector
from retrieval.index.encodings import Encodings, compressed_vectors
from retrieval.ranking.quotes.candidates import runs


@dataclass(frozen=True, slots=True)
class SentenceVectors:
    """What ingestion stored of the sentences by one embedding model."""

    model: Encoder

    def cosines(self, hits: Ranking, question: Vector, *, scope: AccessScope, timeout_seconds: float) -> RunCosines:
        """Return about the cosine of a question's unit vector with each run of the hits' texts that can be quoted.

        Hits out of scope, and those whose vectors are not stored yet, are absent. Raises SearchTimeoutError.
        """
        stored = compressed_vectors(
            Encodings.SENTENCES,
            hits,
            model_key=Encodings.SENTENCES.key(self.model),
            dim=len(question),
            scope=scope,
            timeout_seconds=timeout_seconds,
        )
        quotable = {hit.chunk_id: runs(hit.chunk.text) for hit in hits if hit.chunk_id in stored}
        return {
            chunk_id: dict(zip(found, products(question, stored[chunk_id]).tolist(), strict=True))
            for chunk_id, found in quotable.items()
            # Another version of CoreCube may have split the text in another way.
            if len(found) == len(stored[chunk_id].bits)
        }
