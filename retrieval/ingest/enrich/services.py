"""Passes over a connection's chunks: what they would cost, and running one."""

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from retrieval.index.embedding_index import kept_indexes
from retrieval.index.enrichment import EnrichedChunk, store_enrichment
from retrieval.index.writer import fold_term_counts
from retrieval.ingest.embedding import embed_texts
from retrieval.ingest.enrich import triples
from retrieval.ingest.enrich.allowed import may_be_sent, writable_for
from retrieval.ingest.enrich.cost import Estimate, Prices, estimate
from retrieval.ingest.enrich.pending import Wanted, drawn, waiting
from retrieval.ingest.enrich.prompts import CONTEXT_TASK, QUESTIONS_TASK, messages
from retrieval.ingest.enrich.wants import Wants, asked_for, writable
from retrieval.ingest.enrich.writers import Answered, Writers, writers
from retrieval.models import Chunk, EmbeddingIndex
from retrieval.text.context_line import in_context

logger = logging.getLogger(__name__)

#: Chunks whose new vectors are made and stored together.
_BATCH_CHUNKS: Final = 32
#: Failures in a row after which the model is left alone until the next pass.
_MAX_FAILURES: Final = 10

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


def estimate_pass(connection: Connection, *, limit: int | None = None) -> Estimate:
    """Return what the next pass over a connection would cost; nothing is sent.

    Where no model is configured, what it would cost with a language model. Raises ConfigError where its compartment's
    rule keeps the chunks from the model.
    """
    _require_allowed(connection)
    can = writable_for(connection) if writable() else Wants()
    found = drawn(connection, limit=_limit(limit), seed=uuid.uuid4().hex, writable=can)
    is_local = bool(settings.CORECUBE_ENRICH_QUESTIONS_MODEL)
    encoder = active.encoder()
    tokens = [
        sum(len(encoder.token_spans(message["content"])) for message in messages(task, wanted.place))
        for wanted in found
        for task in _tasks(wanted, is_local=is_local)
    ]
    return estimate(
        tokens,
        waiting=waiting(connection, can).count(),
        chunks=len(found),
        prices=Prices(sent=settings.CORECUBE_ENRICH_PRICE_SENT, answered=settings.CORECUBE_ENRICH_PRICE_ANSWERED),
        written_here=sum(wanted.wants_questions for wanted in found) if is_local else 0,
        for_triples=sum(wanted.wants_triples for wanted in found),
    )


def _tasks(wanted: Wanted, *, is_local: bool) -> list[str]:
    """Return what a language model is asked about a chunk."""
    return [
        *[CONTEXT_TASK] * wanted.wants_context,
        *[QUESTIONS_TASK] * (wanted.wants_questions and not is_local),
        *[triples.TASK] * wanted.wants_triples,
    ]


def enrich_after_sync(connection: Connection) -> Pass:
    """Run a pass where the connection asks for what a model can write; log a failure and go on."""
    try:
        if not asked_for(connection) & writable_for(connection):
            return Pass()
        return enrich(connection)
    except CoreCubeError as error:
        logger.warning("enrich.failed connection=%s code=%s", connection.slug, error.code)
        return Pass(message=str(error))


def enrich(connection: Connection, *, limit: int | None = None, progress: Progress = lambda _done, _of: None) -> Pass:
    """Let the models write what at most `most` chunks lack (by default the configured ceiling), and store it.

    A chunk that they fail for stays as it is and can be drawn again. `progress` gets the chunks done and all of them.
    Raises ConfigError when no model is configured or may be sent the chunks, or the connection asks for nothing,
    EncoderError for a local model that cannot be loaded. A rule that comes meanwhile ends the pass.
    """
    if not asked_for(connection):
        raise ConfigError("The connection asks for no enrichment.")
    _require_allowed(connection)
    can = writable_for(connection)
    with writers(asked_for(connection), may_be_sent=may_be_sent(connection)) as models:
        found = drawn(connection, limit=_limit(limit), seed=uuid.uuid4().hex, writable=can)
        result = Pass()
        for answered in _batches(_answers(models, found)):
            result = _with(result, answered, _store(connection, [it for it in answered if not it.message]))
            progress(result.enriched + result.failed, len(found))
            if writable_for(connection) != can:
                break
    if result.enriched:
        fold_term_counts(connection.pk)
    logger.info("enrich.done connection=%s chunks=%d failed=%d", connection.slug, result.enriched, result.failed)
    return result


