"""Gates of promotions: how a version does on guarding question sets, from stored runs of it and of the live one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.database import first_or
from corecube.errors import InvalidRequestError, NotFoundError
from corecube.version import VERSION
from retrieval.evaluation import comparing, runs
from retrieval.evaluation.components import usual
from retrieval.evaluation.objectives import checked_objective
from retrieval.evaluation.question_sets import searched_connections
from retrieval.models import EvaluationRun, Gate, Judgment, PresetVersion, QuestionSet
from retrieval.presets.catalog import TUNED
from retrieval.presets.preset import Preset, PresetConfig
from retrieval.ranking.measures import Objective
from retrieval.ranking.significance import Difference
from retrieval.records.judgments import normalised_query
from retrieval.search import runtime
from retrieval.search.configuration import SHIPPED, configuration_of, fitted

_MAX_AGE: Final = timedelta(days=1)  #: An older run says little about the documents of today.
_EQUAL: Final = 1e-9
_Status = EvaluationRun.Status
_Values = Mapping[str, float]


class Verdict(StrEnum):
    """What a gate says of a promotion."""

    PASSED = "passed"
    BELOW = "below"  #: The measure falls by more than the gate allows.
    UNJUDGED = "unjudged"  #: No query has judgments in both runs.
    FAILED = "failed"  #: A run failed.
    MEASURING = "measuring"  #: A run waits or runs.
    UNMEASURED = "unmeasured"


@dataclass(frozen=True)
class GateResult:
    """A gate, and the newest runs of the live version and of the one to promote; None for one that is missing."""

    gate: Gate
    live: EvaluationRun | None
    candidate: EvaluationRun | None

    @property
    def objective(self) -> Objective:
        """What the gate compares."""
        return Objective(self.gate.measure, self.gate.cutoff)

    @cached_property
    def difference(self) -> Difference | None:
        """The candidate's objective less the live version's; None while a run is not done, and without judgments."""
        if self.live is None or self.candidate is None or not self._are(_Status.DONE):
            return None
        pairs = comparing.compared(runs.result_of(self.live), runs.result_of(self.candidate))
        return comparing.objective_difference(pairs, self.objective)

    @cached_property
    def verdict(self) -> Verdict:
        """What the gate says."""
        if self.live is None or self.candidate is None:
            return Verdict.UNMEASURED
        if self._are(_Status.FAILED):
            return Verdict.FAILED
        if not self._are(_Status.DONE):
            return Verdict.MEASURING
        if self.difference is None:
            return Verdict.UNJUDGED
        return Verdict.PASSED if self.difference.mean >= -self.gate.max_loss - _EQUAL else Verdict.BELOW

    @property
    def sentence(self) -> str:
        """The figures in words: "+0.040 nDCG@10 [0.010, 0.070], 3 of 50 queries worse"."""
        found = self.difference
        if found is None:
            return {
                Verdict.UNJUDGED: "no query has judgments in both runs",
                Verdict.FAILED: "a run failed",
                Verdict.MEASURING: "being measured",
            }.get(self.verdict, "not measured")
        figures = f"{found.mean:+.3f} {self.objective.label} [{found.low:.3f}, {found.high:.3f}]"
        return f"{figures}, {found.losses} of {found.queries} queries worse"

    def _are(self, status: EvaluationRun.Status) -> bool:
        found = [run.status for run in (self.live, self.candidate) if run is not None]
        return any(it == status for it in found) if status == _Status.FAILED else all(it == status for it in found)

    def as_json(self) -> dict[str, Any]:
        """Return the result for JSON and the audit log."""
        found = self.difference
        return {
            "question_set": self.gate.question_set.slug,
            "measure": self.objective.label,
            "max_loss": self.gate.max_loss,
            "verdict": self.verdict.value,
            "mean": found.mean if found else None,
            "low": found.low if found else None,
            "high": found.high if found else None,
            "p_value": found.p_value if found else None,
            "queries": found.queries if found else 0,
            "better": found.wins if found else 0,
            "worse": found.losses if found else 0,
            "live_run": str(self.live.pk) if self.live else None,
            "candidate_run": str(self.candidate.pk) if self.candidate else None,
        }


def are_passed(results: Iterable[GateResult]) -> bool:
    """Return whether every gate is passed."""
    return all(it.verdict is Verdict.PASSED for it in results)


def set_gate(
    question_set: QuestionSet, *, preset: str = "", objective: Objective, max_loss: float, actor: Principal
) -> Gate:
    """Store the gate of a set for a preset, or with no name for every preset; raise InvalidRequestError."""
    if preset not in {"", *TUNED}:
        raise InvalidRequestError("A gate guards a preset whose numbers can be changed, or every one of them.")
    checked_objective(objective)
    if not 0 <= max_loss <= 1:
        raise InvalidRequestError("The loss that a gate allows must be between 0 and 1.")
    stored = {"measure": objective.measure, "cutoff": objective.cutoff, "max_loss": max_loss}
    with transaction.atomic():
        gate, _ = Gate.objects.update_or_create(question_set=question_set, preset=preset, defaults=stored)
        audit.record("gate.set", actor=actor.user, subject=question_set.slug, preset=preset, **stored)
    return gate


def remove_gate(question_set: QuestionSet, *, preset: str, actor: Principal) -> None:
    """Delete a gate; raise NotFoundError if there is none."""
    unknown = NotFoundError("This question set is no gate of that preset.")
    with transaction.atomic():
        first_or(unknown, question_set.gates.filter(preset=preset)).delete()
        audit.record("gate.removed", actor=actor.user, subject=question_set.slug, preset=preset)


def gates_of(preset: Preset) -> list[Gate]:
    """Return the gates of a preset, its own and those of every preset; of both on one set, its own."""
    found = Gate.objects.filter(preset__in=("", preset.name)).select_related("question_set").order_by("preset")
    chosen = {gate.question_set_id: gate for gate in found}
    return sorted(chosen.values(), key=lambda gate: gate.question_set.name)


def checked(preset: Preset, version: PresetVersion | None, principal: Principal) -> list[GateResult]:
    """Return what every gate of a preset says of a version, None for the shipped defaults, in place of the live one.

    Only runs count that searched in the principal's whole scope and nowhere else, of this release and embedding model,
    with the set's cases of now, not older than a day and than the last judgment of these cases.
    """
    values = _both(preset, version)
    return [GateResult(it, *(_newest(it, preset, one, principal) for one in values)) for it in gates_of(preset)]


def queue_missing(
    preset: Preset, version: PresetVersion | None, principal: Principal, *, again: bool = False
) -> list[EvaluationRun]:
    """Queue the runs that the gates of a preset need, or `again` all of them; the caller wakes a worker.

    Raises as `queue_run` does.
    """
    results = checked(preset, version, principal)
    with transaction.atomic():
        return [
            runs.queue_run(*asked, principal=principal) for asked in _missing(preset, version, results, again=again)
        ]


def measure_missing(preset: Preset, version: PresetVersion | None, principal: Principal) -> list[GateResult]:
    """Measure here what the gates of a preset need, and return what they say; raises as `queue_run` does."""
    for asked in _missing(preset, version, checked(preset, version, principal), again=False):
        runs.run_now(*asked, principal=principal)
    return checked(preset, version, principal)


def _both(preset: Preset, version: PresetVersion | None) -> tuple[_Values, _Values]:
    """Return the numbers of the live version and of a version, as differences from the shipped defaults."""
    candidate: PresetConfig = preset.defaults
    if version is not None:
        candidate, _ = fitted(preset, version.number, version.values)
    return preset.changes(configuration_of(preset).config), preset.changes(candidate)


def _missing(
    preset: Preset, version: PresetVersion | None, results: Sequence[GateResult], *, again: bool
) -> list[tuple[QuestionSet, runs.RunRequest]]:
    numbers = configuration_of(preset).number, version.number if version else SHIPPED
    names = [f"version {it}" if it else "shipped defaults" for it in numbers]
    wanted = []
    for result in results:
        known: list[_Values] = []
        for run, name, values in zip((result.live, result.candidate), names, _both(preset, version), strict=True):
            is_known = run is not None and (run.is_open or (run.status == _Status.DONE and not again))
            if not is_known and values not in known:
                known.append(values)
                asked = runs.RunRequest(
                    preset.name, values=values, name=f"Gate: {name}", trigger=EvaluationRun.Trigger.GATE
                )
                wanted.append((result.gate.question_set, asked))
    return wanted


def _newest(gate: Gate, preset: Preset, values: _Values, principal: Principal) -> EvaluationRun | None:
    """Return the newest run of these numbers that counts, one that waits or runs before one that is done."""
    found = usual(runs.runs_for(principal)).filter(
        question_set=gate.question_set,
        preset=preset.name,
        values=dict(values),
        counts=EvaluationRun.Counts.PEOPLE,
        trial=None,
        connection_ids__contains=searched_connections(principal),
    )
    if waiting := found.filter(status__in=(_Status.QUEUED, _Status.RUNNING)).first():
        return waiting
    queries = gate.question_set.cases.values_list("query", flat=True)
    ended = found.filter(
        status__in=(_Status.DONE, _Status.FAILED),
        started_at__gte=_fresh_since(queries, principal),
        release=VERSION,
        index=runtime.resources().encoder.name,
    )
    return ended.filter(Q(status=_Status.FAILED) | Q(set_version=gate.question_set.version)).first()


def _fresh_since(queries: Iterable[str], principal: Principal) -> Any:  # noqa: ANN401 -- a moment
    judged = Judgment.objects.filter(
        query__in={normalised_query(it) for it in queries}, document__connection__in=scope_for(principal).connection_ids
    ).aggregate(at=Max("at"))["at"]
    oldest = timezone.now() - _MAX_AGE
    return max(oldest, judged) if judged else oldest
