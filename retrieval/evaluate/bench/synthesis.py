"""Synthetic documents that cost a search what real ones do; the same seed gives the same documents.

Words follow a Zipf-Mandelbrot law whose commonest word stands in a third of the chunks, as in English without
its stop words. Each document has a topic: some of its words are the topic's own, and its chunks' vectors lie
around the topic's centre. Vectors have the spectrum of real embeddings: isotropic noise would leave the
approximate index nothing to find, and a few tight clusters would make it look better than it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.types import Vector

#: As many as the default model's vectors have.
DIM: Final = 384
CHUNKS_PER_DOCUMENT: Final = 4
#: Raised by one whenever the same seed would give other documents.
SYNTHESIS_VERSION: Final = 1

_SYLLABLES: Final = tuple(consonant + vowel for consonant in "bdfgklmnprtvz" for vowel in "aiou")
#: No English suffix ends in one of these after a vowel of ours, so that a word is its own stem.
_ENDINGS: Final = "bgkp"
_VOCABULARY: Final = 200_000
_ZIPF_SHIFT: Final = 30
_TOPIC_WORDS: Final = 300
_TOPIC_SHARE: Final = 0.3
_MOST_TOPICS: Final = 1000
_CHUNKS_PER_TOPIC: Final = 50
_TEXT_WORDS: Final = (60, 180)
_TITLE_WORDS: Final = 5
_HEADING_WORDS: Final = 3
#: Standard deviation of the i-th component: (i + shift) ** -power. Compared with 2,466 passages of technical
#: documentation under bge-small: participation ratio 55 there and 53 here, local dimension 16 to 19 and 10 to 19.
_SPECTRUM_SHIFT: Final = 10
_SPECTRUM_POWER: Final = 0.75


@dataclass(frozen=True, slots=True)
class SyntheticDocument:
    """A document of up to four chunks under one heading."""

    title: str
    heading: str
    texts: tuple[str, ...]
    #: Unit vectors, shape (len(texts), DIM).
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Synthesis:
    """What all documents of a seed share: the words, how common each is, and the topics."""

    seed: int
    vocabulary: NDArray[np.object_]
    #: Probability that a word is this one or a commoner one, shape (words,).
    cumulative: NDArray[np.float64]
    #: Places in the vocabulary, shape (topics, words of a topic).
    topic_words: NDArray[np.int64]
    #: Shape (topics, DIM), not of unit length.
    topic_centres: NDArray[np.float32]

    def documents(self, connection: int, chunks: int) -> Iterator[SyntheticDocument]:
        """Yield the documents of the connection with this number, `chunks` chunks in all."""
        rng = np.random.default_rng([self.seed, SYNTHESIS_VERSION, connection])
        for first in range(0, chunks, CHUNKS_PER_DOCUMENT):
            yield self._document(rng, min(CHUNKS_PER_DOCUMENT, chunks - first))

    def _document(self, rng: np.random.Generator, chunks: int) -> SyntheticDocument:
        topic = int(rng.integers(len(self.topic_words)))
        lengths = rng.integers(*_TEXT_WORDS, size=chunks, endpoint=True).tolist()
        words = iter(self._words(rng, topic, _TITLE_WORDS + _HEADING_WORDS + sum(lengths)))
        title, heading, *texts = (
            " ".join(islice(words, length)) for length in (_TITLE_WORDS, _HEADING_WORDS, *lengths)
        )
        return SyntheticDocument(title, heading, tuple(texts), unit(self.topic_centres[topic] + noise(rng, chunks)))

    def _words(self, rng: np.random.Generator, topic: int, count: int) -> list[str]:
        """Return running words: some are the topic's own, the others anyone's."""
        common = _zipf(rng, self.cumulative, count)
        own = self.topic_words[topic, rng.integers(_TOPIC_WORDS, size=count)]
        words: list[str] = self.vocabulary[np.where(rng.random(count) < _TOPIC_SHARE, own, common)].tolist()
        return words


def synthesis(*, chunks: int, seed: int) -> Synthesis:
    """Return what `chunks` chunks of synthetic documents are made from."""
    rng = np.random.default_rng([seed, SYNTHESIS_VERSION])
    topics = min(_MOST_TOPICS, chunks // _CHUNKS_PER_TOPIC)
    weights = 1 / (np.arange(_VOCABULARY) + 1 + _ZIPF_SHIFT)
    cumulative = np.cumsum(weights / weights.sum())
    return Synthesis(
        seed=seed,
        vocabulary=np.array([word(place) for place in range(_VOCABULARY)], dtype=np.object_),
        cumulative=cumulative,
        topic_words=_zipf(rng, cumulative, (topics, _TOPIC_WORDS)),
        topic_centres=noise(rng, topics),
    )


def word(place: int) -> str:
    """Return the word at a place of the vocabulary, three syllables and an ending: "bababab", "bibabab" ..."""
    size = len(_SYLLABLES)
    rest, first = divmod(place, size)
    rest, second = divmod(rest, size)
    ending, third = divmod(rest, size)
    return _SYLLABLES[first] + _SYLLABLES[second] + _SYLLABLES[third] + _ENDINGS[ending]


def noise(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    """Return random vectors of length about 1 with the spectrum of embeddings, shape (count, DIM)."""
    spectrum = (np.arange(DIM) + _SPECTRUM_SHIFT) ** -_SPECTRUM_POWER
    return rng.standard_normal((count, DIM), dtype=np.float32) * (spectrum / np.linalg.norm(spectrum)).astype(
        np.float32
    )


def unit(vectors: NDArray[np.float32]) -> Vector:
    """Return the vectors at length 1, shape unchanged."""
    scaled: Vector = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return scaled


def _zipf(rng: np.random.Generator, cumulative: NDArray[np.float64], shape: int | tuple[int, int]) -> NDArray[np.int64]:
    """Return random places of the vocabulary, each as often as its word."""
    places = np.searchsorted(cumulative, rng.random(shape))
    return np.minimum(places, len(cumulative) - 1)
