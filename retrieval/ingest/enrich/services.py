"""Enrichment passes over a connection's chunks: estimating the cost, running a pass, and removing the results."""

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
from retrieval.engine.types import Vector
from retrieval.errors import EncoderError
from retrieval.index import active
from retrieval.index.embedding_index import all_indexes
from retrieval.index.enrichment import EnrichedChunk, store_enrichment
from retrieval.index.writer import fold_term_counts
from retrieval.ingest.enrich import triples
from retrieval.ingest.enrich.pending import Pending, drawn, waiting
from retrieval.ingest.enrich.prompts import CONTEXT_TASK, QUESTIONS_TASK, TYPICAL_ANSWER_TOKENS, messages
from retrieval.ingest.enrich.wants import EVERYTHING, may_be_sent, requested, writable, writable_for
from retrieval.ingest.enrich.writers import Answer, Writers, writers
from retrieval.ingest.vectors import embed_texts
from retrieval.models import Chunk, EmbeddingIndex
from retrieval.text.document import in_context

logger = logging.getLogger(__name__)

_BATCH_CHUNKS: Final = 32
_MAX_FAILURES: Final = 10

Progress = Callable[[int, int], None]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """The result of a pass."""

    enriched: int = 0
    failed: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The amounts of a pass."""

    waiting: int  #: Chunks that lack something, and how many of them one pass processes.
    chunks: int
    written_here: int  #: Those of them whose questions a model on this machine writes at no cost.
    requests: int
    tokens_sent: int
    tokens_answered: int
    price: float | None  #: None if no price is configured.


def estimate(
    request_tokens: Sequence[int],
    *,
    waiting: int,
    chunks: int,
    prices: tuple[float, float],
    written_here: int = 0,
    for_triples: int = 0,
) -> Estimate:
    """Return the cost of requests with these tokens and answers of typical length; `for_triples` are for triples.

    `prices` are those of a million tokens sent and answered, in the currency of the bill; 0 if not configured.
    """
    longer = for_triples * (triples.TYPICAL_ANSWER_TOKENS - TYPICAL_ANSWER_TOKENS)
    sent, answered = sum(request_tokens), len(request_tokens) * TYPICAL_ANSWER_TOKENS + longer
    return Estimate(
        waiting=waiting,
        chunks=chunks,
        written_here=written_here,
        requests=len(request_tokens),
        tokens_sent=sent,
        tokens_answered=answered,
        price=(sent * prices[0] + answered * prices[1]) / 1_000_000 if max(prices) > 0 else None,
    )


def estimate_pass(connection: Connection, *, limit: int | None = None) -> Estimate:
    """Return the cost of the next pass over a connection; nothing is sent.

    Without a configured model, return the cost with a language model. Raises ConfigError if its compartment's rule
    forbids sending the chunks to the model.
    """
    _require_allowed(connection)
    can = writable_for(connection) if writable() else EVERYTHING
    found = drawn(connection, limit=_limit(limit), seed=uuid.uuid4().hex, writable=can)
    is_local = bool(settings.CORECUBE_ENRICH_QUESTIONS_MODEL)
    encoder = active.encoder()
    tokens = [
        sum(len(encoder.token_spans(message["content"])) for message in messages(task, pending.place))
        for pending in found
        for task, is_wanted in (
            (CONTEXT_TASK, "context" in pending.wants),
            (QUESTIONS_TASK, "questions" in pending.wants and not is_local),
            (triples.TASK, "triples" in pending.wants),
        )
        if is_wanted
    ]
    return estimate(
        tokens,
        waiting=waiting(connection, can).count(),
        chunks=len(found),
        prices=(settings.CORECUBE_ENRICH_PRICE_SENT, settings.CORECUBE_ENRICH_PRICE_ANSWERED),
        written_here=sum("questions" in pending.wants for pending in found) if is_local else 0,
        for_triples=sum("triples" in pending.wants for pending in found),
    )


def enrich_after_sync(connection: Connection) -> Pass:
    """Run a pass if the connection requests what a model can write; log a failure and return it."""
    try:
        if not requested(connection) & writable_for(connection):
            return Pass()
        return enrich(connection)
    except CoreCubeError as error:
        logger.warning("enrich.failed connection=%s code=%s", connection.slug, error.code)
        return Pass(message=str(error))


def enrich(connection: Connection, *, limit: int | None = None, progress: Progress = lambda _done, _of: None) -> Pass:
    """Let the models write what at most `limit` chunks lack (by default the configured maximum), and store it.

    A chunk that fails stays unchanged and can be drawn again. `progress` gets the number of chunks done and of all.
    Raises ConfigError when no model is configured or may read the chunks, or the connection requests nothing,
    EncoderError for a local model that cannot be loaded. A rule that is added meanwhile ends the pass.
    """
    if not requested(connection):
        raise ConfigError("Enrichment is off for this connection.")
    _require_allowed(connection)
    can = writable_for(connection)
    result = Pass()
    with writers(requested(connection), may_be_sent=may_be_sent(connection)) as models:
        found = drawn(connection, limit=_limit(limit), seed=uuid.uuid4().hex, writable=can)
        for answers in _batches(_answers(models, found)):
            failed = [it for it in answers if it.message]
            stored = _store(connection, [it for it in answers if not it.message])
            message = failed[-1].message if failed else result.message
            result = Pass(enriched=result.enriched + stored, failed=result.failed + len(failed), message=message)
            progress(result.enriched + result.failed, len(found))
            if writable_for(connection) != can:
                break
    if result.enriched:
        fold_term_counts(connection.pk)
    logger.info("enrich.done connection=%s chunks=%d failed=%d", connection.slug, result.enriched, result.failed)
    return result


def _require_allowed(connection: Connection) -> None:
    """Raise ConfigError if a model could write what a connection requests, but may not read its chunks."""
    wants = requested(connection)
    if wants & writable() and not wants & writable_for(connection):
        raise ConfigError("Its compartment is bound to another language model or to none, so none of it is sent.")


def remove_enrichment(connection: Connection) -> int:
    """Remove the enrichment of a connection's chunks, and return their number."""
    chunks = Chunk.objects.filter(connection_id=connection.pk)
    chunks = chunks.exclude(context_line="", questions=[], triples__isnull=True)
    removed = 0
    for rows in _batches(chunks.select_related("document").iterator(chunk_size=500)):
        texts = [in_context(row.document.title, row.heading_path, row.text) for row in rows]
        bare = [(EnrichedChunk(row=row), place) for place, row in enumerate(rows)]
        removed += _store_with_vectors(connection, texts, bare)
    fold_term_counts(connection.pk)
    return removed


