"""What a question says of the graph before anything is found: the names in it, and what it asks of them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrieval.engine.types import Vector
    from retrieval.graph.question import KnownName


@dataclass(frozen=True, slots=True)
class AskedNames:
    """Names in scope that a question's words may be, and the vector of the question without them."""

    known: "Sequence[KnownName]" = ()
    #: More documents bear one of the names than were read.
    is_cut: bool = False
    #: Keys whose chunks were counted, and those of them that stand in too many to mean one document.
    counted: frozenset[str] = frozenset()
    hubs: frozenset[str] = frozenset()
    #: The question less its names; empty where it has none, or is nothing else.
    rest: str = ""
    #: The rest's unit vector; None where there is no rest, or the model failed.
    vector: "Vector | None" = None