def _require_allowed(connection: Connection) -> None:
    """Raise ConfigError where a model could write what a connection asks for, and none of it may be sent to it."""
    asked = asked_for(connection)
    if asked & writable() and not asked & writable_for(connection):
        raise ConfigError("Its compartment is bound to another language model or to none, so nothing of it is sent.")


def remove_enrichment(connection: Connection) -> int:
    """Take away what was written for a connection's chunks, and return for how many."""
    chunks = Chunk.objects.filter(connection_id=connection.pk)
    chunks = chunks.exclude(context_line="", questions=[], triples__isnull=True)
    cleared = 0
    for rows in _batches(chunks.select_related("document").iterator(chunk_size=500)):
        texts = [in_context(row.document.title, row.heading_path, row.text) for row in rows]
        cleared += _written(connection, texts, [_bare(row, place) for place, row in enumerate(rows)])
    fold_term_counts(connection.pk)
    return cleared


def _batches(items: Iterable[_T], size: int = _BATCH_CHUNKS) -> Iterator[list[_T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _limit(limit: int | None) -> int:
    return settings.CORECUBE_ENRICH_CHUNKS if limit is None else limit


def _answers(models: Writers, found: Sequence[Wanted]) -> Iterator[Answered]:
    """Yield the answers as they come; after too many failures in a row nothing more is asked."""
    failures = 0
    with ThreadPoolExecutor(settings.CORECUBE_ENRICH_CONCURRENCY, thread_name_prefix="enrich") as threads:
        futures: list[Future[Answered]] = [threads.submit(models.answer, wanted) for wanted in found]
        try:
            for future in as_completed(futures):
                answered = future.result()
                failures = failures + 1 if answered.message else 0
                yield answered
                if failures >= _MAX_FAILURES:
                    return
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Written:
    """A chunk with what is to be stored for it, and where its new vector stands; None where it keeps its own."""

    chunk: EnrichedChunk
    place: int | None


def _bare(row: Chunk, place: int) -> _Written:
    chunk = EnrichedChunk(
        document_id=row.document_id,
        ordinal=row.ordinal,
        content_hash=row.content_hash,
        title=row.document.title,
        heading_path=row.heading_path,
        context_line="",
        questions=(),
        triples=None,
        vectors={},
    )
    return _Written(chunk, place)


def _store(connection: Connection, answered: Sequence[Answered]) -> int:
    texts: list[str] = []
    written: list[_Written] = []
    for it in answered:
        is_placed = it.wanted.wants_context
        written.append(_Written(_enriched(it), len(texts) if is_placed else None))
        texts.extend([_embedded(it)] * is_placed)
    return _written(connection, texts, written)


def _enriched(answered: Answered) -> EnrichedChunk:
    wanted = answered.wanted
    return EnrichedChunk(
        document_id=wanted.document_id,
        ordinal=wanted.ordinal,
        content_hash=wanted.content_hash,
        title=wanted.place.title,
        heading_path=wanted.place.heading_path,
        context_line=answered.context_line,
        questions=answered.questions,
        triples=answered.triples,
        vectors={},
    )


def _embedded(answered: Answered) -> str:
    place = answered.wanted.place
    return in_context(place.title, place.heading_path, place.text, answered.context_line)


def _vectors(texts: Sequence[str]) -> dict[int, list[Vector]]:
    """Return the texts' vectors for every index; none for one whose chunks are not embedded one by one.

    Nor for one other than the active index whose model fails: it keeps the vectors that it has.
    """
    found: dict[int, list[Vector]] = {}
    for row in kept_indexes():
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


def _written(connection: Connection, texts: Sequence[str], written: Sequence[_Written]) -> int:
    """Store chunks with the vectors of the texts, made once more when another index began meanwhile."""
    stored = None if written else 0
    while stored is None:
        vectors = _vectors(texts) if texts else {}
        stored = store_enrichment(
            [replace(it.chunk, vectors=_at(vectors, it.place)) for it in written],
            connection_id=connection.pk,
            text_search_config=connection.language or settings.CORECUBE_TEXT_SEARCH_CONFIG,
            indexes=frozenset(vectors) if texts else None,
        )
    return stored


def _at(vectors: Mapping[int, Sequence[Vector]], place: int | None) -> dict[int, Vector]:
    """Return the vectors at a place, by index, of those indexes that have any."""
    return {} if place is None else {index: made[place] for index, made in vectors.items() if made}


def _with(result: Pass, answered: Sequence[Answered], stored: int) -> Pass:
    failed = [it for it in answered if it.message]
    return replace(
        result,
        enriched=result.enriched + stored,
        failed=result.failed + len(failed),
        message=failed[-1].message if failed else result.message,
    )
