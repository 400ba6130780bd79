"""A run as files: JSON, CSV, and TREC runs and qrels."""

from collections import Counter
from dataclasses import asdict, astuple, fields
from typing import Any, Final

from retrieval.answers.events import Outcome
from retrieval.evaluation.case_answers import ANSWER_MEASURES
from retrieval.evaluation.qrels import csv_line
from retrieval.evaluation.question_sets import CaseResult, SetResult
from retrieval.models import EvaluationRun
from retrieval.ranking.measures import Measures

_MEASURES: Final = tuple(field.name for field in fields(Measures))


def trec_run(result: SetResult) -> str:
    """Return the rankings as a TREC run file: query number, Q0, passage, rank, score, tag.

    Queries count from 1 in the order of the results; the score falls with the rank.
    """
    return "".join(
        f"{number} Q0 {it.document_id}:{it.content_hash} {rank} {1 / rank:.6f} {result.preset}\n"
        for number, case in enumerate(result.cases, start=1)
        for rank, it in enumerate(case.ranking, start=1)
    )


def trec_qrels(result: SetResult) -> str:
    """Return the grades that a run was measured against as TREC qrels, for the queries of `trec_run`."""
    return "".join(
        f"{number} 0 {it.document_id}:{it.content_hash} {grade}\n"
        for number, case in enumerate(result.cases, start=1)
        for it, grade in case.grades.items()
    )


def csv_of(result: SetResult) -> str:
    """Return the figures of each query as CSV: of its search, of its answer, fallbacks, and what was spent."""
    facts = ("verdict", "confidence", "milliseconds", "tokens", "degraded")
    answer = ("outcome", *ANSWER_MEASURES, "provider", "answer_milliseconds", "model_tokens", "cost")
    head = ("query", "answerable", *_MEASURES, *facts, *answer)
    return csv_line(head) + "".join(map(_csv_case, result.cases))


def _csv_case(case: CaseResult) -> str:
    measures = (getattr(case.measures, name, None) for name in _MEASURES)
    facts = (case.verdict, case.confidence, round(case.milliseconds, 1), case.tokens, " ".join(case.degraded))
    answer: tuple[object, ...] = (None,) * (len(ANSWER_MEASURES) + 3)
    if it := case.answer:
        answer = (it.outcome, *astuple(it.measures), it.provider, round(it.milliseconds, 1))
    known = (*measures, *facts, *answer, case.spent.tokens, case.spent.cost)
    return csv_line((case.query, "yes" if case.is_answerable else "no", *("" if it is None else it for it in known)))


def as_json(run: EvaluationRun, result: SetResult) -> dict[str, Any]:
    """Return a run with its figures and the result of each case, for JSON."""
    return {**figures_json(run, result), "results": [_case_json(it) for it in result.cases]}


def figures_json(run: EvaluationRun, result: SetResult) -> dict[str, Any]:
    """Return a run with its figures, for JSON."""
    return {
        "id": str(run.pk),
        "name": run.name,
        "question_set": run.question_set.slug,
        "preset": run.preset,
        "draft": run.is_draft,
        "overrides": run.overrides,
        "values": run.values,
        "trigger": run.trigger,
        "set_version": run.set_version,
        "counts": run.counts,
        "has_answers": run.has_answers,
        "index": run.searched_index or run.index_number,
        "reranked": run.is_reranked,
        "language_model": run.language_model,
        "version": run.version,
        "fingerprint": run.fingerprint,
        "release": run.release,
        "embedding_model": run.index,
        "reranker": run.reranker,
        "configuration": run.configuration_hash,
        "status": run.status,
        "message": run.message,
        "created_at": run.created_at.isoformat(),
        "finished_at": run.finished_at.isoformat() if run.finished_at else None,
        "cases": len(result.cases),
        "measured": result.measured,
        "measures": asdict(result.means),
        "rightly_refused": result.refusals,
        "wrongly_refused": result.wrongly_refused,
        "answerability": asdict(result.answerability) if result.answerability else None,
        "latency_ms": result.milliseconds,
        "mean_tokens": result.tokens,
        "degraded": result.degraded,
        "answers": answers_json(result) if run.has_answers else None,
        "model_tokens": result.spent.tokens,
        "cost": float(result.spent.cost),
    }


def answers_json(result: SetResult) -> dict[str, Any]:
    """Return the figures of the answers of a run, for JSON."""
    outcomes = Counter(it.outcome.value for it in result.answers)
    return {
        "count": len(result.answers),
        "measures": asdict(result.answer_means),
        "outcomes": {it.value: outcomes[it.value] for it in Outcome},
        "latency_ms": result.answer_milliseconds,
    }


def _case_json(case: CaseResult) -> dict[str, Any]:
    return {
        "query": case.query,
        "answerable": case.is_answerable,
        "measures": asdict(case.measures) if case.measures else None,
        "verdict": case.verdict,
        "confidence": case.confidence,
        "milliseconds": round(case.milliseconds, 1),
        "tokens": case.tokens,
        "degraded": case.degraded,
        "other_grades": case.other_grades,
        "answer": asdict(case.answer) if case.answer else None,
        "model_tokens": case.spent.tokens,
        "cost": float(case.spent.cost),
        "ranking": [{"document": str(it.document_id), "passage": it.content_hash} for it in case.ranking],
        "grades": [
            {"document": str(it.document_id), "passage": it.content_hash, "grade": grade}
            for it, grade in case.grades.items()
        ],
    }
