"""What the preset `contextpack` adds to a search's state: frozen, free of Django."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from retrieval.engine.types import ChunkId, Ranking
from retrieval.index.types import Neighbour


@dataclass(frozen=True, slots=True)
class Relevance:
    """What a language model judged of one candidate."""

    #: By the rubric, 0 to 100.
    score: float
    #: Whether the candidate by itself answers the question.
    is_answering: bool
    #: What it rests on, in the document's words: shown with the search, never stored or logged.
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Judgments:
    """What was judged of the candidates."""

    #: The candidates by those judgments, or by what stood in for them, before all but the best were dropped.
    candidates: Ranking = ()
    #: What a language model judged, in its own words; empty where none did.
    relevance: Mapping[ChunkId, Relevance] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands around the hits that are packed."""

    neighbours: tuple[Neighbour, ...] = ()
