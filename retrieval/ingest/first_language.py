"""The language of a new connection: that of most documents, as a sample of its first items shows."""

import logging
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from django.db import Error

from corecube.connectors.types import ItemProblem
from corecube.errors import UnknownConnectionError
from corecube.models import Connection
from retrieval.ingest.languages import ANY, LANGUAGES, read_language
from retrieval.ingest.run import Job, Steps, SyncEndedError
from retrieval.ingest.sandbox.process import InterruptedPreparationError
from retrieval.models import Document, Sync

logger = logging.getLogger(__name__)

_MAX_ITEMS: Final = 12
_CLEAR_LEAD: Final = 3  #: Documents that one language has more than all others together, after which none is read.
_MAX_SECONDS: Final = 20.0


def with_language(job: Job, steps: Steps) -> Job:
    """Return a sync's job that reads its documents in their language, which becomes that of the connection.

    Nothing changes where the connection has a language or documents, in a dry run, and where full text cannot read the
    language. Raises what the connector raises for the source as a whole, and SyncEndedError.
    """
    connection = job.target.connection
    read = read_language(connection)
    is_open = not connection.language and read != ANY and job.sync.kind != Sync.Kind.DRY_RUN
    if not is_open or Document.objects.filter(connection_id=connection.pk).exists():
        return job
    language = _language(job, steps)
    if language == read or language not in LANGUAGES:
        return job
    Connection.objects.filter(pk=connection.pk).update(language=language)
    connection.language = language
    logger.info("sync.language connection=%s language=%s", connection.slug, language)
    return replace(job, target=replace(job.target, text_search_config=language))


def _language(job: Job, steps: Steps) -> str:
    """Return the language of more than half of a sample of documents; empty without one."""
    counts = Counter[str]()
    best, most = "", 0
    for found in _languages(job, steps):
        counts[found] += 1
        best, most = counts.most_common(1)[0]
        if 2 * most >= counts.total() + _CLEAR_LEAD:
            break
    return best if 2 * most > counts.total() else ""


def _languages(job: Job, steps: Steps) -> Iterator[str]:
    """Yield the language of each of the first items that is in one."""
    connector = job.source.connector
    ends = time.monotonic() + _MAX_SECONDS
    for item in islice(connector.items(), _MAX_ITEMS):
        steps.require_wanted()
        if time.monotonic() >= ends:
            return
        if isinstance(item, ItemProblem):
            continue
        try:
            prepared = job.prepare(item, connector.read(item))
        except (Error, UnknownConnectionError):
            raise
        except InterruptedPreparationError as error:
            raise SyncEndedError from error
        except Exception:  # noqa: BLE001, S112 -- the sync itself lists the item's problem
            continue
        languages = Counter(language for it in prepared.chunks if (language := it.traits.language))
        if languages:
            yield languages.most_common(1)[0][0]
