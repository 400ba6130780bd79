"""Sweeps over HTTP, for admins."""

from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import BaseModel, Field

from retrieval.admin.preset_versions import draft_of_best
from retrieval.api.evaluation import OBJECTIVES_HELP, DifferenceOut
from retrieval.api.question_sets import admin_of, set_of
from retrieval.api.schemas import CHANGE_REFUSALS, REFUSALS, StrictBody, filled
from retrieval.evaluation import sweeps
from retrieval.models import Sweep
from retrieval.presets.catalog import DEFAULT_PRESET
from retrieval.ranking.measures import CUTOFF, MEASURED_DEPTH, Objective
from retrieval.ranking.tuning import Range
from retrieval.tasks.evaluation_runs import wake_worker_on_commit

router = Router(tags=["evaluation"])


class RangeIn(StrictBody):
    """A setting to vary: values for a grid, or two bounds to draw between."""

    name: str = Field(max_length=80, description="Dotted, such as blend.dense.")
    values: list[float] = Field(default_factory=list, max_length=200)
    low: float = 0.0
    high: float = 0.0


class SweepIn(StrictBody):
    """What to try."""

    question_set: str = Field(max_length=50, description="The slug of a question set.")
    preset: str = DEFAULT_PRESET
    method: Literal["grid", "random"] = "grid"
    ranges: list[RangeIn] = Field(min_length=1, max_length=sweeps.MAX_SETTINGS)
    trials: int = Field(default=16, ge=1, le=sweeps.MAX_TRIALS, description="Configurations to draw at random.")
    measure: str = Field(default="ndcg", description=OBJECTIVES_HELP)
    cutoff: int = Field(default=CUTOFF, ge=1, le=MEASURED_DEPTH)
    max_p95_ms: float | None = Field(default=None, gt=0, le=600_000, description="Slower ones are not chosen.")


class SweepOut(BaseModel):
    """A sweep, and how far it is."""

    id: UUID
    question_set: str
    preset: str
    method: str
    ranges: list[dict[str, Any]]
    measure: str
    cutoff: int
    max_p95_ms: float | None
    status: str = Field(description="queued, running, done, failed or cancelled.")
    message: str = Field(description="Why it failed.")
    created_at: datetime
    finished_at: datetime | None
    measured: int = Field(description="Searches that have a result.")
    total: int = Field(description="Searches that it makes at most.")
    best: int | None = Field(description="Number of the best trial; 0 for the numbers that it started from.")
    held_out: DifferenceOut | None = Field(description="Gain of the best trial on the queries it was not chosen on.")
    trials: list[dict[str, Any]] = Field(description="Each with its numbers, run, objective and p95.")

    @classmethod
    def of(cls, sweep: Sweep) -> Self:
        """Return the response for a sweep."""
        return cls(**sweeps.as_json(sweep))


class SweepsOut(BaseModel):
    """Sweeps, newest first."""

    sweeps: list[SweepOut]


class SweepDraftIn(StrictBody):
    """The draft to replace."""

    replaces: str = Field(default="", description="Fingerprint of the replaced draft; empty for a new one.")


class SweepDraftOut(BaseModel):
    """The draft with the best numbers."""

    preset: str
    number: int
    values: dict[str, float]
    fingerprint: str


@router.get("/evaluation/sweeps", response={200: SweepsOut, **REFUSALS}, summary="List sweeps")
def list_sweeps(request: HttpRequest) -> SweepsOut:
    """Return the newest 50 sweeps whose whole scope the principal may see. For admins."""
    return SweepsOut(sweeps=[SweepOut.of(it) for it in sweeps.sweeps_for(admin_of(request))[:50]])


@router.post("/evaluation/sweeps", response={202: SweepOut, **CHANGE_REFUSALS}, summary="Start a sweep")
def start_sweep(request: HttpRequest, body: SweepIn) -> Status[SweepOut]:
    """Queue a sweep with the access of each case's user, else of the principal; a worker runs it. For admins."""
    principal = admin_of(request)
    asked = sweeps.SweepRequest(
        preset=body.preset,
        ranges=[Range(it.name, tuple(it.values), it.low, it.high) for it in body.ranges],
        method=Sweep.Method(body.method),
        trials=body.trials,
        objective=Objective(body.measure, body.cutoff),
        max_p95_ms=body.max_p95_ms,
    )
    sweep = sweeps.queue_sweep(set_of(body.question_set), asked, principal=principal)
    wake_worker_on_commit()
    return Status(202, SweepOut.of(sweep))


@router.get("/evaluation/sweeps/{sweep_id}", response={200: SweepOut, **REFUSALS}, summary="Read a sweep")
def read_sweep(request: HttpRequest, sweep_id: UUID) -> SweepOut:
    """Return a sweep with its trials. For admins."""
    return SweepOut.of(sweeps.sweep_for(sweep_id, admin_of(request)))


@router.post(
    "/evaluation/sweeps/{sweep_id}/cancel", response={200: SweepOut, **CHANGE_REFUSALS}, summary="Cancel a sweep"
)
def cancel_sweep(request: HttpRequest, sweep_id: UUID) -> SweepOut:
    """End a sweep that waits or runs; its results stay. For admins."""
    principal = admin_of(request)
    sweeps.cancel(sweeps.sweep_for(sweep_id, principal), actor=principal)
    return SweepOut.of(sweeps.sweep_for(sweep_id, principal))


@router.post(
    "/evaluation/sweeps/{sweep_id}/draft", response={200: SweepDraftOut, **CHANGE_REFUSALS}, summary="Draft the best"
)
def draft_sweep(request: HttpRequest, sweep_id: UUID, body: SweepDraftIn) -> SweepDraftOut:
    """Save the best trial's numbers as the preset's draft. For admins."""
    principal = admin_of(request)
    sweep = sweeps.sweep_for(sweep_id, principal)
    return filled(SweepDraftOut, draft_of_best(sweep, actor=principal.user, replaces=body.replaces))


@router.delete("/evaluation/sweeps/{sweep_id}", response={204: None, **CHANGE_REFUSALS}, summary="Delete a sweep")
def delete_sweep(request: HttpRequest, sweep_id: UUID) -> Status[None]:
    """Delete a sweep with its trials. For admins."""
    principal = admin_of(request)
    sweeps.delete(sweeps.sweep_for(sweep_id, principal), actor=principal)
    return Status(204, None)
