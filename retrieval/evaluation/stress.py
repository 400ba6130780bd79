"""Stress variants of a judged collection, reproducible: misspelled names, misleading links. Pure."""

import random
import re
import string
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.evaluation.datasets import Dataset, JudgedQuery
from retrieval.graph.mentions import Occurrence, occurrences
from retrieval.graph.names import names_of

_LEAD_CHARACTERS: Final = 200  #: Length of a document's lead, which may contain its name.
#: Words that can be misspelled: four letters or more; the first letter stays.
_WORD: Final = re.compile(r"[^\W\d_]{4,}")
_FALSE_LINKS: Final = 20
_BATCH_ROWS: Final = 1000


class Stress(StrEnum):
    """A kind of stress."""

    TYPOS = "typos"
    LINKS = "links"


def misspelled(dataset: Dataset, *, seed: int = 1) -> Dataset:
    """Return the collection with one wrong letter in each document name in a question.

    In one word of the name a letter after the first is replaced, removed, inserted, or swapped with the one before it.
    A name without a word of four letters is not changed. The same seed makes the same mistakes.
    """
    draw = random.Random(seed)  # noqa: S311 -- repeatable, and no secret
    keys = {
        name.key
        for row in dataset.documents()
        for name in names_of(row.get("title") or "", lead=(row.get("text") or "")[:_LEAD_CHARACTERS])
    }
    queries: list[JudgedQuery] = []
    for query in dataset.queries:
        text = query.text
        for place in reversed(occurrences(text, keys)):
            text = _with_wrong_letter(text, place, draw)
        queries.append(JudgedQuery(query.id, text))
    return replace(dataset, name=f"{dataset.name}, {Stress.TYPOS}", queries=tuple(queries))


def with_false_links(dataset: Dataset, vectors: Mapping[str, NDArray[np.float32]]) -> Dataset:
    """Return the collection with sentences at the end of each document that name its twenty nearest documents.

    `vectors` are unit vectors by document. Documents without a vector or a title are not named and name none.
    """
    titles = {row["_id"]: row.get("title") or "" for row in dataset.documents()}
    known = [name for name in titles if name in vectors and titles[name]]
    near = _nearest(np.stack([vectors[name] for name in known])) if len(known) > 1 else np.empty((0, 0), np.int64)
    added = {
        name: " ".join(f"It is listed with {titles[known[place]]}." for place in places)
        for name, places in zip(known, near, strict=False)
    }
    return replace(dataset, name=f"{dataset.name}, {Stress.LINKS}", added=added)


def _with_wrong_letter(text: str, place: Occurrence, draw: random.Random) -> str:
    words = list(_WORD.finditer(text, place.start, place.end))
    if not words:
        return text
    word = draw.choice(words)
    at = draw.randrange(word.start() + 1, word.end())
    other = draw.choice([letter for letter in string.ascii_lowercase if letter != text[at].lower()])
    # The first letter stays, so that the second is not swapped with it.
    replaced = text[:at] + other + text[at + 1 :]
    mistakes = [
        replaced,
        text[:at] + text[at + 1 :],
        text[:at] + other + text[at:],
        text[: at - 1] + text[at] + text[at - 1] + text[at + 1 :],
    ]
    wrong = draw.choice(mistakes if at > word.start() + 1 else mistakes[:-1])
    return wrong if wrong != text else replaced


def _nearest(vectors: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the indices of each vector's nearest others, nearest first, shape (n, up to 20)."""
    limit = min(_FALSE_LINKS, len(vectors) - 1)
    found = []
    for first in range(0, len(vectors), _BATCH_ROWS):
        similarity = vectors[first : first + _BATCH_ROWS] @ vectors.T
        rows = np.arange(len(similarity))
        similarity[rows, rows + first] = -np.inf
        found.append(np.argsort(-similarity, axis=1, kind="stable")[:, :limit])
    return np.concatenate(found)
