"""What stages need beside the state: models, the searched index, threads. Made once per process, handed in."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from retrieval.encoders import Encoder
from retrieval.encoders.cosine_scale import AS_IT_IS, CosineScale
from retrieval.encoders.kept_vectors import KeptVectors, SentenceEncoder
from retrieval.encoders.model_calls import ModelCalls
from retrieval.encoders.query_cache import QueryCache
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.encoders.reranker import Reranker
from retrieval.encoders.sparse_encoder import SparseModel
from retrieval.encoders.timed_reranker import TimedReranker, timed
from retrieval.encoders.timed_sentences import TimedSentences
from retrieval.engine.admission import Admission
from retrieval.engine.state import SearchState
from retrieval.engine.token_counter import CountTokens, TokenCounter
from retrieval.index.bm25.reader import Reader as Bm25Reader
from retrieval.index.recovery import AskedIndex
from retrieval.index.store import VectorIndex
from retrieval.ranking.answerability.model import AnswerabilityModel

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class Resources:
    """The process's shared tools."""

    encoder: Encoder
    index: VectorIndex
    #: PostgreSQL text search configuration of connections that name no language.
    text_search_config: str
    #: Runs legs side by side, each with a database connection of its own.
    executor: Executor
    #: Asks cross-encoders; never in the caller's thread while others may be had.
    rerank_executor: Executor
    #: Lets queries begin, or turns them away; shared by all searches of the process.
    admission: Admission = field(default_factory=Admission)
    #: None where none is configured.
    reranker: Reranker | None = None
    #: Gives what counts the tokens of the language model that would answer this search's principal from these
    #: connections; None where its tokenizer is not here, or nobody is searched for.
    answerer_counter: Callable[[frozenset[int]], TokenCounter | None] = lambda _: None
    #: The BM25 index; None where this machine keeps none.
    bm25: Bm25Reader | None = None
    #: The model of the sparse leg; None where none is chosen.
    sparse: SparseModel | None = None
    #: Vectors of queries asked before; None where none are kept.
    query_cache: QueryCache | None = None
    #: Vectors of sentences of passages; None where none are kept.
    kept_sentences: KeptVectors | None = None
    #: Answerability models that were fitted on this installation's own questions, by preset.
    calibrations: Mapping[str, AnswerabilityModel] = field(default_factory=dict)
    #: Gives the embedding indexes beside the searched one, with the query's vector by the model of each.
    other_indexes: Callable[[SearchState], Iterable[AskedIndex]] = lambda _: ()
    #: Gives what the encoder's cosines mean, as far as that is known within so many seconds; a service that was not
    #: asked ahead is not asked now.
    scale: Callable[[float], CosineScale] = lambda _: AS_IT_IS
    #: How long a search may wait for that.
    scale_seconds: float = 2.0
    #: Makes the calls of models, which end in time; shared by all searches of the process.
    calls: ModelCalls = field(default_factory=ModelCalls)
    #: What only one preset's stages need, by the type that they ask for it by.
    parts: Mapping[type, Any] = field(default_factory=dict)

    def part(self, kind: type[_Part]) -> _Part | None:
        """Return what one preset's stages need of this kind; None where the installation has none."""
        return self.parts.get(kind)

    def with_part(self, kind: type[_Part], part: _Part) -> "Resources":
        """Return the same with this part of a kind."""
        return replace(self, parts={**self.parts, kind: part})

    @property
    def sentence_encoder(self) -> SentenceEncoder | None:
        """What embeds the sentences of passages within a search; None where that would ask a service each time."""
        return None if isinstance(self.encoder, RemoteEncoder) else SentenceEncoder(self.encoder, self.kept_sentences)

    @property
    def answer_sentences(self) -> SentenceEncoder | None:
        """The same for answers, which have no deadline: each call ends in time."""
        inner = self.sentence_encoder
        return inner and TimedSentences(inner.encoder, inner.kept, self.calls)

    @property
    def timed_reranker(self) -> TimedReranker | None:
        """The reranker, each call of which ends in time."""
        return None if self.reranker is None else timed(self.reranker, self.calls)

    @property
    def local_encoder(self) -> Encoder | None:
        """The model where it runs in this process; None where embedding would ask a service."""
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
        """What counts a context by the same tokenizer, where that of who would answer is not to be had."""
        return TokenCounter(self.encoder.name, self.count_each)
