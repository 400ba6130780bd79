"""What stages need besides the state: models, the searched index, threads. Created once per process."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from retrieval.encoders import Encoder
from retrieval.encoders.cosine_scale import UNSCALED, CosineScale
from retrieval.encoders.model_calls import ModelCalls, TimedReranker, timed
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.encoders.reranker import Reranker
from retrieval.encoders.sparse_encoder import SparseModel
from retrieval.encoders.vector_cache import QueryCache, SentenceEncoder, VectorCache
from retrieval.engine.admission import Admission
from retrieval.engine.state import SearchState
from retrieval.engine.types import CountTokens, TokenCounter
from retrieval.index.bm25.reader import Reader as Bm25Reader
from retrieval.index.recovery import QueriedIndex
from retrieval.index.sentences import SentenceVectors
from retrieval.index.store import VectorIndex
from retrieval.index.vectors.reader import Reader as VectorReader
from retrieval.ranking.answerability.model import AnswerabilityModel

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class Resources:
    """The process's shared tools."""

    encoder: Encoder
    index: VectorIndex
    text_search_config: str  #: PostgreSQL text search configuration of connections that name no language.
    executor: Executor  #: Runs legs in parallel, each with its own database connection.
    rerank_executor: Executor
    #: Admits or refuses queries; shared by all searches of the process.
    admission: Admission = field(default_factory=Admission)
    reranker: Reranker | None = None
    #: Returns the token counter of the language model that would answer this search's principal from these
    #: connections; None without a local tokenizer or a principal.
    answerer_counter: Callable[[frozenset[int]], TokenCounter | None] = lambda _: None
    bm25: Bm25Reader | None = None
    vectors: VectorReader | None = None
    sparse: SparseModel | None = None
    query_cache: QueryCache | None = None
    sentence_cache: VectorCache | None = None
    #: Answerability models fitted on this installation's questions, by preset.
    calibrations: Mapping[str, AnswerabilityModel] = field(default_factory=dict)
    #: Yields the other embedding indexes, each with the query's vector by its model.
    other_indexes: Callable[[SearchState], Iterable[QueriedIndex]] = lambda _: ()
    #: Returns the scale of the encoder's cosines if it is known within this many seconds; a remote service is only
    #: measured ahead of the search.
    scale: Callable[[float], CosineScale] = lambda _: UNSCALED
    scale_seconds: float = 2.0  #: How long a search may wait for the scale.
    calls: ModelCalls = field(default_factory=ModelCalls)
    parts: Mapping[type, Any] = field(default_factory=dict)  #: What the stages of a single preset need, by type.

    def part(self, kind: type[_Part]) -> _Part | None:
        """Return the part of this type; None where the installation has none."""
        return self.parts.get(kind)

    def with_part(self, kind: type[_Part], part: _Part) -> "Resources":
        """Return the resources with this part."""
        return replace(self, parts={**self.parts, kind: part})

    @property
    def sentence_vectors(self) -> SentenceVectors | None:
        """What ingestion stored of sentences; None where the model is a remote service."""
        model = self.local_encoder
        return None if model is None else SentenceVectors(model)

    @property
    def sentence_encoder(self) -> SentenceEncoder | None:
        """Compares sentences of language models' answers with passages; None where the model is a remote service."""
        model = self.local_encoder
        return None if model is None else SentenceEncoder(model, self.sentence_cache, self.calls)

    @property
    def timed_reranker(self) -> TimedReranker | None:
        """The reranker, with a timeout on each call."""
        return None if self.reranker is None else timed(self.reranker, self.calls)

    @property
    def local_encoder(self) -> Encoder | None:
        """The embedding model if it runs in this process; None where it is a remote service."""
        return None if isinstance(self.encoder, RemoteEncoder) else self.encoder

    @property
    def count_tokens(self) -> Callable[[str], int]:
        """Tokens of one text by the embedding model's tokenizer, which is always local."""
        counts = self.count_each
        return lambda text: counts([text])[0]

    @property
    def count_each(self) -> CountTokens:
        """Tokens of each of several texts, by the same tokenizer."""
        model = self.encoder
        return model.tokenizer.count if isinstance(model, RemoteEncoder) else model.count_tokens

    @property
    def own_counter(self) -> TokenCounter:
        """Counts a context with the embedding model's tokenizer, where the answering model's is unavailable."""
        return TokenCounter(self.encoder.name, self.count_each)
