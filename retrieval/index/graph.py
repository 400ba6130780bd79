"""What the expansion reads from the graph of names. Every read takes the scope; both ends of a link are in it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from time import monotonic
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from corecube.scope import AccessScope
from retrieval.engine.caches import RecentCache
from retrieval.engine.types import ChunkId, Vector
from retrieval.graph.links import MAX_SHARING, Holder, Meeting, SeedText, Stated, StatedKind
from retrieval.graph.mentions import Mentions
from retrieval.graph.question import KnownName
from retrieval.graph.spans import number_of
from retrieval.index.reading import fetch, read, vector_text
from retrieval.index.statements import prepared
from retrieval.index.store import VectorIndex, vectors_of

_NAMES: Final = prepared("graph_names")
_NAMES_OF: Final = prepared("graph_names_of")
_HUBS: Final = prepared("graph_hubs")
_WORDS: Final = prepared("graph_words")
_COMMON_PHRASE: Final = prepared("graph_common")
_SEEDS: Final = prepared("graph_seeds")
_EDGES: Final = prepared("graph_edges")
_COMMON_KEYS: Final = prepared("graph_common_keys")
_LIKENESS: Final = prepared("graph_likeness")
_SAMPLED: Final = prepared("graph_sample")
_BEARERS_ASKED: Final = 20  #: Documents per name in a question, in addition to those that the legs found.
#: Chunks of a document that its links start from, and that it is entered by, beside those that the legs found.
_LEADING_SEED: Final = 4
_LEADING_TARGET: Final = 24
_HOLDERS: Final = 3 * MAX_SHARING  #: A phrase in more chunks than this counts as one in more than eight documents.
_COMMON: Final = 2000  #: Chunks in scope from which on a phrase is not looked up: it is shared by too many.
_SEARCHED: Final = 2000  #: Minimum number of chunks with all words of a phrase that are searched for it.
_SAMPLE: Final = 600
_MAX_SAMPLED: Final = 100
_SHORTEST: Final = 1e-9  #: Length below which a vector counts as 0.
_samples: Final = RecentCache[NDArray[np.float32]](entries=32, seconds=60)  #: Half a MB each.
_common_of: Final = RecentCache[frozenset[int]](entries=32, seconds=60)
#: Without this the planner looks through the table for a name that it takes to be common, or for many names.
_BY_INDEX: Final = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}
_SEED, _NAME, _HOLDER = "seed", "name", "holder"


@dataclass(frozen=True, slots=True)
class Names:
    """The possible names in a question, and all names of the documents that the legs found."""

    asked: tuple[KnownName, ...] = ()
    of_found: Mapping[UUID, tuple[str, ...]] = field(default_factory=dict)
    is_cut: bool = False  #: More documents bear one of the names than were read.


@dataclass(frozen=True, slots=True)
class Subgraph:
    """The seeds' texts and what they are connected with by a key."""

    seeds: tuple[SeedText, ...] = ()
    names: tuple[KnownName, ...] = ()
    holders: tuple[Holder, ...] = ()
    stated: tuple[Meeting, ...] = ()  #: Links that the seeds state, with the documents that they lead to.
    size: int = 0
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Near:
    """How near a chunk is to the question, and to the question without its names."""

    chunk: ChunkId
    cosine: float
    z: float  #: In standard deviations above the scope's mean.


@dataclass(frozen=True, slots=True)
class Likeness:
    """How near chunks are to the question, and the chunks of the scope in the mean."""

    chunks: tuple[Near, ...] = ()
    mean_cosine: float | None = None  #: Of a sample of the scope; None without one.


def names(
    keys: Sequence[str], documents: Sequence[UUID], *, scope: AccessScope, timeout_seconds: float | None = None
) -> Names:
    """Return the names in scope that these keys are, and every name of the documents.

    `timeout_seconds` is for each of the two.
    """
    numbers, asked, of_documents = [number_of(key) for key in keys], [], []
    if keys:
        parameters = {"keys": numbers, "limit": _BEARERS_ASKED, "scope": scope.connection_ids}
        rows = read(_NAMES, parameters, timeout_seconds=timeout_seconds, settings=_BY_INDEX)
        asked = list(chain.from_iterable(map(_bearers, rows)))
    if documents:
        parameters = {"documents": list(documents), "scope": scope.connection_ids}
        of_documents = read(_NAMES_OF, parameters, timeout_seconds=timeout_seconds)
        asked += [_known(row) for row in of_documents if row["key"] in numbers]
    distinct = {(it.document_id, it.text): it for it in asked}
    bearers = Counter(it.key for it in distinct.values())
    of_found: dict[UUID, list[str]] = {}
    for row in of_documents:
        of_found.setdefault(row["document_id"], []).append(row["name"])
    return Names(
        tuple(distinct.values()),
        {document: tuple(found) for document, found in of_found.items()},
        is_cut=max(bearers.values(), default=0) >= _BEARERS_ASKED,
    )


