"""Experiments over HTTP, for admins: interleave two configurations on real questions, read what people prefer."""

from datetime import datetime
from typing import Self
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import BaseModel, Field

from retrieval.api.question_sets import admin_of
from retrieval.api.schemas import CHANGE_REFUSALS, REFUSALS, StrictBody
from retrieval.evaluation import experiments
from retrieval.models import Experiment

router = Router(tags=["evaluation"])
_MAX_NUMBER = 2**31 - 1


class SideIn(StrictBody):
    """A side of an experiment."""

    preset: str = Field(max_length=40)
    version: int | None = Field(
        default=None, ge=0, le=_MAX_NUMBER, description="0 for the shipped defaults, null for the live version."
    )


class ExperimentIn(StrictBody):
    """What to compare. It needs an end: a time, a number of questions, or both."""

    name: str = Field(min_length=1, max_length=120)
    a: SideIn
    b: SideIn
    share: int = Field(ge=1, le=100, description="Percent of the questions that both sides answer.")
    includes_api: bool = Field(default=False, description="Whether searches and chats through the API count too.")
    ends_at: datetime | None = None
    max_questions: int | None = Field(default=None, ge=1, le=experiments.MAX_QUESTIONS)


class SideOut(BaseModel):
    """A side of an experiment."""

    preset: str
    version: int


class ExperimentOut(BaseModel):
    """An experiment and its report."""

    id: UUID
    name: str
    a: SideOut
    b: SideOut
    share: int
    includes_api: bool
    ends_at: datetime | None
    max_questions: int | None
    started_at: datetime
    ended_at: datetime | None
    is_running: bool
    questions: int = Field(description="Questions that were searched for with both sides.")
    logged: int = Field(description="Those of them that the query log still has.")
    not_counted: int = Field(description="Those of them where a side failed or used a fallback.")
    with_credit: int = Field(description="Questions where a passage of either side was used.")
    wins_a: int
    wins_b: int
    ties: int
    delta: float | None = Field(description="Share of these questions that A wins, ties as one half, less 0.5.")
    low: float | None = Field(description="The 95 % Wilson interval of delta.")
    high: float | None
    p_value: float = Field(description="Of a two-sided sign test.")
    winner: str | None = Field(description="A or B; null where the interval holds 0 or the p-value is not below 0.05.")

    @classmethod
    def of(cls, experiment: Experiment) -> Self:
        """Return the response for an experiment."""
        return cls(**experiments.report_of(experiment).as_json())


class ExperimentsOut(BaseModel):
    """Experiments, newest first."""

    experiments: list[ExperimentOut]


@router.get("/evaluation/experiments", response={200: ExperimentsOut, **REFUSALS}, summary="List experiments")
def list_experiments(request: HttpRequest) -> ExperimentsOut:
    """Return the newest 20 experiments with their reports. For admins."""
    admin_of(request)
    return ExperimentsOut(experiments=[ExperimentOut.of(it) for it in experiments.newest()])


@router.post("/evaluation/experiments", response={201: ExperimentOut, **CHANGE_REFUSALS}, summary="Start an experiment")
def start_experiment(request: HttpRequest, body: ExperimentIn) -> Status[ExperimentOut]:
    """Interleave two configurations in a share of the searches with the default preset. For admins."""
    principal = admin_of(request)
    asked = experiments.ExperimentRequest(
        name=body.name,
        first=(body.a.preset, body.a.version),
        second=(body.b.preset, body.b.version),
        share=body.share,
        includes_api=body.includes_api,
        ends_at=body.ends_at,
        max_questions=body.max_questions,
    )
    return Status(201, ExperimentOut.of(experiments.start(asked, actor=principal)))


@router.get(
    "/evaluation/experiments/{experiment_id}", response={200: ExperimentOut, **REFUSALS}, summary="Read an experiment"
)
def read_experiment(request: HttpRequest, experiment_id: UUID) -> ExperimentOut:
    """Return an experiment with its report. For admins."""
    admin_of(request)
    return ExperimentOut.of(experiments.experiment_named(experiment_id))


@router.post(
    "/evaluation/experiments/{experiment_id}/stop",
    response={200: ExperimentOut, **CHANGE_REFUSALS},
    summary="Stop an experiment",
)
def stop_experiment(request: HttpRequest, experiment_id: UUID) -> ExperimentOut:
    """End an experiment; its report stays. For admins."""
    principal = admin_of(request)
    experiments.stop(experiments.experiment_named(experiment_id), actor=principal)
    return ExperimentOut.of(experiments.experiment_named(experiment_id))
