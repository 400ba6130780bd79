"""Searching as everyone does it: pages, API, commands and evaluation all go through `search`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, overload

from corecube import tracing
from corecube.access import Principal
from corecube.overload import mark_started
from retrieval.engine.ids import timed_id
from retrieval.engine.pipeline import Watch
from retrieval.engine.state import SearchState
from retrieval.engine.types import Hit, Ranking, ScoreType
from retrieval.index.reading import bounded
from retrieval.ranking.fusion import leg_of
from retrieval.ranking.signals import in_two_digits
from retrieval.search import runtime
from retrieval.search.outcome import SearchOutcome
from retrieval.search.prepare import PreparedSearch, prepare
from retrieval.search.record import record
from retrieval.search.request import SearchRequest, read
from retrieval.stages.resources import Resources

_BM25: Final = ScoreType.BM25.value
#: Parts of a score, and signals, into which a BM25 score goes.
_PARTS: Final = frozenset({"fused", "graph", "seat", _BM25})
_SIGNALS: Final = frozenset({"graph", "blend", "pooled"})
_DECIMALS: Final = 3


def round_for_viewer(state: SearchState) -> SearchState:
    """Return a finished search with rounded scores; unchanged for an admin, and where BM25 did not search.

    BM25 uses the fields' average lengths in the complete index, beyond the scope. The search ranks by exact scores;
    users who are no admins see BM25 scores with two digits, and what is computed from them with three decimals. Hits,
    order and ranks stay. A score is still the sum of its parts.
    """
    if state.is_admin or not any(leg_of(leg) == _BM25 for leg in state.rankings):
        return state
    # Some stages return the ranking object that they received.
    rounded: dict[int, Ranking] = {}

    def of(ranking: Ranking) -> Ranking:
        return rounded.setdefault(id(ranking), _RoundedRanking(ranking))

    return replace(
        state,
        hits=of(state.hits),
        passages=tuple(replace(passage, hit=_rounded_hit(passage.hit)) for passage in state.passages),
        rankings={leg: of(ranking) for leg, ranking in state.rankings.items()},
        trace=tuple(replace(span, left=of(span.left)) for span in state.trace),
    )


@dataclass(frozen=True, slots=True)
class _RoundedRanking(Sequence[Hit]):
    """A ranking that rounds its hits when they are read: a search has hundreds of them and mostly shows ten."""

    _exact: Ranking = field(repr=False)

    def __len__(self) -> int:
        return len(self._exact)

    @overload
    def __getitem__(self, place: int) -> Hit: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Hit, ...]: ...

    def __getitem__(self, place: int | slice) -> Hit | tuple[Hit, ...]:
        found = self._exact[place]
        return _rounded_hit(found) if isinstance(found, Hit) else tuple(map(_rounded_hit, found))


def _rounded_hit(hit: Hit) -> Hit:
    score, parts, signals, lifts = hit.score, hit.contributions, hit.signals, hit.lifts
    if not _PARTS.isdisjoint(parts):
        parts = _rounded(parts, _PARTS)
        score = math.fsum(parts.values())
    if hit.score_type is ScoreType.BM25:
        score = in_two_digits(hit.score)
    if not _SIGNALS.isdisjoint(signals):
        signals = _rounded(signals, _SIGNALS)
    if _BM25 in signals:
        signals = {**signals, _BM25: in_two_digits(signals[_BM25])}
    if lifts:
        lifts = tuple(replace(lift, amount=round(lift.amount, _DECIMALS)) for lift in lifts)
    if score == hit.score and parts is hit.contributions and signals is hit.signals and lifts is hit.lifts:
        return hit
    return Hit(
        hit.chunk_id, score, hit.score_type, hit.ranks, signals, parts, hit.matches, hit.facts, lifts, hit.provider
    )


def _rounded(values: Mapping[str, float], names: frozenset[str]) -> Mapping[str, float]:
    return {name: round(value, _DECIMALS) if name in names else value for name, value in values.items()}


def run(prepared: PreparedSearch, watch: Watch | None = None) -> SearchOutcome:
    """Return what the pipeline makes of a prepared search; raise StageError, or what `watch` raises."""
    preset, configuration = prepared.allowed.preset, prepared.configuration
    version = preset.version(prepared.pipeline, configuration.config)
    state = round_for_viewer(prepared.pipeline.run(prepared.state, watch))
    return SearchOutcome(timed_id(), preset, version, state, configuration, prepared.resources)


def search(
    request: SearchRequest, *, principal: Principal, resources: Resources | None = None, watch: Watch | None = None
) -> SearchOutcome:
    """Search as `principal` and store the trace; without `resources`, with the installation's own.

    `watch` follows the stages, and what it raises ends the search. A trace that the store does not take in time is
    given up. Raises EmptyQueryError, QueryTooLongError, OverloadedError, UnknownPresetError, UnknownModeError,
    UnknownVersionError, UnknownConnectionError, NotPermittedError, OverridesError, ModelMissingError, StageError,
    DatabaseUnavailableError, or SearchTimeoutError where the time is up before it is known what may be searched.
    """
    outcome, prepared = unrecorded(request, principal=principal, resources=resources, watch=watch)
    with bounded(prepared.state.deadline):
        outcome = record(outcome, prepared)
    mark_started()
    return outcome


def unrecorded(
    request: SearchRequest, *, principal: Principal, resources: Resources | None = None, watch: Watch | None = None
) -> tuple[SearchOutcome, PreparedSearch]:
    """Search as `search` does without storing the trace, and return what it ran with too."""
    allowed = read(request, principal)
    admission = resources.admission if resources else runtime.admission()
    with (
        tracing.span("search", corecube__preset=allowed.preset.name) as traced,
        admission.query(budget_seconds=allowed.budget_seconds) as waited_seconds,
    ):
        prepared = prepare(allowed.after(waited_seconds), resources)
        with bounded(prepared.state.deadline):
            outcome = run(prepared, watch)
        traced.set(
            corecube__search_id=str(outcome.id),
            corecube__waited_seconds=waited_seconds,
            corecube__hits=outcome.hit_count,
            corecube__degraded=len(outcome.state.degraded),
        )
    return outcome, prepared
