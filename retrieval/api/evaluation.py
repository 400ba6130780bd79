"""Evaluation over HTTP, for admins: runs, the differences between them, gates and schedules."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from corecube.sanitise import storable
from retrieval.api.question_sets import admin_of, set_of
from retrieval.api.schemas import CHANGE_REFUSALS, REFUSALS, Overrides, StrictBody, filled
from retrieval.evaluation import comparing, gates, run_files, runs, schedules
from retrieval.evaluation.components import Components
from retrieval.models import EvaluationRun, Gate
from retrieval.presets.catalog import DEFAULT_PRESET
from retrieval.ranking.measures import CUTOFF, MEASURED_DEPTH, OBJECTIVES, Objective
from retrieval.tasks.evaluation_runs import wake_worker_on_commit

router = Router(tags=["evaluation"])
OBJECTIVES_HELP = f"{', '.join(OBJECTIVES)}."


class RunIn(StrictBody):
    """What to measure."""

    question_set: str = Field(max_length=50, description="The slug of a question set.")
    preset: str = DEFAULT_PRESET
    draft: bool = Field(default=False, description="Measure the preset's draft instead of its live version.")
    overrides: Overrides = Field(default_factory=dict)
    name: str = Field(default="", max_length=120)
    counts: Literal["people", "model", "use"] = Field(
        default="people",
        description="Whose grades count: people's; with `model` also those of a language model, which grades what "
        "nobody judged; with `use` also those from what people opened, copied and rated.",
    )
    answers: bool = Field(
        default=False,
        description="Answer each question as users get it, and measure the answers; language models cost the same.",
    )
    index: int | None = Field(
        default=None, ge=1, lt=2**31, description="The number of another complete embedding index than the active one."
    )
    reranked: bool = Field(default=True, description="False to leave out the installation's reranker.")
    language_model: str = Field(
        default="",
        max_length=50,
        description="The slug of the language model that judges and answers where routing rules allow; `extractive` for"
        " quotes alone, empty for what users get.",
    )


class AnswersOut(BaseModel):
    """What the answers of a run are worth; their texts are not stored."""

    count: int
    measures: dict[str, float | None] = Field(
        description="Means, 1 is best: right (of those with an expected answer), answered (of the answerable),"
        " not_asserted (of the unanswerable), consistent (with the verdict), supported (sentences)."
    )
    outcomes: dict[str, int] = Field(description="Answers that are asserted, hedged and refused.")
    latency_ms: dict[str, float] = Field(description="Percentiles of the time from the end of the search.")


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
    index: int | None = Field(description="The number of the embedding index; null before it begins.")
    reranked: bool
    language_model: str
    reranker: str = Field(description="Its name; empty for none, and before it begins.")
    configuration: str = Field(description="The same for runs with the same stages, numbers, models and index.")
    answers: AnswersOut | None = Field(description="Null for a run that does not answer.")
    model_tokens: int = Field(description="Read and written by language models, to judge and to answer.")
    cost: float = Field(description="Of these, in the installation's currency.")

    @classmethod
    def of(cls, run: EvaluationRun) -> Self:
        """Return the response for a run."""
        facts = run_files.figures_json(run, runs.figures_of(run))
        return cls(**{name: facts[name] for name in cls.model_fields})


class RunsOut(BaseModel):
    """Runs, newest first."""

    runs: list[RunOut]


class DifferenceOut(BaseModel):
    """A measure of a run less the first's."""

    queries: int
    mean: float
    low: float = Field(description="The 95 % bootstrap interval of the mean.")
    high: float
    p_value: float = Field(
        description="Of a two-sided paired randomisation test; of several runs, corrected for their number (Holm)."
    )
    wins: int = Field(description="Queries where the run is better than the first.")
    ties: int
    losses: int


class OtherRunOut(BaseModel):
    """A run, compared with the first."""

    run: UUID
    differences: dict[str, DifferenceOut] = Field(description="By measure.")


class SpreadOut(BaseModel):
    """A query in the compared runs."""

    query: str
    ndcg: list[float] = Field(description="Of each run, the first one's first.")


class ComparisonOut(BaseModel):
    """Runs on the queries of all of them, compared with the first."""

    first: UUID
    queries: int
    others: list[OtherRunOut]
    spreads: list[SpreadOut] = Field(description="The queries with judgments, the widest spread first.")


