"""The effect of a preset's draft on a question set: runs of the draft and of the live version, and their comparison."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q
from django.shortcuts import get_object_or_404

from corecube.access import Principal, scope_for
from explorer.pages.evaluation.comparison import verdict
from retrieval.evaluation import comparing
from retrieval.evaluation import runs as services
from retrieval.evaluation.components import usual
from retrieval.models import Case, EvaluationRun, PresetVersion, QuestionSet
from retrieval.presets.preset import Preset
from retrieval.records.judgments import normalised_query, standing
from retrieval.search.configuration import SHIPPED
from retrieval.tasks.evaluation_runs import wake_worker_on_commit

_Status = EvaluationRun.Status
_NAMES: Final = ("The live version", "The draft")


def question_sets() -> list[QuestionSet]:
    """Return the question sets that have cases."""
    return list(QuestionSet.objects.filter(Exists(Case.objects.filter(question_set=OuterRef("pk")))).order_by("name"))


def chosen_set(sets: Sequence[QuestionSet], preset: Preset, slug: str, principal: Principal) -> QuestionSet | None:
    """Return the set with this slug, else the one that the preset was last measured on, else the first."""
    if not sets:
        return None
    latest = services.runs_for(principal).filter(preset=preset.name).values_list("question_set__slug", flat=True)
    wanted = slug or latest.first()
    return next((it for it in sets if it.slug == wanted), sets[0])


def measure_draft(preset: Preset, slug: str, principal: Principal) -> QuestionSet:
    """Queue a run of the draft, and one of the live version if its figures are missing; raises as `queue_run` does."""
    question_set = get_object_or_404(QuestionSet, slug=slug)
    versions = _versions(preset)
    if _latest(question_set, preset, versions.get(PresetVersion.Status.LIVE), principal) is None:
        services.queue_run(question_set, services.RunRequest(preset.name), principal=principal)
    services.queue_run(question_set, services.RunRequest(preset.name, is_draft=True), principal=principal)
    wake_worker_on_commit()
    return question_set


def effect_context(preset: Preset, question_set: QuestionSet | None, principal: Principal) -> dict[str, Any]:
    """Return the runs of the live version and of the draft on a set, and how they compare once both are done."""
    if question_set is None:
        return {"question_set": None}
    versions = _versions(preset)
    draft = versions.get(PresetVersion.Status.DRAFT)
    live_run = _latest(question_set, preset, versions.get(PresetVersion.Status.LIVE), principal)
    draft_run = _latest(question_set, preset, draft, principal) if draft else None
    runs = [(name, run) for name, run in zip(_NAMES, (live_run, draft_run), strict=True) if run]
    total = question_set.cases.count()
    return {
        "preset": preset,
        "question_set": question_set,
        "cases": total,
        "is_judged": partial(_is_judged, question_set, principal),
        "has_draft": draft is not None,
        "draft_run": draft_run,
        "open": [(name, run, run.results.count(), total) for name, run in runs if run.is_open],
        "failed": [(name, run) for name, run in runs if run.status == _Status.FAILED],
        **_comparison(live_run, draft_run),
    }


def _is_judged(question_set: QuestionSet, principal: Principal) -> bool:
    queries = {normalised_query(it) for it in question_set.cases.values_list("query", flat=True)}
    return standing(scope_for(principal)).filter(query__in=queries).exists()


def _versions(preset: Preset) -> Mapping[str, PresetVersion]:
    statuses = (PresetVersion.Status.LIVE, PresetVersion.Status.DRAFT)
    return {it.status: it for it in PresetVersion.objects.filter(preset=preset.name, status__in=statuses)}


def _latest(
    question_set: QuestionSet, preset: Preset, version: PresetVersion | None, principal: Principal
) -> EvaluationRun | None:
    """Return the latest run of a version as it is now, None for the shipped defaults; cancelled ones do not count.

    What a draft was measured with stays its figure after it is promoted. A run that has not begun knows no version.
    """
    runs = usual(services.runs_for(principal)).filter(question_set=question_set, preset=preset.name, overrides={})
    runs = runs.exclude(status=_Status.CANCELLED)
    is_draft = version is not None and version.status == PresetVersion.Status.DRAFT
    waits = Q(version=None, is_draft=is_draft, status__in=(_Status.QUEUED, _Status.RUNNING, _Status.FAILED))
    if version is None:
        return runs.filter(Q(version=SHIPPED, is_draft=False) | waits).first()
    return runs.filter(Q(version=version.number) | waits, created_at__gte=version.changed_at).first()


def _comparison(live: EvaluationRun | None, draft: EvaluationRun | None) -> dict[str, Any]:
    if live is None or draft is None or {live.status, draft.status} != {_Status.DONE}:
        return {}
    before, after = services.figures_of(live), services.figures_of(draft)
    found = comparing.differences(comparing.compared(before, after))
    ndcg = found.get("ndcg")
    return {
        "before": before,
        "after": after,
        "difference": ndcg,
        "verdict": verdict(ndcg, found.get("judged"), _NAMES),
        "tone": ("good" if ndcg.mean > 0 else "bad") if ndcg and ndcg.is_clear else "",
        "live_run": live,
    }
