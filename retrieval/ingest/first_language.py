"""The language of a new connection: that of most documents, as a sample of its first items shows."""

import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import Final

from django.db import Error

from corecube.connectors.types import SourceItem
from corecube.errors import UnknownConnectionError
from corecube.models import Connection
from retrieval.ingest.languages import ANY, LANGUAGES, read_language
from retrieval.ingest.run import Job, Steps, SyncEndedError
from retrieval.ingest.sandbox.process import InterruptedPreparationError
from retrieval.models import Document

logger = logging.getLogger(__name__)

_MAX_ITEMS: Final = 12
_MIN_DOCUMENTS: Final = 6  #: After so many a clear majority decides.
_MAX_SECONDS: Final = 20.0


def with_language(job: Job, listed: Sequence[SourceItem], steps: Steps) -> Job:
    """Return a sync's job that reads its documents in their language, which becomes that of the connection.

    A sample of the first `listed` items decides. Nothing changes where the connection has a language or documents, and
    where full text cannot read the language. Raises SyncEndedError.
    """
    connection = job.target.connection
    read = read_language(connection)
    is_open = not connection.language and read != ANY
    if not is_open or Document.objects.filter(connection_id=connection.pk).exists():
        return job
    language = _language(job, listed[:: max(1, ceil(len(listed) / _MAX_ITEMS))], steps)
    if language == read or language not in LANGUAGES:
        return job
    # An admin may have set one meanwhile.
    Connection.objects.filter(pk=connection.pk, language="").update(language=language)
    connection.refresh_from_db(fields=["language"])
    logger.info("sync.language connection=%s language=%s", connection.slug, connection.language)
    return replace(job, target=replace(job.target, text_search_config=read_language(connection)))


def _language(job: Job, sample: Sequence[SourceItem], steps: Steps) -> str:
    """Return the language of more than half of a sample of documents; empty without one."""
    counts = Counter[str]()
    best, most = "", 0
    for found in _languages(job, sample, steps):
        counts[found] += 1
        best, most = counts.most_common(1)[0]
        if counts.total() >= _MIN_DOCUMENTS and most > counts.total() - most + 1:
            break
    return best if 2 * most > counts.total() else ""


def _languages(job: Job, sample: Sequence[SourceItem], steps: Steps) -> Iterator[str]:
    """Yield the language of each of the items that is in one; none is begun after 20 seconds."""
    ends = time.monotonic() + _MAX_SECONDS
    for item in sample:
        steps.require_wanted()
        if time.monotonic() >= ends:
            return
        try:
            prepared = job.prepare(item, job.source.connector.read(item))
        except (Error, UnknownConnectionError):
            raise
        except InterruptedPreparationError as error:
            raise SyncEndedError from error
        except Exception:  # noqa: BLE001, S112 -- the sync itself lists the item's problem
            continue
        languages = Counter(language for it in prepared.chunks if (language := it.traits.language))
        if languages:
            yield languages.most_common(1)[0][0]
