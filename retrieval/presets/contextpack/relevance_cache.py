"""What language models judged of candidates lately, kept in memory. Pure."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from retrieval.engine.types import ChunkId
from retrieval.presets.contextpack.judge import Relevance

Relevances = Mapping[ChunkId, Relevance]


@dataclass(frozen=True, slots=True)
class RelevanceCache:
    """What was used latest, at most `entries` prompts' worth of it; safe to use from several threads."""

    #: Up to some 31 KB each: 50 candidates, each with the longest evidence.
    entries: int
    _kept: OrderedDict[Hashable, Relevances] = field(default_factory=OrderedDict, init=False, repr=False, compare=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    def get(self, key: Hashable) -> Relevances | None:
        """Return what is kept under a key; None where nothing is."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, key: Hashable, found: Relevances) -> None:
        """Keep what was judged of one prompt's candidates; what was used longest ago goes."""
        with self._lock:
            self._kept[key] = dict(found)
            self._kept.move_to_end(key)
            while len(self._kept) > self.entries:
                self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)
