"""Building embedding indexes, and the vectors of optional models, in Celery workers."""

import logging
from typing import Any, Final

from celery import shared_task
from celery.signals import worker_ready
from django.conf import settings
from django.db import Error, InterfaceError, OperationalError, close_old_connections

from retrieval.errors import EncoderUnavailableError
from retrieval.index.embedding_index import clear_dropped
from retrieval.ingest.encodings import fill_all_or_log
from retrieval.ingest.reindex import build_index, unfinished_indexes
from retrieval.ingest.tasks import wake_workers
from retrieval.models import EmbeddingIndex

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 60
_DATABASE_RETRY_SECONDS: Final = 5


@shared_task(bind=True, max_retries=None, default_retry_delay=_RETRY_SECONDS)
def build(self, index_id: int) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 -- Celery binds the task itself
    """Build an embedding index; try again later while its service or the database is unavailable."""
    try:
        clear_dropped()
        row = EmbeddingIndex.objects.filter(pk=index_id).first()
        if row is None:
            logger.info("index.gone id=%s", index_id)
            return
        build_index(row)
    except EncoderUnavailableError as error:
        raise self.retry(exc=error) from error
    except (OperationalError, InterfaceError) as error:
        close_old_connections()
        raise self.retry(exc=error, countdown=_DATABASE_RETRY_SECONDS) from error


@shared_task
def clear() -> None:
    """Delete the vectors of indexes that were dropped."""
    clear_dropped()


@shared_task(
    autoretry_for=(OperationalError, InterfaceError), max_retries=None, default_retry_delay=_DATABASE_RETRY_SECONDS
)
def encode() -> None:
    """Make the sparse vectors and token vectors that chunks lack; try again later while the database is unavailable."""
    fill_all_or_log()


@worker_ready.connect
def resume(**_: Any) -> None:  # noqa: ANN401 -- Celery's signature
    """Queue what is missing, as after a killed worker: encodings and unfinished indexes; running builds go on."""
    if settings.CORECUBE_SPARSE_MODEL or settings.CORECUBE_TOKEN_MODEL:
        encode.delay()
    wake_workers()  # For sentences without vectors.
    try:
        for row in unfinished_indexes():
            build.delay(row.pk)
    except Error as error:
        # The next worker that starts tries again.
        logger.warning("index.not_resumed error=%s", type(error).__name__)
    finally:
        close_old_connections()
