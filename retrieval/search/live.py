"""Searching for people and their programs: while an experiment runs, two presets answer a share of the questions."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from time import perf_counter
from typing import Final

from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from corecube.access import Principal
from corecube.errors import CoreCubeError, OverloadedError
from corecube.overload import mark_started
from retrieval.engine.deadline import Deadline
from retrieval.engine.pipeline import HYBRID
from retrieval.index.reading import CompiledQuery, bounded
from retrieval.models import Experiment
from retrieval.presets.catalog import DEFAULT_PRESET
from retrieval.search.draft import Draft, alone, interleaved
from retrieval.search.outcome import SearchOutcome
from retrieval.search.prepare import PreparedSearch
from retrieval.search.record import record
from retrieval.search.request import Contender, SearchRequest
from retrieval.search.service import search, unrecorded

_SEEDS: Final = 2**32
_RECORD_SECONDS: Final = 2.0  #: Time limit of storing the trace.


def live_search(request: SearchRequest, *, principal: Principal, through_api: bool = False) -> SearchOutcome:
    """Search as `search` does; while an experiment runs, some plain searches with the default preset are interleaved.

    They take as long as two searches. If one side fails, or uses a fallback, the other one answers. Raises what
    `search` raises.
    """
    experiment = _experiment_for(request, principal, through_api=through_api)
    if experiment is None:
        return search(request, principal=principal)
    return _answered_by_both(request, principal, experiment)


def contenders_of(experiment: Experiment) -> tuple[Contender, Contender]:
    """Return both sides of an experiment."""
    return (
        Contender(experiment.preset_a, experiment.number_a, experiment.values_a),
        Contender(experiment.preset_b, experiment.number_b, experiment.values_b),
    )


def end_finished() -> None:
    """End the running experiment if it is over."""
    is_over = Q(ends_at__lte=timezone.now()) | Q(questions__gte=F("max_questions"))
    Experiment.objects.filter(is_over, is_running=True).update(is_running=False, ended_at=timezone.now())


def _experiment_for(request: SearchRequest, principal: Principal, *, through_api: bool) -> Experiment | None:
    """Return the experiment that a search is a question of, which is counted; None for most searches."""
    if not _is_plain(request) or principal.actor is not None or not settings.CORECUBE_KEEP_QUERY_TEXT:
        return None
    if _running().first() is None:
        return None
    end_finished()
    found = Experiment.objects.filter(is_running=True).first()
    if found is None or (through_api and not found.includes_api) or secrets.randbelow(100) >= found.share:
        return None
    if not (principal.may_use(found.preset_a) and principal.may_use(found.preset_b)):
        return None
    open_one = Experiment.objects.filter(Q(max_questions=None) | Q(questions__lt=F("max_questions")), pk=found.pk)
    return found if open_one.filter(is_running=True).update(questions=F("questions") + 1) else None


@cache
def _running() -> CompiledQuery:
    return CompiledQuery(Experiment.objects.filter(is_running=True).order_by().values_list("pk"))


def _is_plain(request: SearchRequest) -> bool:
    """Return whether a search runs the default preset as it is."""
    is_changed = request.overrides or request.draft or request.values is not None or request.mode != HYBRID
    is_special = request.section or request.variants or request.is_queued or request.judge_model
    return request.preset == DEFAULT_PRESET and not (is_changed or is_special)


@dataclass(frozen=True, slots=True)
class _Half:
    """The search of one side, or why there is none."""

    seconds: float
    outcome: SearchOutcome | None = None
    prepared: PreparedSearch | None = None
    error: CoreCubeError | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the side answered as it should: in time, and without a fallback."""
        found = self.outcome
        return found is not None and found.state.access_checked and not found.state.degraded


def _half(request: SearchRequest, contender: Contender, principal: Principal) -> _Half:
    started = perf_counter()
    asked = replace(request, preset=contender.preset, contender=contender)
    try:
        outcome, prepared = unrecorded(asked, principal=principal)
    except CoreCubeError as error:
        return _Half(perf_counter() - started, error=error)
    return _Half(perf_counter() - started, outcome, prepared)


def _answered_by_both(request: SearchRequest, principal: Principal, experiment: Experiment) -> SearchOutcome:
    contenders = contenders_of(experiment)
    first = _half(request, contenders[0], principal)
    if isinstance(first.error, OverloadedError):
        raise first.error
    halves = (first, _half(request, contenders[1], principal))
    draft = Draft(experiment.pk, secrets.randbelow(_SEEDS), (contenders[0].label, contenders[1].label))
    outcome, searches = _merged(halves, draft)
    # The first side's own deadline can be over by now.
    with bounded(Deadline.after(_RECORD_SECONDS)):
        outcome = record(outcome, *searches)
    mark_started()
    return outcome


def _merged(halves: Sequence[_Half], draft: Draft) -> tuple[SearchOutcome, Sequence[PreparedSearch]]:
    """Return what people get, and the searches that it is from, its own one first; raise the first side's error."""
    # A side that answers as it should comes before one that does not.
    best, other = sorted(halves, key=lambda it: (it.outcome is None, not it.is_whole))
    if best.outcome is None or best.prepared is None:
        raise best.error or CoreCubeError
    searches = [it.prepared for it in (best, other) if it.prepared]
    if best.is_whole and other.outcome is not None and other.is_whole:
        state = interleaved(best.outcome.state, other.outcome.state, draft, seconds=other.seconds)
    else:
        state = alone(best.outcome.state, draft, seconds=other.seconds)
    return replace(best.outcome, state=state), searches