def hubs(keys: Sequence[str], *, limit: int, scope: AccessScope, timeout_seconds: float | None = None) -> set[str]:
    """Return the keys of more than `limit` chunks in scope."""
    numbers = {number_of(key): key for key in keys}
    parameters = {"keys": list(numbers), "limit": limit + 1, "scope": scope.connection_ids}
    rows = read(_HUBS, parameters, timeout_seconds=timeout_seconds, settings=_BY_INDEX)
    return {numbers[row["key"]] for row in rows if row["chunks"] > limit}


def common_phrases(
    phrases: Mapping[str, str],
    *,
    languages: Sequence[str],
    limit: int,
    scope: AccessScope,
    timeout_seconds: float | None = None,
) -> set[str]:
    """Return the keys of the phrases that more than `limit` chunks in scope contain, in any case.

    `phrases` are names by key, compared as full text is, one after the other: there are few. The chunks of documents
    with the name do not count. `timeout_seconds` is for each of them.
    """
    common = set()
    for (key, phrase), language in product(phrases.items(), languages):
        parameters = {
            "key": number_of(key),
            "phrase": phrase,
            "language": language,
            "searched": max(_SEARCHED, limit + 1),
            "limit": limit + 1,
            "scope": scope.connection_ids,
        }
        ((chunks,),) = fetch(_COMMON_PHRASE, parameters, timeout_seconds=timeout_seconds, settings=_BY_INDEX)[1]
        if chunks > limit:
            common.add(key)
    return common


def word_counts(
    words: Sequence[str], *, languages: Sequence[str], scope: AccessScope, timeout_seconds: float | None = None
) -> dict[str, int]:
    """Return in how many chunks in scope each word occurs, in any form; stop words are missing."""
    parameters = {"words": list(words), "languages": list(languages), "scope": scope.connection_ids}
    counts: dict[str, int] = {}
    for row in read(_WORDS, parameters, timeout_seconds=timeout_seconds):
        counts[row["word"]] = max(row["chunks"], counts.get(row["word"], 0))
    return counts


def subgraph(
    documents: Sequence[UUID],
    chunks: Iterable[ChunkId],
    *,
    scope: AccessScope,
    with_shared_names: bool,
    limit: int,
    timeout_seconds: float | None = None,
) -> Subgraph:
    """Return what seeds are connected with, in two SELECTs: the first chunks of each of the documents, and `chunks`.

    At most `limit` of all together: seeds, then links that they state, names, and holders of their phrases.
    """
    given, begun = list(chunks), monotonic()
    parameters = {
        "documents": list({*documents, *(chunk.document_id for chunk in given)}),
        "begun": list(documents),
        **_chunk_parameters(given),
        "leading": _LEADING_SEED,
        "limit": limit + 1,
        "scope": scope.connection_ids,
    }
    rows = read(_SEEDS, parameters, timeout_seconds=timeout_seconds)
    seeds = tuple(_seed(row) for row in rows[:limit] if row["kind"] == _SEED)
    stated = [row for row in rows[:limit] if row["kind"] != _SEED]
    spoken = dict.fromkeys(key for seed in seeds for key in seed.mentions.keys)
    phrases = {key for seed in seeds for key in seed.mentions.keys[: seed.mentions.phrases]}
    parameters = {
        "keys": list(spoken | dict.fromkeys(row["key"] for row in stated)),
        "phrases": list(phrases - _common_keys(scope, timeout_seconds)) if with_shared_names else [],
        "sharing": MAX_SHARING,
        "holders": _HOLDERS + 1,
        "limit": limit + 1,
        "scope": scope.connection_ids,
    }
    left = None if timeout_seconds is None else timeout_seconds - (monotonic() - begun)
    ends = read(_EDGES, parameters, timeout_seconds=left, settings=_BY_INDEX) if parameters["keys"] else []
    bearers = {row["key"]: _bearers(row) for row in ends[:limit] if row["kind"] == _NAME}
    names = tuple(name for key, of_key in bearers.items() if key in spoken for name in of_key)
    holders = tuple(
        Holder(document, ordinal, row["key"])
        for row in ends[:limit]
        if row["kind"] == _HOLDER
        for document, ordinal in zip(row["documents"], row["ordinals"], strict=True)
    )
    meetings = tuple(_meeting(row, bearer) for row in stated for bearer in bearers.get(row["key"], ()))
    size = len(seeds) + len(meetings) + len(names) + len(holders)
    seeds, meetings, names, holders = _first(limit, seeds, meetings, names, holders)
    is_cut = max(len(rows), len(ends), size) > limit
    return Subgraph(seeds, names, holders, meetings, size=min(size, limit), is_cut=is_cut)


