"""Passes over a connection's chunks: what they would cost, and running one."""

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, TypeVar

from django.conf import settings

from corecube.errors import ConfigError, CoreCubeError
from corecube.models import Connection
from retrieval import runtime
from retrieval.context_line import in_context
from retrieval.errors import EncoderError, EnrichError
from retrieval.index.embedding_index import kept_indexes
from retrieval.index.enrichment import EnrichedChunk, store_enrichment
from retrieval.index.writer import fold_term_counts
from retrieval.ingest.embedding import embed_texts
from retrieval.ingest.enrich.chat import ChatModel, configured_service
from retrieval.ingest.enrich.cost import Estimate, Prices, estimate
from retrieval.ingest.enrich.pending import Wanted, drawn, waiting
from retrieval.ingest.enrich.prompts import context_in, questions_in
from retrieval.models import Chunk, EmbeddingIndex
from retrieval.types import Vector

logger = logging.getLogger(__name__)

#: Chunks whose new vectors are made and stored together.
_BATCH_CHUNKS: Final = 32
#: Failures in a row after which the model is left alone until the next pass.
_MOST_FAILURES: Final = 10

Progress = Callable[[int, int], None]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What a pass did."""

    enriched: int = 0
    #: Chunks that stay as they are.
    failed: int = 0
    #: Why the last of them failed.
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Answered:
    """A chunk with what was written for it, or why nothing was."""

    wanted: Wanted
    context_line: str
    questions: tuple[str, ...]
    message: str = ""


def estimate_pass(connection: Connection, *, most: int | None = None) -> Estimate:
    """Return what the next pass over a connection would cost; nothing is sent."""
    found = drawn(connection, most=_most(most), seed=uuid.uuid4().hex)
    encoder = runtime.encoder()
    tokens = [
        sum(len(encoder.token_spans(message["content"])) for message in request)
        for wanted in found
        for request in wanted.requests
    ]
    prices = Prices(sent=settings.CORECUBE_ENRICH_PRICE_SENT, answered=settings.CORECUBE_ENRICH_PRICE_ANSWERED)
    return estimate(tokens, waiting=waiting(connection).count(), chunks=len(found), prices=prices)


def enrich_after_sync(connection: Connection) -> Pass:
    """Run a pass where the connection asks for one and a model is configured; log a failure and go on."""
    try:
        if not connection.enrichment or configured_service() is None:
            return Pass()
        return enrich(connection)
    except CoreCubeError as error:
        logger.warning("enrich.failed connection=%s code=%s", connection.slug, error.code)
        return Pass(message=str(error))


def enrich(connection: Connection, *, most: int | None = None, progress: Progress = lambda _done, _of: None) -> Pass:
    """Ask the language model for what at most `most` chunks lack (by default the configured ceiling), and store it.

    A chunk that it fails for stays as it is and can be drawn again. `progress` gets the chunks done and all of them.
    Raises ConfigError when no model is configured or the connection asks for nothing.
    """
    service = configured_service()
    if service is None:
        raise ConfigError("No language model is configured: set CORECUBE_ENRICH_URL and CORECUBE_ENRICH_MODEL.")
    if not connection.enrichment:
        raise ConfigError("The connection asks for no enrichment.")
    found = drawn(connection, most=_most(most), seed=uuid.uuid4().hex)
    result = Pass()
    model = ChatModel(service)
    try:
        for answered in _batches(_answers(model, found)):
            result = _with(result, answered, _store(connection, [it for it in answered if not it.message]))
            progress(result.enriched + result.failed, len(found))
    finally:
        model.close()
    if result.enriched:
        fold_term_counts(connection.pk)
    logger.info("enrich.done connection=%s chunks=%d failed=%d", connection.slug, result.enriched, result.failed)
    return result


def remove_enrichment(connection: Connection) -> int:
    """Take away what was written for a connection's chunks, and return for how many."""
    chunks = Chunk.objects.filter(connection_id=connection.pk).exclude(context_line="", questions=[])
    cleared = 0
    for rows in _batches(chunks.select_related("document").iterator(chunk_size=500)):
        texts = [in_context(row.document.title, row.heading_path, row.text) for row in rows]
        vectors = _vectors(texts)
        bare = [
            EnrichedChunk(
                document_id=row.document_id,
                ordinal=row.ordinal,
                content_hash=row.content_hash,
                context_line="",
                questions=(),
                vectors={index: made[place] for index, made in vectors.items()},
            )
            for place, row in enumerate(rows)
        ]
        cleared += _written(connection, bare)
    fold_term_counts(connection.pk)
    return cleared


