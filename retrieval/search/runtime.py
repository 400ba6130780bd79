"""The process's resources, loaded on first use: the model, the active index, the leg threads."""

import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from socket import gethostname
from threading import Semaphore, Thread
from typing import Final, ParamSpec, TypeVar

from django.conf import settings

from corecube.database import connections_in_use, max_connections, release_connection
from corecube.process import cores
from corecube.shared_state.store import shared
from retrieval.encoders import Encoder
from retrieval.encoders.admission import INGEST_SLOTS
from retrieval.encoders.cosine_scale import UNSCALED, CosineScale, CosineScales
from retrieval.encoders.embedders import key_of, sparse_encoder
from retrieval.encoders.model_calls import ModelCalls, model_key
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.encoders.reranker import Reranker
from retrieval.encoders.sparse_encoder import SparseModel
from retrieval.encoders.vector_cache import QueryCache, VectorCache
from retrieval.engine.admission import Admission, ProcessHooks
from retrieval.engine.admission_ladder import PoolConfig
from retrieval.engine.slots import SharedSlots
from retrieval.errors import EncoderError, RerankError
from retrieval.index import active
from retrieval.index.bm25.reader import Reader
from retrieval.index.embedding_index import same_model
from retrieval.index.folder import Folder
from retrieval.index.reranking import configured_reranker
from retrieval.index.store import VectorIndex
from retrieval.index.vectors.reader import Reader as VectorReader
from retrieval.models import EmbeddingIndex
from retrieval.presets.consolidated.evidence.rerank_guard import RerankGuards
from retrieval.presets.consolidated.evidence.scoring import MAX_AT_ONCE
from retrieval.presets.consolidated.evidence.store_guard import StoreGuard
from retrieval.presets.consolidated.recovery_tiers import OtherIndexes
from retrieval.presets.helix.route_examples import Routers, added_examples
from retrieval.presets.helix.router.routes import RouterSource
from retrieval.search.calibrations import active_models
from retrieval.stages.prefetch import settle
from retrieval.stages.resources import Resources

_routers: Final = Routers()
rerank_guards: Final = RerankGuards()  #: What this process knows of rerankers that failed or were slow.
store_guard: Final = StoreGuard()  #: What this process knows of searches that the store failed.
cosine_scales: Final = CosineScales()  #: What the cosines of this process's models mean.
#: How long a thread computes while others wait for their turn. A leg whose rows have come would wait Python's own 5 ms.
_TURN_SECONDS: Final = 0.0005
_MIN_TURNS: Final = 4  #: Searches that compute at once, of those that hold a slot.
_TURNS_PER_CORE: Final = 2
_VECTOR_SECONDS: Final = 86_400.0  #: For which the vector of a query is cached.

_P = ParamSpec("_P")
_T = TypeVar("_T")


class InlineExecutor(Executor):
    """Runs each call at once, in the caller's thread."""

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Return a future that is done already."""
        future: Future[_T] = Future()
        settle(future, partial(fn, *args, **kwargs))
        return future


class OwnThreads(Executor):
    """Runs each call in a new thread, which delays neither its caller nor the end of the process."""

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Begin the call and return what it will give."""
        future: Future[_T] = Future()
        Thread(target=settle, args=(future, partial(fn, *args, **kwargs)), name="own", daemon=True).start()
        return future


class DatabaseThreads(ThreadPoolExecutor):
    """Threads that give their database connection back to the pool after each call.

    A call never waits for a thread: while all are busy it runs in the caller's. Otherwise requests would hold
    one connection each and wait for another, until the pool is empty and all of them fail.
    """

    def __init__(self, threads: int, *, thread_name_prefix: str) -> None:
        super().__init__(threads, thread_name_prefix=thread_name_prefix)
        self._idle = Semaphore(threads)
        self._inline = InlineExecutor()

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Run the call in an idle thread; where there is none, as `without_thread` does."""
        if not self._idle.acquire(blocking=False):
            return self.without_thread(fn, *args, **kwargs)

        def call() -> _T:
            try:
                return fn(*args, **kwargs)
            finally:
                release_connection()
                self._idle.release()

        return super().submit(copy_context().run, call)

    def without_thread(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Run the call at once in the caller's thread."""
        return self._inline.submit(fn, *args, **kwargs)