class GateIn(StrictBody):
    """A question set on which a promoted version may lose little."""

    question_set: str = Field(max_length=50, description="The slug of a question set.")
    preset: str = Field(default="", max_length=40, description="Empty for every preset.")
    measure: str = Field(default="ndcg", description=OBJECTIVES_HELP)
    cutoff: int = Field(default=CUTOFF, ge=1, le=MEASURED_DEPTH)
    max_loss: float = Field(default=0.01, ge=0, le=1, description="The mean may fall by at most this.")


class GateOut(BaseModel):
    """A gate."""

    question_set: str
    preset: str
    measure: str
    cutoff: int
    max_loss: float

    @classmethod
    def of(cls, gate: Gate) -> Self:
        """Return the response for a gate."""
        return filled(cls, gate, question_set=gate.question_set.slug)


class GatesOut(BaseModel):
    """The gates."""

    gates: list[GateOut]


class ScheduleIn(StrictBody):
    """When a preset's live version is measured on a set: never, and there is no schedule."""

    question_set: str = Field(max_length=50, description="The slug of a question set.")
    preset: str = DEFAULT_PRESET
    after_syncs: bool = False
    nightly: bool = False
    after_upgrades: bool = False
    answers: bool = Field(default=False, description="Answer each question too; language models cost the same.")
    measure: str = Field(default="ndcg", description=OBJECTIVES_HELP)
    cutoff: int = Field(default=CUTOFF, ge=1, le=MEASURED_DEPTH)
    min_mean: float | None = Field(default=None, ge=0, le=1, description="A mean below it is an alarm.")


class PointOut(BaseModel):
    """A run of a trend."""

    run: UUID
    at: datetime
    mean: float
    answers: dict[str, float | None] | None = Field(description="Means of its answers, as of a run; null without.")


class TrendOut(BaseModel):
    """A schedule and what its runs found, the oldest first."""

    question_set: str
    preset: str
    after_syncs: bool
    nightly: bool
    after_upgrades: bool
    answers: bool
    measure: str
    cutoff: int
    min_mean: float | None
    alarm: str = Field(description="Empty unless the newest mean is below the minimum.")
    points: list[PointOut]

    @classmethod
    def of(cls, trend: schedules.Trend) -> Self:
        """Return the response for a schedule."""
        schedule = trend.schedule
        points = [
            PointOut(
                run=it.run.pk, at=it.run.created_at, mean=it.mean, answers=asdict(it.answers) if it.answers else None
            )
            for it in trend.points
        ]
        facts = {"question_set": schedule.question_set.slug, "answers": schedule.has_answers}
        return filled(cls, schedule, **facts, alarm=trend.alarm, points=points)


class TrendsOut(BaseModel):
    """The schedules of a question set."""

    schedules: list[TrendOut]


@router.get("/evaluation/runs", response={200: RunsOut, **REFUSALS}, summary="List evaluation runs")
def list_runs(request: HttpRequest, question_set: Annotated[str, Query(max_length=50)] = "") -> RunsOut:
    """Return the newest 100 runs whose whole scope the principal may see, of one question set or of all. For admins."""
    found = runs.runs_for(admin_of(request)).filter(trial=None).select_related("question_set")
    if question_set:
        found = found.filter(question_set__slug=storable(question_set))
    return RunsOut(runs=[RunOut.of(it) for it in found[:100]])


@router.post("/evaluation/runs", response={202: RunOut, **CHANGE_REFUSALS}, summary="Start an evaluation run")
def start_run(request: HttpRequest, body: RunIn) -> Status[RunOut]:
    """Queue a run with the access of each case's user, else of the principal; a worker measures it. For admins."""
    principal = admin_of(request)
    question_set = set_of(body.question_set)
    asked = runs.RunRequest(
        body.preset,
        is_draft=body.draft,
        overrides=body.overrides,
        name=body.name,
        counts=body.counts,
        has_answers=body.answers,
        components=Components(body.index, body.reranked, storable(body.language_model)),
    )
    run = runs.queue_run(question_set, asked, principal=principal)
    wake_worker_on_commit()
    return Status(202, RunOut.of(run))


@router.get("/evaluation/runs/{run_id}", response={200: dict[str, Any], **REFUSALS}, summary="Read an evaluation run")
def read_run(request: HttpRequest, run_id: UUID) -> dict[str, Any]:
    """Return a run with the result, the ranking and the grades of each case. For admins."""
    run = runs.run_for(run_id, admin_of(request))
    return run_files.as_json(run, runs.result_of(run))


