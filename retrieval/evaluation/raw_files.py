"""Folders of files as a collection for known-item search: its queries are headings, each looking for its document.

The files have no judgments, but a heading that occurs in only one document identifies it.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from django.conf import settings

from corecube.connectors.folder import FolderConnector
from corecube.errors import InvalidRequestError
from corecube.models import Connection
from retrieval.evaluation.corpus import EVALUATION, document_names, evaluation_principal, synced
from retrieval.evaluation.datasets import JudgedQuery
from retrieval.ingest.run import Source
from retrieval.models import Chunk, Sync

_HEADINGS_SEED: Final = 11
#: A heading with fewer words is a label; one with more is a sentence.
_MIN_WORDS, _MAX_WORDS = 2, 12
_MAX_PER_DOCUMENT: Final = 5


@dataclass(frozen=True, slots=True)
class KnownItems:
    """Headings, and the document of each."""

    name: str
    queries: tuple[JudgedQuery, ...]
    qrels: dict[str, dict[str, int]]


def ingested_folder(folder: Path, progress: Callable[[Sync], None]) -> Connection:
    """Return the synced connection with a folder's files, parsed like any folder."""
    evaluation_principal()
    slug = f"{EVALUATION}-files-{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:8]}"
    source = Source(FolderConnector(folder.resolve(), settings.CORECUBE_MAX_FILE_BYTES))
    return synced(slug, f"Evaluation {folder.resolve().name}", source, progress)


def known_items(connections: Sequence[Connection], *, name: str, limit: int) -> KnownItems:
    """Return up to `limit` queries, a few per document, the same in every run; raise InvalidRequestError for none."""
    names = document_names(connections)
    places: dict[str, set[str]] = {}
    rows = Chunk.objects.filter(document__connection__in=connections).values_list("document_id", "heading_path")
    for document, path in rows.iterator():
        for heading in path:
            if _MIN_WORDS <= len(heading.split()) <= _MAX_WORDS:
                places.setdefault(heading.strip(), set()).add(names[document])
    by_document: dict[str, list[str]] = {}
    for heading, documents in sorted(places.items()):
        if len(documents) == 1:
            by_document.setdefault(next(iter(documents)), []).append(heading)
    draw = Random(_HEADINGS_SEED)  # noqa: S311 -- a sample, no secret
    found = [
        (heading, document)
        for document, headings in sorted(by_document.items())
        for heading in draw.sample(headings, min(len(headings), _MAX_PER_DOCUMENT))
    ]
    chosen = sorted(draw.sample(found, min(len(found), limit)))
    if not chosen:
        raise InvalidRequestError("No file in these folders has a unique heading to search for.")
    queries = tuple(JudgedQuery(str(number), heading) for number, (heading, _) in enumerate(chosen))
    return KnownItems(name, queries, {str(number): {document: 1} for number, (_, document) in enumerate(chosen)})