class RerankThreads(DatabaseThreads):
    """Threads that ask cross-encoders, and refuse a call while all are busy.

    There are enough for every search of the process, so all are busy only where calls have outlived their searches: a
    cross-encoder that keeps no time limit would keep the caller's thread too.
    """

    def without_thread(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Return a future that raises RerankError; it is no timeout of this call, so a breaker counts it."""
        del fn, args, kwargs
        future: Future[_T] = Future()
        future.set_exception(RerankError("Earlier reranker calls are still running on all threads."))
        return future


@cache
def _leg_executor(threads: int) -> Executor:
    if not threads:
        return InlineExecutor()
    sys.setswitchinterval(_TURN_SECONDS)
    return DatabaseThreads(threads, thread_name_prefix="leg")


@cache
def _rerank_executor(*, is_beside: bool) -> Executor:
    return RerankThreads(MAX_AT_ONCE * _turns(), thread_name_prefix="rerank") if is_beside else InlineExecutor()


def model_calls() -> ModelCalls:
    """Return what calls this process's models, so that no search waits for one that does not come back."""
    return _model_calls(is_beside=settings.CORECUBE_LEG_THREADS > 0)


@cache
def _model_calls(*, is_beside: bool) -> ModelCalls:
    return ModelCalls(release=release_connection if is_beside else None)


def _turns() -> int:
    return max(_MIN_TURNS, _TURNS_PER_CORE * cores())


@cache
def _bm25_reader(folder: Path) -> Reader:
    return Reader(Folder(folder))


def bm25_reader() -> Reader | None:
    """Return what reads this machine's BM25 index; None where it is to keep none."""
    return _bm25_reader(settings.CORECUBE_BM25_DIR) if settings.CORECUBE_BM25 else None


@cache
def _vector_reader(folder: Path) -> VectorReader:
    return VectorReader(Folder(folder))


def vector_reader() -> VectorReader | None:
    """Return what reads this machine's vector files; None where it is to keep none."""
    return _vector_reader(settings.CORECUBE_VECTORS_DIR) if settings.CORECUBE_VECTORS else None


def admission() -> Admission:
    """Return what lets queries begin, or turns them away; one for the whole process. Raises ConfigError."""
    return _admission(settings.CORECUBE_POOL_CONNECTIONS, settings.CORECUBE_RETRIEVAL_SLOTS)


@cache
def _admission(connections: int, slots: int) -> Admission:
    sizes = PoolConfig(connections=connections, retrieval_slots=slots, ingest_slots=INGEST_SLOTS)
    world = ProcessHooks(active=connections_in_use, fitting=max_connections, release_connection=release_connection)
    store = shared()
    machine_turns = SharedSlots(_turns(), store, f"turns {gethostname()}") if store else None
    return Admission(sizes, turns=_turns(), machine_turns=machine_turns, world=world)


@cache
def _query_cache(entries: int) -> QueryCache | None:
    return QueryCache(VectorCache(entries, _VECTOR_SECONDS, "query_vectors")) if entries else None


@cache
def _sentence_cache(entries: int) -> VectorCache | None:
    return VectorCache(entries) if entries else None


def sparse_model() -> SparseModel | None:
    """Return the model of the sparse leg, None where none is chosen; one that cannot be had says so itself."""
    try:
        found = sparse_encoder()
    except EncoderError as error:
        return SparseModel(None, problem=str(error))
    return None if found is None else SparseModel(found, key_of(found))


def reranker() -> Reranker | None:
    """Return the installation's reranker, None where none is configured; one that cannot be had says so itself."""
    return configured_reranker(active.encoder)


def open_router() -> bool:
    """Train the routes' router in the caller's thread and return whether it is there; a service is not called.

    It is not there where another thread is training it. Raises as `encoder` does.
    """
    model = active.encoder()
    is_local = not isinstance(model, RemoteEncoder)
    return is_local and _routers.get(model, added_examples(), InlineExecutor()) is not None


def scale_of(model: Encoder, seconds: float) -> CosineScale:
    """Return what a model's cosines mean, as they are where that is not known; a service is called beside the search.

    Another model is measured the first time, and waited for no longer than so many seconds.
    """
    if isinstance(model, RemoteEncoder):
        if settings.CORECUBE_WARM_UP:
            cosine_scales.measure_in_background(model)
        return cosine_scales.known(model)
    if (known := cosine_scales.known(model)).is_measured:
        return known
    try:
        return model_calls().within(seconds, partial(cosine_scales.measured, model), model=model_key(model))
    except EncoderError:
        return UNSCALED


def resources(model: Encoder | None = None) -> Resources:
    """Return what the presets' stages need; `model` takes the place of the installation's encoder.

    A search that is to be measured passes its model: then no vector is cached from an earlier query.
    """
    if model:
        return _resources(model, active.active_index(model))
    model, index = active.index_and_model()
    return replace(
        _resources(model, index),
        query_cache=_query_cache(settings.CORECUBE_QUERY_CACHE),
        sentence_cache=_sentence_cache(settings.CORECUBE_SENTENCE_CACHE),
    )


def resources_of(row: EmbeddingIndex) -> Resources:
    """Return what the presets' stages need to search an index that need not be active, without caches of vectors."""
    model = active.encoder_of(row)
    return _resources(model, same_model(row, model))


def _resources(model: Encoder, index: VectorIndex) -> Resources:
    router = _routers.router_of(model, OwnThreads() if settings.CORECUBE_LEG_THREADS else InlineExecutor())
    return Resources(
        encoder=model,
        index=index,
        text_search_config=settings.CORECUBE_TEXT_SEARCH_CONFIG,
        executor=_leg_executor(settings.CORECUBE_LEG_THREADS),
        rerank_executor=_rerank_executor(is_beside=settings.CORECUBE_LEG_THREADS > 0),
        admission=admission(),
        reranker=reranker(),
        bm25=bm25_reader(),
        vectors=vector_reader(),
        sparse=sparse_model(),
        calibrations=active_models(model),
        other_indexes=OtherIndexes(index, cosine_scales, model_calls()),
        scale=partial(scale_of, model),
        calls=model_calls(),
        parts={RerankGuards: rerank_guards, StoreGuard: store_guard, RouterSource: RouterSource(router)},
    )
