"""Building embedding indexes in Celery workers."""

import logging
from typing import Any, Final

from celery import shared_task
from celery.signals import worker_ready
from django.db import close_old_connections

from retrieval.errors import EncoderUnavailableError
from retrieval.index.embedding_index import clear_dropped
from retrieval.ingest.reindex import build_index, unfinished_indexes
from retrieval.models import EmbeddingIndex

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 60


@shared_task(bind=True, max_retries=None, default_retry_delay=_RETRY_SECONDS)
def build(self, index_id: int) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 -- Celery binds the task itself
    """Build an embedding index; while its service cannot be used, try again later."""
    clear_dropped()
    row = EmbeddingIndex.objects.filter(pk=index_id).first()
    if row is None:
        logger.info("index.gone id=%s", index_id)
        return
    try:
        build_index(row)
    except EncoderUnavailableError as error:
        raise self.retry(exc=error) from error


@shared_task
def clear() -> None:
    """Delete the vectors of indexes that were dropped."""
    clear_dropped()


@worker_ready.connect
def resume(**_: Any) -> None:  # noqa: ANN401 -- Celery's signature
    """Take up what a worker that was killed left unfinished; an index that is being built is left to its builder."""
    try:
        for row in unfinished_indexes():
            build.delay(row.pk)
    finally:
        close_old_connections()