@router.post(
    "/evaluation/runs/{run_id}/cancel", response={200: RunOut, **CHANGE_REFUSALS}, summary="Cancel an evaluation run"
)
def cancel_run(request: HttpRequest, run_id: UUID) -> RunOut:
    """End a run that waits or runs; its results stay. For admins."""
    principal = admin_of(request)
    runs.cancel(runs.run_for(run_id, principal), actor=principal)
    return RunOut.of(runs.run_for(run_id, principal))


@router.delete("/evaluation/runs/{run_id}", response={204: None, **CHANGE_REFUSALS}, summary="Delete an evaluation run")
def delete_run(request: HttpRequest, run_id: UUID) -> Status[None]:
    """Delete a run with its results. For admins."""
    principal = admin_of(request)
    runs.delete(runs.run_for(run_id, principal), actor=principal)
    return Status(204, None)


@router.get("/evaluation/compare", response={200: ComparisonOut, **REFUSALS}, summary="Compare evaluation runs")
def compare(
    request: HttpRequest,
    first: UUID,
    second: Annotated[list[UUID], Query(min_length=1, max_length=comparing.MAX_OTHERS)],
) -> ComparisonOut:
    """Return how much greater each measure is in up to four runs, `second`, than in the first one.

    Over the queries of all runs. With several the p-values of each measure are corrected by Holm's method. For admins.
    """
    principal = admin_of(request)
    others = list(dict.fromkeys(second))
    rows = comparing.in_all([runs.result_of(runs.run_for(run_id, principal)) for run_id in (first, *others)])
    measured = comparing.measured_in_all(rows)
    return ComparisonOut(
        first=first,
        queries=len(rows),
        others=[
            OtherRunOut(
                run=run_id,
                differences={name: filled(DifferenceOut, it.differences[place]) for name, it in measured.items()},
            )
            for place, run_id in enumerate(others)
        ],
        spreads=[SpreadOut(query=it.query, ndcg=list(it.values)) for it in comparing.spreads(rows, "ndcg")],
    )


@router.get("/evaluation/gates", response={200: GatesOut, **REFUSALS}, summary="List gates")
def list_gates(request: HttpRequest) -> GatesOut:
    """Return the question sets that guard promotions. For admins."""
    admin_of(request)
    return GatesOut(gates=[GateOut.of(it) for it in Gate.objects.select_related("question_set")])


@router.put("/evaluation/gates", response={200: GateOut, **CHANGE_REFUSALS}, summary="Set a gate")
def set_gate(request: HttpRequest, body: GateIn) -> GateOut:
    """Let a question set guard the promotions of a preset, or of every preset. For admins."""
    principal, objective = admin_of(request), Objective(body.measure, body.cutoff)
    gate = gates.set_gate(
        set_of(body.question_set),
        preset=storable(body.preset),
        objective=objective,
        max_loss=body.max_loss,
        actor=principal,
    )
    return GateOut.of(gate)


@router.delete("/evaluation/gates", response={204: None, **CHANGE_REFUSALS}, summary="Remove a gate")
def remove_gate(
    request: HttpRequest,
    question_set: Annotated[str, Query(max_length=50)],
    preset: Annotated[str, Query(max_length=40)] = "",
) -> Status[None]:
    """Let a question set no longer guard a preset. For admins."""
    principal = admin_of(request)
    gates.remove_gate(set_of(question_set), preset=storable(preset), actor=principal)
    return Status(204, None)


@router.get("/evaluation/schedules", response={200: TrendsOut, **REFUSALS}, summary="List schedules")
def list_schedules(request: HttpRequest, question_set: Annotated[str, Query(max_length=50)]) -> TrendsOut:
    """Return the schedules of a set with their trends, of the runs that the principal may see. For admins."""
    principal = admin_of(request)
    return TrendsOut(schedules=[TrendOut.of(it) for it in schedules.trends(set_of(question_set), principal)])


@router.put("/evaluation/schedules", response={200: TrendsOut, **CHANGE_REFUSALS}, summary="Set a schedule")
def set_schedule(request: HttpRequest, body: ScheduleIn) -> TrendsOut:
    """Set when a preset's live version is measured, or remove it. For admins.

    It is measured with the access of each case's user, else of the principal.
    """
    principal, question_set = admin_of(request), set_of(body.question_set)
    schedules.set_schedule(
        question_set,
        preset=storable(body.preset),
        objective=Objective(body.measure, body.cutoff),
        actor=principal,
        after_syncs=body.after_syncs,
        nightly=body.nightly,
        after_upgrades=body.after_upgrades,
        has_answers=body.answers,
        min_mean=body.min_mean,
    )
    return TrendsOut(schedules=[TrendOut.of(it) for it in schedules.trends(question_set, principal)])
