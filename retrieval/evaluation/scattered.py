"""A judged collection with one connection per document, so that a search can exclude documents.

The exclusion by the scope of the request is the production path; no stage knows about the evaluation.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

from corecube.access import ScopeRequest
from corecube.models import Connection
from retrieval.evaluation.corpus import EVALUATION, CorpusConnector, prepare_document, synced
from retrieval.evaluation.datasets import Dataset, read_lines
from retrieval.ingest.run import Source

_DISTRACTORS: Final = "distractors.jsonl"  #: More documents of a collection, unrelated to its questions.
_HASH_LENGTH: Final = 12


@dataclass(frozen=True, slots=True)
class ScatteredCorpus:
    """An ingested collection with one connection per document."""

    slugs: dict[str, str]
    titles: dict[str, str]

    def without(self, documents: Iterable[str]) -> ScopeRequest:
        """Return the scope of the collection without these documents."""
        excluded = set(documents)
        return ScopeRequest(include=tuple(slug for name, slug in self.slugs.items() if name not in excluded))

    def of_same_title(self, documents: Iterable[str]) -> set[str]:
        """Return these documents and all others with their titles: the parts of one article share its title."""
        names = set(documents)
        titles = {self.titles[name] for name in names if self.titles.get(name)}
        return names | {name for name, title in self.titles.items() if title in titles}


def scattered(dataset: Dataset, progress: Callable[[], None]) -> ScatteredCorpus:
    """Return the synced collection with its `distractors.jsonl`; `progress` is called after every document."""
    slugs, titles = dict[str, str](), dict[str, str]()
    distractors = dataset.directory / _DISTRACTORS
    for row in chain(dataset.documents(), read_lines(distractors) if distractors.is_file() else ()):
        folder = os.fsencode(dataset.directory.resolve())
        parts = (hashlib.sha256(text).hexdigest()[:_HASH_LENGTH] for text in (folder, json.dumps(row["_id"]).encode()))
        slugs[row["_id"]] = slug = "-".join((EVALUATION, *parts))
        titles[row["_id"]] = row.get("title") or ""
        synced(slug, slug, Source(CorpusConnector(partial(iter, [row])), prepare_document))
        progress()
    return ScatteredCorpus(slugs, titles)


def remove(corpus: ScatteredCorpus) -> None:
    """Delete the collection's connections with their documents."""
    for connection in Connection.objects.filter(slug__in=corpus.slugs.values(), kind=EVALUATION):
        connection.delete()