def _batches(items: Iterable[_T], size: int = _BATCH_CHUNKS) -> Iterator[list[_T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _most(most: int | None) -> int:
    return settings.CORECUBE_ENRICH_CHUNKS if most is None else most


def _answers(model: ChatModel, found: Sequence[Wanted]) -> Iterator[_Answered]:
    """Yield the answers as they come; after too many failures in a row nothing more is asked."""
    failures = 0
    with ThreadPoolExecutor(settings.CORECUBE_ENRICH_CONCURRENCY, thread_name_prefix="enrich") as threads:
        futures: list[Future[_Answered]] = [threads.submit(_answered, model, wanted) for wanted in found]
        try:
            for future in as_completed(futures):
                answered = future.result()
                failures = failures + 1 if answered.message else 0
                yield answered
                if failures >= _MOST_FAILURES:
                    return
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _answered(model: ChatModel, wanted: Wanted) -> _Answered:
    """Ask for what one chunk lacks; of two answers one that fails spoils the other, which is asked for again."""
    context, questions = wanted.context_line, wanted.questions
    try:
        requests = iter(wanted.requests)
        if wanted.wants_context:
            context = context_in(model.answer(next(requests)))
        if wanted.wants_questions:
            questions = questions_in(model.answer(next(requests)))
    except EnrichError as error:
        return _Answered(wanted, "", (), str(error))
    return _Answered(wanted, context, questions)


def _store(connection: Connection, answered: Sequence[_Answered]) -> int:
    placed = [it for it in answered if it.wanted.wants_context]
    vectors = _vectors([_embedded(it) for it in placed])
    places = {id(it): place for place, it in enumerate(placed)}
    chunks = [
        EnrichedChunk(
            document_id=it.wanted.document_id,
            ordinal=it.wanted.ordinal,
            content_hash=it.wanted.content_hash,
            context_line=it.context_line,
            questions=it.questions,
            vectors={index: made[places[id(it)]] for index, made in vectors.items()} if id(it) in places else {},
        )
        for it in answered
    ]
    return _written(connection, chunks)


def _embedded(answered: _Answered) -> str:
    place = answered.wanted.place
    return in_context(place.title, place.heading_path, place.text, answered.context_line)


def _vectors(texts: Sequence[str]) -> dict[int, list[Vector]]:
    """Return the texts' vectors for every index whose chunks are embedded one by one.

    An index other than the active one whose model fails keeps the vectors that it has.
    """
    found: dict[int, list[Vector]] = {}
    for row in kept_indexes() if texts else ():
        is_active = row.status == EmbeddingIndex.Status.ACTIVE
        if row.mode == EmbeddingIndex.Mode.LATE:
            continue
        try:
            made = embed_texts(texts, runtime.encoder() if is_active else runtime.encoder_of(row))
        except (EncoderError, ConfigError):
            if is_active:
                raise
            continue
        found[row.pk] = [made[text] for text in texts]
    return found


def _written(connection: Connection, chunks: Sequence[EnrichedChunk]) -> int:
    if not chunks:
        return 0
    return store_enrichment(
        chunks,
        connection_id=connection.pk,
        text_search_config=connection.language or settings.CORECUBE_TEXT_SEARCH_CONFIG,
    )


def _with(result: Pass, answered: Sequence[_Answered], stored: int) -> Pass:
    failed = [it for it in answered if it.message]
    return replace(
        result,
        enriched=result.enriched + stored,
        failed=result.failed + len(failed),
        message=failed[-1].message if failed else result.message,
    )
