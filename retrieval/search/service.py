"""Searching as everyone does it: pages, API, commands and evaluation all go through `search`."""

import uuid

from corecube.access import Principal
from corecube.overload import mark_started
from retrieval.index.reading import bounded
from retrieval.ranking.score_rounding import round_for_viewer
from retrieval.search import runtime
from retrieval.search.outcome import SearchOutcome
from retrieval.search.prepare import PreparedSearch, prepare
from retrieval.search.record import record
from retrieval.search.request import SearchRequest, read
from retrieval.stages.resources import Resources


def run(prepared: PreparedSearch) -> SearchOutcome:
    """Return what the pipeline makes of a prepared search; raise StageError."""
    preset, configuration = prepared.allowed.preset, prepared.configuration
    version = preset.version(prepared.pipeline, configuration.config)
    state = round_for_viewer(prepared.pipeline.run(prepared.state))
    return SearchOutcome(uuid.uuid4(), preset, version, state, configuration, prepared.resources)


def search(request: SearchRequest, *, principal: Principal, resources: Resources | None = None) -> SearchOutcome:
    """Search as `principal` and store the trace; without `resources`, with the installation's own.

    A trace that the store does not take in time is given up. Raises EmptyQueryError, QueryTooLongError,
    OverloadedError, UnknownPresetError, UnknownModeError, UnknownVersionError, UnknownConnectionError,
    NotPermittedError, OverridesError, ModelMissingError, StageError, DatabaseUnavailableError, or SearchTimeoutError
    where the time is up before it is known what may be searched.
    """
    allowed = read(request, principal)
    admission = resources.admission if resources else runtime.admission()
    with admission.query(budget_seconds=allowed.budget_seconds) as waited_seconds:
        prepared = prepare(allowed.after(waited_seconds), resources)
        with bounded(prepared.state.deadline):
            outcome = record(run(prepared), prepared)
    mark_started()
    return outcome
