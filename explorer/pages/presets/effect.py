"""The effect of a preset's draft on a question set: runs of the draft and of the live version, and their comparison.

Without a draft it is the effect of the last promotion: the live version, and the one that it replaced.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from django.db.models import Exists, OuterRef, Q
from django.shortcuts import get_object_or_404
from django.utils.text import capfirst

from corecube.access import Principal, scope_for
from explorer.components.preset_numbers import stored_config, version_label
from explorer.pages.evaluation.comparison import verdict
from retrieval.evaluation import comparing
from retrieval.evaluation import runs as services
from retrieval.evaluation.components import usual
from retrieval.models import Case, EvaluationRun, PresetVersion, QuestionSet
from retrieval.presets.preset import Preset
from retrieval.records.judgments import normalised_query, standing
from retrieval.tasks.evaluation_runs import wake_worker_on_commit

_Status = EvaluationRun.Status
_LIVE, _DRAFT = PresetVersion.Status.LIVE, PresetVersion.Status.DRAFT
_Side = tuple[str, EvaluationRun | None]  #: What was measured, in words, and its latest run.


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
    if _latest(question_set, preset, versions.get(_LIVE), principal) is None:
        services.queue_run(question_set, services.RunRequest(preset.name), principal=principal)
    services.queue_run(question_set, services.RunRequest(preset.name, is_draft=True), principal=principal)
    wake_worker_on_commit()
    return question_set


def effect_context(preset: Preset, question_set: QuestionSet | None, principal: Principal) -> dict[str, Any]:
    """Return the runs of both versions on a set, and how they compare once both are done."""
    if question_set is None:
        return {"question_set": None}
    versions = _versions(preset)
    sides = [(name, _latest(question_set, preset, it, principal)) for name, it in _compared(preset, versions)]
    runs = [(name, run) for name, run in sides if run]
    total = question_set.cases.count()
    return {
        "preset": preset,
        "question_set": question_set,
        "cases": total,
        "is_judged": partial(_is_judged, question_set, principal),
        "is_unmeasured": _DRAFT in versions and sides[-1][1] is None,
        "open": [(name, run, run.results.count(), total) for name, run in runs if run.is_open],
        "failed": [(name, run) for name, run in runs if run.status == _Status.FAILED],
        **(_comparison(*sides) if sides else {}),
    }


def _is_judged(question_set: QuestionSet, principal: Principal) -> bool:
    queries = {normalised_query(it) for it in question_set.cases.values_list("query", flat=True)}
    return standing(scope_for(principal)).filter(query__in=queries).exists()


def _versions(preset: Preset) -> Mapping[str, PresetVersion]:
    return {it.status: it for it in PresetVersion.objects.filter(preset=preset.name, status__in=(_LIVE, _DRAFT))}


def _compared(preset: Preset, versions: Mapping[str, PresetVersion]) -> Iterator[tuple[str, PresetVersion | None]]:
    """Yield the two versions to compare, None for the shipped defaults; nothing where there is only one."""
    live, draft = versions.get(_LIVE), versions.get(_DRAFT)
    if draft:
        yield "The live version", live
        yield "The draft", draft
    elif live and live.replaced is not None:
        yield (
            capfirst(version_label(live.replaced)),
            PresetVersion.objects.filter(preset=preset.name, number=live.replaced).first(),
        )
        yield capfirst(version_label(live.number)), live


def _latest(
    question_set: QuestionSet, preset: Preset, version: PresetVersion | None, principal: Principal
) -> EvaluationRun | None:
    """Return the latest run of a version as it is now, None for the shipped defaults; cancelled ones do not count.

    A run counts by the numbers that it measured, which it does not know before it has begun.
    """
    runs = usual(services.runs_for(principal)).filter(question_set=question_set, preset=preset.name, overrides={})
    runs = runs.exclude(status=_Status.CANCELLED)
    is_draft = version is not None and version.status == _DRAFT
    waits = Q(values__isnull=True, is_draft=is_draft, status__in=(_Status.QUEUED, _Status.RUNNING, _Status.FAILED))
    runs = runs.filter(Q(values=preset.changes(stored_config(preset, version))) | waits)
    return (runs.filter(created_at__gte=version.changed_at) if version else runs).first()


def _comparison(first: _Side, second: _Side) -> dict[str, Any]:
    (old_name, old), (new_name, new) = first, second
    if old is None or new is None or {old.status, new.status} != {_Status.DONE}:
        return {}
    before, after = services.figures_of(old), services.figures_of(new)
    found = comparing.differences(comparing.compared(before, after))
    ndcg = found.get("ndcg")
    return {
        "before": before,
        "after": after,
        "difference": ndcg,
        "verdict": verdict(ndcg, found.get("judged"), (old_name, new_name)),
        "tone": ("good" if ndcg.mean > 0 else "bad") if ndcg and ndcg.is_clear else "",
        "names": (old_name, new_name),
        "runs": (old, new),
    }
