"""An LRU cache of language models' scores. Pure."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from retrieval.engine.types import ChunkId
from retrieval.presets.contextpack.judge import Relevance

Relevances = Mapping[ChunkId, Relevance]


@dataclass(frozen=True, slots=True)
class RelevanceCache:
    """The scores of the `entries` prompts used last; thread-safe."""

    #: Up to some 31 KB each: 50 candidates, each with the longest evidence.
    entries: int
    _cached: OrderedDict[Hashable, Relevances] = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    def get(self, key: Hashable) -> Relevances | None:
        """Return the scores of a key; None on a miss."""
        with self._lock:
            found = self._cached.get(key)
            if found is not None:
                self._cached.move_to_end(key)
            return found

    def keep(self, key: Hashable, found: Relevances) -> None:
        """Store the scores of one prompt; the least recently used ones are evicted."""
        with self._lock:
            self._cached[key] = dict(found)
            self._cached.move_to_end(key)
            while len(self._cached) > self.entries:
                self._cached.popitem(last=False)

    def __len__(self) -> int:
        return len(self._cached)
