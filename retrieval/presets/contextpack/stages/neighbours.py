"""Adding the neighbours of the packed hits."""

from dataclasses import asdict, dataclass, replace
from typing import ClassVar

from corecube.errors import CoreCubeError
from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.engine.tunables import Tunables, costly
from retrieval.errors import SearchTimeoutError
from retrieval.index.neighbours import neighbours_of
from retrieval.index.types import Neighbour, Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighboursConfig(Tunables, label="Neighbours"):
    """Neighbouring chunks that are packed with a primary hit."""

    parents: int = costly(1, low=0, high=1, help="1 includes the rest of the section, 0 leaves it out.")
    same_page: int = costly(
        1, low=0, high=10, unit="chunks", help="Chunks on each side of a hit, on its page or in its section."
    )
    cross_page: int = costly(
        2, low=0, high=20, unit="chunks", help="Nearest chunks on the page before and the page after, together."
    )


@dataclass(frozen=True, slots=True)
class FoundNeighbours:
    """The neighbours of the packed hits."""

    neighbours: tuple[Neighbour, ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbours(BaseStage, name="neighbours", needs={"hits", "facts", "order", "scope"}, gives={"neighbours"}):
    """Read the rest of the primary hits' sections, the adjacent chunks and those of adjacent pages, in scope.

    The request's minimum quality applies to them, its content hint does not: the context of a hit is mostly of another
    kind.
    """

    config: NeighboursConfig
    top: int
    min_quality: float  #: Chunks of a lower quality are boilerplate.

    about: ClassVar[About] = About(
        "neighbours",
        "Reads the rest of the best hits' sections, and the chunks next to them and on adjacent pages.",
        group=StageGroup.PACK,
        unit="chunks",
        section="neighbours",
        left=lambda state: len(
            {it.hit.chunk_id for it in (state.part(FoundNeighbours) or FoundNeighbours()).neighbours}
        ),
        notes={
            "neighbours": "neighbours added",
            "neighbours_timeout": "neighbours timed out",
            "neighbours_failed": "neighbours not read",
        },
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the neighbours; without any, and with a note, where reading them failed."""
        primaries = state.hits[: min(self.top, state.top_k)]
        if not primaries:
            return state
        try:
            found = neighbours_of(
                primaries,
                reach=asdict(self.config),
                scope=state.scope,
                min_quality=max(self.min_quality, state.filter.min_quality),
                timeout_seconds=state.deadline.read_seconds,
            )
        except SearchTimeoutError:
            note = Note("neighbours_timeout", "Reading the neighbours of the hits timed out.", degraded=True)
            return state.noted(note)
        except CoreCubeError:
            note = Note("neighbours_failed", "The neighbours of the hits could not be read.", degraded=True)
            return state.noted(note)
        # The statement applies the scope; as for hits, it is checked again.
        allowed = tuple(it for it in found if state.scope.allows(it.hit.chunk.connection_id))
        counts = {
            relation: len({it.hit.chunk_id for it in allowed if it.relation is relation}) for relation in Relation
        }
        text = (
            f"{counts[Relation.PARENT]} chunks of their sections, {counts[Relation.SIBLING]} adjacent and "
            f"{counts[Relation.CROSS_PAGE]} across pages were added to {len(primaries)} hits."
        )
        notes = (*state.notes, Note("neighbours", text))
        return replace(state, parts=state.parts_with(FoundNeighbours(allowed)), notes=notes)
