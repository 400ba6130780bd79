"""Folders of raw files as a collection: its questions are headings, each of them looking for the document it is from.

Known-item search: nobody has judged such files, but a heading that stands in one document alone names what it is about.
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
from corecube.models import Compartment, Connection
from corecube.scope import Sensitivity
from retrieval.evaluation.corpus import EVALUATION, document_names, evaluation_principal
from retrieval.evaluation.datasets import JudgedQuery
from retrieval.ingest.run import Source
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Sync

_SEED: Final = 11
#: A heading with fewer words is a label; one with more is a sentence.
_MIN_WORDS, _MAX_WORDS = 2, 12
_MAX_OF_ONE_DOCUMENT: Final = 5


@dataclass(frozen=True, slots=True)
class KnownItems:
    """Headings, and the document that each stands in."""

    name: str
    queries: tuple[JudgedQuery, ...]
    qrels: dict[str, dict[str, int]]


def ingested_folder(folder: Path, progress: Callable[[Sync], None]) -> Connection:
    """Return the connection that holds a folder's files, synced by the parsers that every folder is read with."""
    evaluation_principal()
    connection, _ = Connection.objects.get_or_create(
        slug=f"{EVALUATION}-files-{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:8]}",
        defaults={
            "name": f"Evaluation {folder.resolve().name}"[:120],
            "kind": EVALUATION,
            "compartment": Compartment.objects.get(slug=EVALUATION),
            "sensitivity": Sensitivity.RESTRICTED,
        },
    )
    source = Source(FolderConnector(folder.resolve(), settings.CORECUBE_MAX_FILE_BYTES))
    sync_connection(
        connection, sync=Sync(connection=connection, allow_deletions=True), source=source, progress=progress
    )
    return connection


def known_items(connections: Sequence[Connection], *, name: str, limit: int) -> KnownItems:
    """Return at most so many questions, the same ones in every run; raise InvalidRequestError without headings.

    Of one document there are a few at most, so that a long one does not ask all of them.
    """
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
    draw = Random(_SEED)  # noqa: S311 -- a sample, no secret
    found = [
        (heading, document)
        for document, headings in sorted(by_document.items())
        for heading in draw.sample(headings, min(len(headings), _MAX_OF_ONE_DOCUMENT))
    ]
    chosen = sorted(draw.sample(found, min(len(found), limit)))
    if not chosen:
        raise InvalidRequestError("No file of these folders has a heading of its own to ask for.")
    queries = tuple(JudgedQuery(str(number), heading) for number, (heading, _) in enumerate(chosen))
    return KnownItems(name, queries, {str(number): {document: 1} for number, (_, document) in enumerate(chosen)})
