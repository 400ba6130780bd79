"""What stages need beside the state: models, the searched index, threads. Made once per process, handed in."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from retrieval.encoders import Encoder
from retrieval.encoders.reranker import Reranker
from retrieval.index.store import VectorIndex


@dataclass(frozen=True, slots=True)
class Resources:
    """The process's shared tools."""

    encoder: Encoder
    index: VectorIndex
    #: PostgreSQL text search configuration of documents and queries.
    text_search_config: str
    #: Runs legs side by side, each with a database connection of its own.
    executor: Executor
    #: None where none is configured.
    reranker: Reranker | None = None

    @property
    def count_tokens(self) -> Callable[[str], int]:
        """Tokens of one text by the embedding model's tokenizer."""
        return lambda text: self.encoder.count_tokens([text])[0]