def _first(limit: int, *groups: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield each group, cut to what is left of `limit` after those before."""
    for group in groups:
        yield group[:limit]
        limit -= len(group[:limit])


def likeness(  # noqa: PLR0913 -- keyword-only but for two, each a plain fact
    documents: Sequence[UUID],
    chunks: Iterable[ChunkId],
    *,
    relation: Vector,
    question: Vector,
    index: VectorIndex,
    scope: AccessScope,
    timeout_seconds: float | None = None,
) -> Likeness:
    """Return how near the documents' first chunks, and `chunks`, are to the question, with and without its names."""
    parameters = {
        "documents": list(documents),
        **_chunk_parameters(chunks),
        "leading": _LEADING_TARGET,
        "relation": vector_text(relation),
        "question": vector_text(question),
        "index": index.id,
        "scope": scope.connection_ids,
    }
    rows = read(_LIKENESS, parameters, timeout_seconds=timeout_seconds)
    sample = _sample(index, scope, timeout_seconds)
    relations, cosines = sample @ relation, sample @ question
    mean, deviation = (float(relations.mean()), float(relations.std())) if len(sample) else (0.0, 0.0)
    if not deviation:
        mean, deviation = 0.0, 1.0
    found = (Near(_chunk(row), float(row["cosine"]), (row["relation"] - mean) / deviation) for row in rows)
    return Likeness(tuple(found), float(cosines.mean()) if len(sample) else None)


def forget_samples() -> None:
    """Clear the cached samples and common keys."""
    _samples.clear()
    _common_of.clear()


def _common_keys(scope: AccessScope, timeout_seconds: float | None) -> frozenset[int]:
    """Return the keys that too many chunks in scope hold for their phrases to be looked up, the same for a minute."""
    given = tuple(scope.connection_ids)
    if (known := _common_of.get(given)) is not None:
        return known
    parameters = {"minimum": _COMMON, "scope": scope.connection_ids}
    found = fetch(_COMMON_KEYS, parameters, timeout_seconds=timeout_seconds)[1]
    return _common_of.put(given, frozenset(key for (key,) in found))


def _sample(index: VectorIndex, scope: AccessScope, timeout_seconds: float | None) -> NDArray[np.float32]:
    """Return unit vectors of a sample of the scope, shape (n, dim), the same for a minute."""
    sampled = scope.connection_ids[:_MAX_SAMPLED]
    key = (index.id, *sampled)
    if (known := _samples.get(key)) is not None:
        return known
    found = []
    for connection_id in sampled:
        parameters = {
            "index": index.id,
            "connection": connection_id,
            "sample": max(1, _SAMPLE // len(sampled)),
            "scope": scope.connection_ids,
        }
        found += fetch(_SAMPLED, parameters, timeout_seconds=timeout_seconds, settings=_BY_INDEX)[1]
    vectors = vectors_of([vector for (vector,) in found], index.dim)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return _samples.put(key, vectors / np.maximum(lengths, _SHORTEST))


def _known(row: Mapping[str, Any]) -> KnownName:
    return KnownName(row["document_id"], row["name"], row["quality"])


def _seed(row: Mapping[str, Any]) -> SeedText:
    return SeedText(_chunk(row), row["text"], Mentions(tuple(row["keys"]), row["phrases"]), tuple(row["section"]))


def _bearers(row: Mapping[str, Any]) -> list[KnownName]:
    documents = map(UUID, row["documents"])
    return list(map(KnownName, documents, row["names"], row["qualities"]))


def _meeting(row: Mapping[str, Any], bearer: KnownName) -> Meeting:
    stated = Stated(StatedKind(row["kind"]), row["key"], row["name"], row["text"])
    return Meeting(_chunk(row), bearer.document_id, stated, bearer.quality)


def _chunk(row: Mapping[str, Any]) -> ChunkId:
    return ChunkId(row["document_id"], row["ordinal"])


def _chunk_parameters(chunks: Iterable[ChunkId]) -> dict[str, Any]:
    given = tuple(chunks)
    return {
        "chunk_documents": [chunk.document_id for chunk in given],
        "chunk_ordinals": [chunk.ordinal for chunk in given],
    }
