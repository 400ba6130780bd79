"""Synthetic documents with the search costs of real ones; the same seed gives the same documents.

Words follow a Zipf-Mandelbrot law in which the most frequent word occurs in a third of the chunks, as in English
without stop words. Each document has a topic: some of its words belong to the topic, and its chunks' vectors are near
the topic's centre. Vectors have the spectrum of real embeddings: with isotropic noise an approximate index would find
nothing, and with a few tight clusters it would look too good. All dimensions are equally important, as in a real
model, unless the vectors are nested (Matryoshka).

Titles are names. Three of four texts mention another document by its name, mostly one of the same topic, and a few
documents much more often than others.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.engine.types import Vector
from retrieval.evaluation.bench.plan import CONNECTIONS, chunks_in

DIM: Final = 384
CHUNKS_PER_DOCUMENT: Final = 4
SYNTHESIS_VERSION: Final = 2  #: Increased whenever the same seed would give other documents.

_SYLLABLES: Final = tuple(consonant + vowel for consonant in "bdfgklmnprtvz" for vowel in "aiou")
#: No English suffix ends in one of these after these vowels, so that a word equals its stem.
_ENDINGS: Final = "bgkp"
_VOCABULARY: Final = 200_000
_ZIPF_SHIFT: Final = 30
_TOPIC_WORDS: Final = 300
_TOPIC_SHARE: Final = 0.3
_MAX_TOPICS: Final = 1000
_CHUNKS_PER_TOPIC: Final = 50
_TEXT_WORDS: Final = (60, 180)
_SENTENCE_WORDS: Final = (8, 24)
_HEADING_WORDS: Final = 3
_NAME_WORDS: Final = 2
_RARE_FROM: Final = 5_000  #: Names consist of less frequent words, from this rank on.
_LINK_SHARE: Final = 0.75
_SAME_TOPIC_SHARE: Final = 0.7
#: The share of the links that go to the first part p of a topic's documents is p ** (1 / this).
_HUB_POWER: Final = 2
#: Standard deviation of the i-th component: (i + shift) ** -power. Compared with 2,466 passages of technical
#: documentation under bge-small: participation ratio 55 there and 53 here, local dimension 16 to 19 and 10 to 19.
_SPECTRUM_SHIFT: Final = 10
_SPECTRUM_POWER: Final = 0.75


@dataclass(frozen=True, slots=True)
class SyntheticLink:
    """A mention of another document's title: its position in code points, end exclusive."""

    ordinal: int
    start: int
    end: int
    connection: int  #: The other document: its connection's number, and its position there.
    place: int


@dataclass(frozen=True, slots=True)
class SyntheticDocument:
    """A document of up to four chunks under one heading."""

    title: str
    heading: str
    texts: tuple[str, ...]
    vectors: NDArray[np.float32]  #: Unit vectors, shape (len(texts), DIM).
    links: tuple[SyntheticLink, ...] = ()


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The common data of all documents of a seed: the words, their frequencies, and the topics."""

    seed: int
    vocabulary: NDArray[np.object_]
    cumulative: NDArray[np.float64]  #: Probability of this word or a more frequent one, shape (words,).
    topic_words: NDArray[np.int64]  #: Indices in the vocabulary, shape (topics, words of a topic).
    topic_centres: NDArray[np.float32]  #: Shape (topics, DIM), not of unit length.
    topics: NDArray[np.int64]  #: The topic of each document, shape (connections, maximum of documents).
    #: Indices in the vocabulary of each document's name, shape (connections, maximum of documents, words).
    name_words: NDArray[np.int64]
    #: (connection, position) of every document, by topic; shape (documents, 2), and the start of each topic.
    by_topic: NDArray[np.int64]
    topic_starts: NDArray[np.int64]
    nested: bool = False  #: Whether the first dimensions are the most important (Matryoshka); else all are equal.

    def documents(self, connection: int, chunks: int) -> Iterator[SyntheticDocument]:
        """Yield the documents of the connection with this number, with `chunks` chunks in total."""
        rng = np.random.default_rng([self.seed, SYNTHESIS_VERSION, connection])
        for place, first in enumerate(range(0, chunks, CHUNKS_PER_DOCUMENT)):
            yield self._document(rng, connection, place, min(CHUNKS_PER_DOCUMENT, chunks - first))

    def title(self, connection: int, place: int) -> str:
        """Return the name of a connection's document by its position."""
        return " ".join(word.capitalize() for word in self.vocabulary[self.name_words[connection, place]])

    def vectors(self, drawn: NDArray[np.float32]) -> Vector:
        """Return random vectors as embeddings: of unit length, shape unchanged."""
        return unit(drawn if self.nested else drawn @ mixing())

    def _document(self, rng: np.random.Generator, connection: int, place: int, chunks: int) -> SyntheticDocument:
        topic = int(self.topics[connection, place])
        lengths = rng.integers(*_TEXT_WORDS, size=chunks, endpoint=True).tolist()
        count = _HEADING_WORDS + sum(lengths)
        common = _zipf(rng, self.cumulative, count)
        own = self.topic_words[topic, rng.integers(_TOPIC_WORDS, size=count)]
        words = iter(self.vocabulary[np.where(rng.random(count) < _TOPIC_SHARE, own, common)].tolist())
        heading, *plain = (list(islice(words, length)) for length in (_HEADING_WORDS, *lengths))
        texts, links = self._linked(rng, topic, plain)
        vectors = self.vectors(self.topic_centres[topic] + noise(rng, chunks))
        return SyntheticDocument(self.title(connection, place), " ".join(heading), texts, vectors, links)

    def _linked(
        self, rng: np.random.Generator, topic: int, plain: list[list[str]]
    ) -> tuple[tuple[str, ...], tuple[SyntheticLink, ...]]:
        """Return texts of these words, most of them with another document's title, and the positions of the titles."""
        texts, links = [], []
        for ordinal, words in enumerate(plain):
            if rng.random() >= _LINK_SHARE:
                texts.append(" ".join(_sentences(rng, words)))
                continue
            other, place = self._target(rng, topic)
            title, before = self.title(other, place), int(rng.integers(1, len(words)))
            written = _sentences(rng, [*words[:before], title, *words[before:]])
            start = len(" ".join(written[:before])) + 1
            texts.append(" ".join(written))
            links.append(SyntheticLink(ordinal, start, start + len(title), other, place))
        return tuple(texts), tuple(links)

    def _target(self, rng: np.random.Generator, topic: int) -> tuple[int, int]:
        if rng.random() >= _SAME_TOPIC_SHARE:
            topic = int(rng.integers(len(self.topic_words)))
        first, end = self.topic_starts[topic], self.topic_starts[topic + 1]
        if end > first:
            found = first + int((end - first) * rng.random() ** _HUB_POWER)
        else:
            found = rng.integers(len(self.by_topic))
        connection, place = self.by_topic[found].tolist()
        return connection, place


