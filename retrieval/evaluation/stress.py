"""Stress variants of a judged collection, reproducible: other names, more links, one case. Pure."""

import random
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from itertools import cycle
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
_COMMON_WORD: Final = re.compile(r"[^\W\d_]{5,}")
_COMMON_WORDS: Final = 100
_RENAMED: Final = 10  #: One document of so many gets a common word as its title.


class Stress(StrEnum):
    """A kind of stress."""

    TYPOS = "typos"
    LINKS = "links"
    CAPITALS = "capitals"
    LOWER = "lower"
    TITLES = "titles"


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

    def rewrite(row: dict[str, str]) -> dict[str, str]:
        return row | {"text": f"{row.get('text') or ''} {added.get(row['_id'], '')}".strip()}

    return replace(dataset, name=f"{dataset.name}, {Stress.LINKS}", variant=Stress.LINKS, rewrite=rewrite)


def in_one_case(dataset: Dataset, stress: Stress) -> Dataset:
    """Return the collection with its documents and questions in capitals, or in lower case."""
    change: Callable[[str], str] = str.upper if stress is Stress.CAPITALS else str.lower

    def rewrite(row: dict[str, str]) -> dict[str, str]:
        return row | {key: change(row.get(key) or "") for key in ("title", "text")}

    queries = tuple(replace(query, text=change(query.text)) for query in dataset.queries)
    return replace(dataset, name=f"{dataset.name}, {stress}", queries=queries, variant=stress, rewrite=rewrite)


def with_common_titles(dataset: Dataset) -> Dataset:
    """Return the collection with a common word, capitalised, as the title of every tenth document.

    The words are the hundred of five letters or more that most documents contain, in turn.
    """
    found = Counter[str]()
    names = []
    for row in dataset.documents():
        names.append(row["_id"])
        found.update(
            {word.lower() for word in _COMMON_WORD.findall(f"{row.get('title') or ''} {row.get('text') or ''}")}
        )
    common = sorted(found, key=lambda word: (-found[word], word))[:_COMMON_WORDS]
    titles = dict(zip(names[::_RENAMED], cycle(word.capitalize() for word in common), strict=False))

    def rewrite(row: dict[str, str]) -> dict[str, str]:
        return row | {"title": titles[row["_id"]]} if row["_id"] in titles else row

    return replace(dataset, name=f"{dataset.name}, {Stress.TITLES}", variant=Stress.TITLES, rewrite=rewrite)


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
