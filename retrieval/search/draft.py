"""Two searches for one question as one: their hits and passages by team draft."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

from retrieval.engine.about import About, StageGroup
from retrieval.engine.state import Note, SearchState, Span
from retrieval.engine.types import ChunkId, Passage, Ranking
from retrieval.ranking.interleaving import Team, coin, team_draft
from retrieval.ranking.measures import MEASURED_DEPTH
from retrieval.stages.assemble import header

INTERLEAVE_SPAN: Final = "interleave"  #: The span of the second search and of merging both.
INTERLEAVE: Final = About(
    "interleaved",
    "Searches with the other preset of an experiment too, and merges both by team draft.",
    group=StageGroup.PACK,
    notes={"interleaved": "interleaved", "not_interleaved": "not interleaved"},
    badges=frozenset({"interleaved", "not_interleaved"}),
)


@dataclass(frozen=True, slots=True)
class Draft:
    """How a search of an experiment was answered."""

    experiment: UUID
    seed: int
    labels: tuple[str, str]  #: Of both sides: "corecube 1", "helix 2".
    #: The best hits in order: the hash of the text, and the team; none where only one side answered.
    teams: Mapping[ChunkId, tuple[str, Team | None]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return what a stored trace says of it."""
        teams = [[str(chunk), content_hash, team] for chunk, (content_hash, team) in self.teams.items()]
        return {"seed": self.seed, "a": self.labels[0], "b": self.labels[1], "teams": teams}


def interleaved(first: SearchState, second: SearchState, draft: Draft, *, seconds: float) -> SearchState:
    """Return the first search with the hits and passages of both; `seconds` is what the second one took.

    Passages are those hits that their own side packed, in the tokens of the larger pack; the neighbours of a hit are
    left out. The confidence is the higher one: the best passages of both sides are there.
    """
    length = max(first.top_k, MEASURED_DEPTH)
    own = {
        team: {hit.chunk_id: hit for hit in state.hits[:length]} for team, state in ((Team.A, first), (Team.B, second))
    }
    teams = team_draft(tuple(own[Team.A]), tuple(own[Team.B]), begins=coin(draft.seed), length=length)
    hits = tuple(
        own[team][chunk] if team else own[Team.A].get(chunk) or own[Team.B][chunk] for chunk, team in teams.items()
    )
    facts = {hit.chunk_id: hit.chunk.content_hash for hit in hits}
    draft = replace(draft, teams={chunk: (facts[chunk], team) for chunk, team in teams.items()})
    counts = {team: sum(it is team for it in list(teams.values())[: first.top_k]) for team in Team}
    text = (
        f"Team draft with the seed {draft.seed}: {counts[Team.A]} from A, {draft.labels[0]}, "
        f"and {counts[Team.B]} from B, {draft.labels[1]}."
    )
    judged = [it.answerability for it in (first, second) if it.answerability]
    return replace(
        _noted(first, draft, Note("interleaved", text), seconds=seconds, left=hits),
        hits=hits,
        passages=_packed(hits[: first.top_k], teams, first, second),
        answerability=max(judged, key=lambda it: it.confidence, default=None),
    )


def alone(state: SearchState, draft: Draft, *, seconds: float) -> SearchState:
    """Return the search of the only side that answered as it should; `seconds` is what the other one took."""
    text = f"Only one of {draft.labels[0]} and {draft.labels[1]} answered in full: the question does not count."
    return _noted(state, draft, Note("not_interleaved", text), seconds=seconds, left=state.hits)


def _noted(state: SearchState, draft: Draft, note: Note, *, seconds: float, left: Ranking) -> SearchState:
    span = Span(INTERLEAVE_SPAN, seconds, len(state.hits), len(left), notes=(note,), left=left)
    return replace(state, trace=(*state.trace, span), parts=state.parts_with(draft))


def _packed(
    hits: Ranking, teams: Mapping[ChunkId, Team | None], first: SearchState, second: SearchState
) -> tuple[Passage, ...]:
    packs = {
        team: {it.hit.chunk_id: it for it in state.passages} for team, state in ((Team.A, first), (Team.B, second))
    }
    left = max(sum(it.token_count for it in state.passages) for state in (first, second))
    packed: list[Passage] = []
    for hit in hits:
        team = teams[hit.chunk_id]
        found: Sequence[Passage] = [it for of in ([team] if team else Team) if (it := packs[of].get(hit.chunk_id))]
        if found and found[0].token_count <= left:
            number = len(packed) + 1
            left -= found[0].token_count
            packed.append(replace(found[0], number=number, header=header(number, hit, first.scope), role=""))
    return tuple(packed)
