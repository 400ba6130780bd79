"""The nearest route of a question: centroids of example sentences, trained in milliseconds. Pure.

The mean of all examples is subtracted first: otherwise all short English sentences are similar.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from corecube.data import read_toml
from retrieval.encoders.pooling import unit_length
from retrieval.engine.types import MemoryType, Vector

#: Routes of questions that need no search; admins add examples to the last one.
SKIP_ROUTES: Final = ("arithmetic", "formatting", "greeting", "translation", "skip")
SEARCH_ROUTE: Final = "search"  #: Questions that resemble a skip route but need a search.
ROUTES: Final = (*SKIP_ROUTES, *MemoryType, SEARCH_ROUTE)

_TYPES: Final = frozenset(it.value for it in MemoryType)

Examples = Mapping[str, Sequence[str]]  #: Sentences by route.


@cache
def shipped_examples() -> Examples:
    """Return the shipped sentences."""
    tables = read_toml("retrieval.presets.helix.router", "examples.toml")
    return {route: tuple(texts) for table in tables.values() for route, texts in table.items()}


def with_more(examples: Examples, more: Iterable[tuple[str, str]]) -> Examples:
    """Return examples with further ones, (route, text) each."""
    found = {route: list(texts) for route, texts in examples.items()}
    for route, text in more:
        found.setdefault(route, []).append(text)
    return found


def version_of(examples: Examples) -> str:
    """Return a fingerprint of all sentences and routes, independent of their order."""
    lines = sorted((route, text) for route, texts in examples.items() for text in texts)
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Likeness:
    """A question's similarity to the routes: cosines with their centroids, -1 to 1, best first."""

    by_route: Mapping[str, float]

    @property
    def nearest(self) -> str:
        """The nearest route; empty without routes."""
        return next(iter(self.by_route), "")

    def skip(self, *, minimum: float, margin: float) -> str:
        """Return the nearest skip route with at least this similarity and this margin over every other route.

        Empty for none: in doubt the question is searched.
        """
        skips = {route: it for route, it in self.by_route.items() if route in SKIP_ROUTES}
        others = [it for route, it in self.by_route.items() if route not in SKIP_ROUTES]
        best = next(iter(skips), "")
        if not best or skips[best] < minimum or skips[best] - max(others, default=-1.0) < margin:
            return ""
        return best

    def memory_type(self, *, minimum: float) -> MemoryType | None:
        """Return the memory type of the nearest route with at least this similarity; None for none."""
        found = self.nearest
        return MemoryType(found) if found in _TYPES and self.by_route[found] >= minimum else None


@dataclass(frozen=True, slots=True)
class Router:
    """Trained routes of one model."""

    routes: tuple[str, ...]
    centroids: NDArray[np.float32]  #: Unit vectors, shape (routes, dim).
    common: Vector  #: The mean of all examples, shape (dim,).
    version: str = ""

    @classmethod
    def trained(cls, examples: Mapping[str, NDArray[np.float32]], *, version: str = "") -> Self:
        """Return the router of examples' unit vectors by route, shape (n, dim) each; expects a sentence somewhere."""
        known = {route: vectors for route, vectors in examples.items() if len(vectors)}
        common = np.concatenate(list(known.values())).mean(axis=0)
        centroids = np.stack([unit_length(unit_length(vectors - common).mean(axis=0)) for vectors in known.values()])
        return cls(tuple(known), centroids, common, version)

    def likeness(self, vector: Vector) -> Likeness:
        """Return the similarity of a question's unit vector to each route."""
        cosines = self.centroids @ unit_length(vector - self.common)
        order = sorted(range(len(self.routes)), key=lambda place: (-cosines[place], self.routes[place]))
        return Likeness({self.routes[place]: float(cosines[place]) for place in order})


@dataclass(frozen=True, slots=True)
class RouterSource:
    """Provides the router of an installation's model and examples."""

    get: Callable[[], Router | None]  #: Returns None while the routes are being trained.