def _batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    rest = iter(items)
    while batch := list(islice(rest, _BATCH_CHUNKS)):
        yield batch


def _limit(limit: int | None) -> int:
    return settings.CORECUBE_ENRICH_CHUNKS if limit is None else limit


def _answers(models: Writers, found: Sequence[Pending]) -> Iterator[Answer]:
    """Yield the answers in order of completion; end after too many consecutive failures."""
    failures = 0
    with ThreadPoolExecutor(settings.CORECUBE_ENRICH_CONCURRENCY, thread_name_prefix="enrich") as threads:
        futures: list[Future[Answer]] = [threads.submit(models.answer, pending) for pending in found]
        try:
            for future in as_completed(futures):
                answer = future.result()
                failures = failures + 1 if answer.message else 0
                yield answer
                if failures >= _MAX_FAILURES:
                    return
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _store(connection: Connection, answers: Sequence[Answer]) -> int:
    texts: list[str] = []
    chunks: list[tuple[EnrichedChunk, int | None]] = []
    for it in answers:
        pending, place = it.pending, it.pending.place
        chunk = EnrichedChunk(row=pending.row, context_line=it.context_line, questions=it.questions, triples=it.triples)
        chunks.append((chunk, len(texts) if "context" in pending.wants else None))
        if "context" in pending.wants:
            texts.append(in_context(place.title, place.heading_path, place.text, it.context_line))
    return _store_with_vectors(connection, texts, chunks)


def _store_with_vectors(
    connection: Connection, texts: Sequence[str], chunks: Sequence[tuple[EnrichedChunk, int | None]]
) -> int:
    """Store chunks with the vectors at a place in `texts`, None for their own; again when an index was added."""
    stored = None if chunks else 0
    while stored is None:
        vectors = _vectors(texts) if texts else {}
        found = [(index, made) for index, made in vectors.items() if made]
        stored = store_enrichment(
            [
                chunk if place is None else replace(chunk, vectors={index: made[place] for index, made in found})
                for chunk, place in chunks
            ],
            connection_id=connection.pk,
            text_search_config=connection.language or settings.CORECUBE_TEXT_SEARCH_CONFIG,
            indexes=frozenset(vectors) if texts else None,
        )
    return stored


def _vectors(texts: Sequence[str]) -> dict[int, list[Vector]]:
    """Return the texts' vectors by index: none for late chunking, or for an inactive index whose model fails."""
    found: dict[int, list[Vector]] = {}
    for row in all_indexes():
        is_active = row.status == EmbeddingIndex.Status.ACTIVE
        found[row.pk] = []
        if row.mode == EmbeddingIndex.Mode.LATE:
            continue
        try:
            made = embed_texts(texts, active.encoder() if is_active else active.encoder_of(row))
        except (EncoderError, ConfigError):
            if is_active:
                raise
            continue
        found[row.pk] = [made[text] for text in texts]
    return found
