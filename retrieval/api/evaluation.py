"""Evaluation over HTTP, for admins: question sets, runs of them, and the difference between two runs."""

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from django.db.models import Count
from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from corecube.access import Principal
from corecube.api import principal_of
from corecube.database import first_or
from corecube.errors import NotFoundError
from corecube.sanitise import storable
from retrieval.api.managed import installation_admin
from retrieval.api.schemas import CHANGE_REFUSALS, REFUSALS, Overrides, StrictBody, filled
from retrieval.evaluation import runs
from retrieval.models import EvaluationRun, QuestionSet
from retrieval.presets.catalog import DEFAULT_PRESET
from retrieval.tasks.evaluation_runs import wake_worker_on_commit

router = Router(tags=["evaluation"])


class QuestionSetOut(BaseModel):
    """A question set."""

    slug: str
    name: str
    cases: int


class QuestionSetsOut(BaseModel):
    """The question sets, by name."""

    question_sets: list[QuestionSetOut]


class RunIn(StrictBody):
    """What to measure."""

    question_set: str = Field(max_length=50, description="The slug of a question set.")
    preset: str = DEFAULT_PRESET
    draft: bool = Field(default=False, description="Measure the preset's draft instead of its live version.")
    overrides: Overrides = Field(default_factory=dict)
    name: str = Field(default="", max_length=120)


class RunOut(BaseModel):
    """A run, and how far it is."""

    id: UUID
    name: str
    question_set: str
    preset: str
    draft: bool
    overrides: dict[str, Any]
    status: str = Field(description="queued, running, done, failed or cancelled.")
    message: str = Field(description="Why it failed.")
    version: int | None = Field(description="The preset's version; 0 for the shipped defaults, null before it begins.")
    fingerprint: str = Field(description="Of the preset's stages and numbers.")
    created_at: datetime
    finished_at: datetime | None
    cases: int = Field(description="Cases with a result.")
    measures: dict[str, float | None] = Field(description="Means over the cases with judgments.")

    @classmethod
    def of(cls, run: EvaluationRun) -> Self:
        """Return the response for a run."""
        facts = runs.figures_json(run, runs.figures_of(run))
        return cls(**{name: facts[name] for name in cls.model_fields})


class RunsOut(BaseModel):
    """Runs, newest first."""

    runs: list[RunOut]


class DifferenceOut(BaseModel):
    """A measure of the second run less the first's."""

    queries: int
    mean: float
    low: float = Field(description="The 95 % bootstrap interval of the mean.")
    high: float
    p_value: float = Field(description="Of a two-sided paired randomisation test.")
    wins: int = Field(description="Queries where the second run is better.")
    ties: int
    losses: int


class DifferencesOut(BaseModel):
    """Two runs on the queries of both."""

    first: UUID
    second: UUID
    queries: int
    differences: dict[str, DifferenceOut] = Field(description="By measure.")


def _admin(request: HttpRequest) -> Principal:
    principal = principal_of(request)
    installation_admin(principal)
    return principal


@router.get("/evaluation/sets", response={200: QuestionSetsOut, **REFUSALS}, summary="List question sets")
def list_sets(request: HttpRequest) -> QuestionSetsOut:
    """Return the question sets. For admins."""
    _admin(request)
    sets = QuestionSet.objects.annotate(size=Count("cases"))
    return QuestionSetsOut(question_sets=[QuestionSetOut(slug=it.slug, name=it.name, cases=it.size) for it in sets])


@router.get("/evaluation/runs", response={200: RunsOut, **REFUSALS}, summary="List evaluation runs")
def list_runs(request: HttpRequest, question_set: Annotated[str, Query(max_length=50)] = "") -> RunsOut:
    """Return the newest 100 runs whose whole scope the principal may see, of one question set or of all. For admins."""
    found = runs.runs_for(_admin(request)).select_related("question_set")
    if question_set:
        found = found.filter(question_set__slug=storable(question_set))
    return RunsOut(runs=[RunOut.of(it) for it in found[:100]])


@router.post("/evaluation/runs", response={202: RunOut, **CHANGE_REFUSALS}, summary="Start an evaluation run")
def start_run(request: HttpRequest, body: RunIn) -> Status[RunOut]:
    """Queue a run with the principal's access; a worker measures it. For admins."""
    principal = _admin(request)
    unknown = NotFoundError("There is no question set with that slug.")
    question_set = first_or(unknown, QuestionSet.objects.filter(slug=storable(body.question_set)))
    asked = runs.RunRequest(body.preset, is_draft=body.draft, overrides=body.overrides, name=body.name)
    run = runs.queue_run(question_set, asked, principal=principal)
    wake_worker_on_commit()
    return Status(202, RunOut.of(run))


@router.get("/evaluation/runs/{run_id}", response={200: dict[str, Any], **REFUSALS}, summary="Read an evaluation run")
def read_run(request: HttpRequest, run_id: UUID) -> dict[str, Any]:
    """Return a run with the result, the ranking and the grades of each case. For admins."""
    run = runs.run_for(run_id, _admin(request))
    return runs.as_json(run, runs.result_of(run))


@router.post(
    "/evaluation/runs/{run_id}/cancel", response={200: RunOut, **CHANGE_REFUSALS}, summary="Cancel an evaluation run"
)
def cancel_run(request: HttpRequest, run_id: UUID) -> RunOut:
    """End a run that waits or runs; its results stay. For admins."""
    principal = _admin(request)
    runs.cancel(runs.run_for(run_id, principal), actor=principal)
    return RunOut.of(runs.run_for(run_id, principal))


@router.delete("/evaluation/runs/{run_id}", response={204: None, **CHANGE_REFUSALS}, summary="Delete an evaluation run")
def delete_run(request: HttpRequest, run_id: UUID) -> Status[None]:
    """Delete a run with its results. For admins."""
    principal = _admin(request)
    runs.delete(runs.run_for(run_id, principal), actor=principal)
    return Status(204, None)


@router.get("/evaluation/compare", response={200: DifferencesOut, **REFUSALS}, summary="Compare two evaluation runs")
def compare(request: HttpRequest, first: UUID, second: UUID) -> DifferencesOut:
    """Return how much greater each measure is in the second run, over the queries of both. For admins."""
    principal = _admin(request)
    results = [runs.result_of(runs.run_for(run_id, principal)) for run_id in (first, second)]
    pairs = runs.compared(*results)
    found = {name: filled(DifferenceOut, it) for name, it in runs.differences(pairs).items()}
    return DifferencesOut(first=first, second=second, queries=len(pairs), differences=found)