def synthesis(*, chunks: int, seed: int, nested: bool = False) -> Synthesis:
    """Return the common data for `chunks` chunks of synthetic documents."""
    rng = np.random.default_rng([seed, SYNTHESIS_VERSION])
    topics = min(_MAX_TOPICS, chunks // _CHUNKS_PER_TOPIC)
    weights = 1 / (np.arange(_VOCABULARY) + 1 + _ZIPF_SHIFT)
    cumulative = np.cumsum(weights / weights.sum())
    counts = np.array([-(-chunks_in(number, chunks) // CHUNKS_PER_DOCUMENT) for number in range(CONNECTIONS)])
    shape = (CONNECTIONS, int(counts.max()))
    of_documents = rng.integers(topics, size=shape)
    there = np.arange(of_documents.shape[1]) < counts[:, np.newaxis]
    documents = np.argwhere(there)
    found = of_documents[there]
    order = np.argsort(found, kind="stable")
    by_topic, starts = documents[order], np.searchsorted(found[order], np.arange(topics + 1))
    return Synthesis(
        seed=seed,
        vocabulary=np.array([word(place) for place in range(_VOCABULARY)], dtype=np.object_),
        cumulative=cumulative,
        topic_words=_zipf(rng, cumulative, (topics, _TOPIC_WORDS)),
        topic_centres=noise(rng, topics),
        topics=of_documents,
        name_words=rng.integers(_RARE_FROM, _VOCABULARY, size=(*shape, _NAME_WORDS)),
        by_topic=by_topic,
        topic_starts=starts,
        nested=nested,
    )


def _sentences(rng: np.random.Generator, words: list[str]) -> list[str]:
    written = list(words)
    first = 0
    while first < len(written):
        last = min(first + int(rng.integers(*_SENTENCE_WORDS, endpoint=True)), len(written)) - 1
        written[first] = written[first][0].upper() + written[first][1:]
        written[last] += "."
        first = last + 1
    return written


@cache
def mixing() -> NDArray[np.float32]:
    """Return a rotation that distributes a vector's information over all of its dimensions, shape (DIM, DIM)."""
    square = np.random.default_rng(SYNTHESIS_VERSION).standard_normal((DIM, DIM))
    rotation: NDArray[np.float32] = np.linalg.qr(square)[0].astype(np.float32)
    return rotation


def word(place: int) -> str:
    """Return the word at an index of the vocabulary, three syllables and an ending: "bababab", "bibabab" ..."""
    size = len(_SYLLABLES)
    rest, first = divmod(place, size)
    rest, second = divmod(rest, size)
    ending, third = divmod(rest, size)
    return _SYLLABLES[first] + _SYLLABLES[second] + _SYLLABLES[third] + _ENDINGS[ending]


def plain_words(text: str) -> list[str]:
    """Return a text's words in lower case, without full stops."""
    return text.lower().replace(".", "").split()


def noise(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    """Return random vectors of length about 1 with the spectrum of embeddings, shape (count, DIM)."""
    spectrum = (np.arange(DIM) + _SPECTRUM_SHIFT) ** -_SPECTRUM_POWER
    scale = (spectrum / np.linalg.norm(spectrum)).astype(np.float32)
    return rng.standard_normal((count, DIM), dtype=np.float32) * scale


def unit(vectors: NDArray[np.float32]) -> Vector:
    """Return the vectors at length 1, shape unchanged."""
    scaled: Vector = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return scaled


def _zipf(rng: np.random.Generator, cumulative: NDArray[np.float64], shape: int | tuple[int, int]) -> NDArray[np.int64]:
    places = np.searchsorted(cumulative, rng.random(shape))
    return np.minimum(places, len(cumulative) - 1)
