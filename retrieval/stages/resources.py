"""What stages need beside the state: models, the searched index, threads. Made once per process, handed in."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field

from retrieval.encoders import Encoder
from retrieval.encoders.cosine_scale import AS_IT_IS, CosineScale
from retrieval.encoders.kept_vectors import KeptVectors, SentenceEncoder
from retrieval.encoders.model_calls import ModelCalls
from retrieval.encoders.query_cache import QueryCache
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.encoders.reranker import Reranker
from retrieval.encoders.timed_reranker import TimedReranker, timed
from retrieval.encoders.timed_sentences import TimedSentences
from retrieval.engine.admission import Admission
from retrieval.engine.state import SearchState
from retrieval.engine.token_counter import CountTokens, TokenCounter
from retrieval.index.bm25.reader import Reader as Bm25Reader
from retrieval.index.store import VectorIndex
from retrieval.presets.consolidated.evidence.rerank_guard import RerankGuards
from retrieval.presets.consolidated.stages.recovery_tiers import AskedIndex
from retrieval.presets.contextpack.judge import RelevanceJudge
from retrieval.presets.helix.router.routes import Router
from retrieval.presets.helix.stages.sparse import SparseModel
from retrieval.ranking.answerability.model import AnswerabilityModel


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
    #: What is known of rerankers that failed or were slow; shared by all searches of the process.
    guards: RerankGuards = field(default_factory=RerankGuards)
    #: Asks the language models that may judge for this search's principal; None where nobody is searched for.
    judge: RelevanceJudge | None = None
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
    #: Gives the routes of questions, trained for the encoder; None while they are being trained.
    router: Callable[[], Router | None] = lambda: None
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

    @property
    def local_router(self) -> Callable[[], Router | None]:
        """Gives the routes where the model runs in this process; else None, always."""
        return _no_router if self.local_encoder is None else self.router


def _no_router() -> Router | None:
    return None
