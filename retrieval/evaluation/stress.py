"""A judged collection made harder, always in the same way: misspelled names, links that mislead. Pure."""

import random
import re
import string
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.evaluation.datasets import Dataset, JudgedQuery
from retrieval.graph.mentions import Occurrence, occurrences
from retrieval.graph.names import names_of

#: Where a document's own beginning ends, as far as it tells its name.
_LEAD_CHARACTERS: Final = 200
#: What can be misspelled: a word of four letters or more, of which the first stays.
_WORD: Final = re.compile(r"[^\W\d_]{4,}")
_FALSE_LINKS: Final = 20
_ROWS_AT_ONCE: Final = 1000


class Stress(StrEnum):
    """What is made harder."""

    #: One wrong letter in every name of a question.
    TYPOS = "typos"
    #: Twenty sentences in every document that name documents like it.
    LINKS = "links"


def misspelled(dataset: Dataset, *, seed: int = 1) -> Dataset:
    """Return the collection with one wrong letter in each name of a document that stands in a question.

    In one word of the name a letter behind the first is replaced, left out, put in, or swapped with the one before it.
    A name without a word of four letters stays. One seed always makes the same mistakes.
    """
    draw = random.Random(seed)  # noqa: S311 -- repeatable, and no secret
    keys = {
        name.key
        for row in dataset.documents()
        for name in names_of(row.get("title") or "", lead=(row.get("text") or "")[:_LEAD_CHARACTERS])
    }
    queries = tuple(JudgedQuery(it.id, _misspelled(it.text, keys, draw)) for it in dataset.queries)
    return replace(dataset, name=f"{dataset.name}, {Stress.TYPOS}", queries=queries)


def with_false_links(dataset: Dataset, vectors: Mapping[str, NDArray[np.float32]]) -> Dataset:
    """Return the collection with sentences that name the twenty nearest documents at the end of each document.

    `vectors` are unit vectors by document. One without a vector, or without a title, is named nowhere; one without a
    vector names none.
    """
    titles = {row["_id"]: row.get("title") or "" for row in dataset.documents()}
    known = [name for name in titles if name in vectors and titles[name]]
    near = _nearest(np.stack([vectors[name] for name in known])) if len(known) > 1 else np.empty((0, 0), np.int64)
    added = {
        name: " ".join(f"It is listed with {titles[known[place]]}." for place in places)
        for name, places in zip(known, near, strict=False)
    }
    return replace(dataset, name=f"{dataset.name}, {Stress.LINKS}", added=added)


def _misspelled(text: str, keys: Collection[str], draw: random.Random) -> str:
    for place in reversed(occurrences(text, keys)):
        text = _with_wrong_letter(text, place, draw)
    return text


def _with_wrong_letter(text: str, place: Occurrence, draw: random.Random) -> str:
    words = list(_WORD.finditer(text, place.start, place.end))
    if not words:
        return text
    word = draw.choice(words)
    at = draw.randrange(word.start() + 1, word.end())
    other = draw.choice([letter for letter in string.ascii_lowercase if letter != text[at].lower()])
    # The first letter stays, so that the second is not swapped with it.
    mistake = draw.choice(_MISTAKES if at > word.start() + 1 else _MISTAKES[:-1])
    wrong = mistake(text, at, other)
    return wrong if wrong != text else _replaced(text, at, other)


def _replaced(text: str, at: int, other: str) -> str:
    return text[:at] + other + text[at + 1 :]


def _left_out(text: str, at: int, _: str) -> str:
    return text[:at] + text[at + 1 :]


def _put_in(text: str, at: int, other: str) -> str:
    return text[:at] + other + text[at:]


def _swapped(text: str, at: int, _: str) -> str:
    return text[: at - 1] + text[at] + text[at - 1] + text[at + 1 :]


_MISTAKES: Final[Sequence[Callable[[str, int, str], str]]] = (_replaced, _left_out, _put_in, _swapped)


def _nearest(vectors: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the places of each vector's nearest others, the nearest first, shape (n, at most 20)."""
    limit = min(_FALSE_LINKS, len(vectors) - 1)
    found = []
    for first in range(0, len(vectors), _ROWS_AT_ONCE):
        likeness = vectors[first : first + _ROWS_AT_ONCE] @ vectors.T
        rows = np.arange(len(likeness))
        likeness[rows, rows + first] = -np.inf
        found.append(np.argsort(-likeness, axis=1, kind="stable")[:, :limit])
    return np.concatenate(found)
