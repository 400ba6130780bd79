"""Answerability figures as JSON and as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from retrieval.evaluation.answerability import Survey, survey
from retrieval.evaluation.answerability_figures import (
    RIDGE,
    Condition,
    alone,
    figures,
    judged_by,
    out_of_fold,
    weighted,
)
from retrieval.evaluation.corpus import remove
from retrieval.evaluation.datasets import load_dataset
from retrieval.index import active
from retrieval.ranking.answerability.model import fitted_from_nothing, shipped

Json = dict[str, Any]

_PARTS: Final = {
    "unseen_topics": "fitted on other topics",
    "same_topics": "fitted on other questions of the same topics",
    "without_sentences": "fitted on other topics, without sentence cosines",
    "alone": "fitted on other topics, each condition by itself",
    "shipped": "the shipped model",
    "unseen_collection": "fitted here, measured on the unseen collection",
}


def measure(directory: Path, others: Sequence[Path], unseen: Path | None, *, how: Survey, keep: bool) -> Json:
    """Return the figures on a collection from fits on its other topics, and the model fitted on all topics.

    With `unseen` also the figures of that model on another collection. Unless `keep`, the collections are deleted.
    """
    dataset, foreign = load_dataset(directory), [load_dataset(other) for other in others]
    result = survey(dataset, foreign, how)
    measured = result.measured
    topics, single = [it.group for it in measured], [str(place) for place in range(len(measured))]
    model = fitted_from_nothing([it for it in weighted(measured) if it.signals], ridge=RIDGE)
    report: Json = {
        "collection": dataset.name,
        "others": [it.name for it in foreign],
        "answerable": sum(it.condition is Condition.ANSWERABLE for it in measured),
        "missed_by_the_search": result.missed,
        "unseen_topics": asdict(figures(measured, out_of_fold(measured, topics, quick=False))),
        "same_topics": asdict(figures(measured, out_of_fold(measured, single, quick=False))),
        "without_sentences": asdict(figures(measured, out_of_fold(measured, topics, quick=True))),
        "alone": {"rows": [asdict(row) for row in alone(measured)]},
        "shipped": asdict(judged_by(shipped(active.encoder().name), measured)),
        "model": model.to_json(),
    }
    if not keep:
        remove(result.corpus)
    if unseen is not None:
        new = survey(load_dataset(unseen), [], how)
        report["unseen_collection"] = {"collection": unseen.resolve().name, **asdict(judged_by(model, new.measured))}
        if not keep:
            remove(new.corpus)
    return report


def table(report: Mapping[str, Any]) -> str:
    """Return the figures as text."""
    missed = f"{report['missed_by_the_search']} more with passages that the search missed"
    lines = [
        f"{report['collection']}: {report['answerable']} questions answered by their passages ({missed})",
        "",
        f"  {'AUROC against those':<24}{'questions':>10}  {'95 % interval':>24}",
    ]
    for name, title in _PARTS.items():
        if name in report:
            part = report[name]
            rows = [
                f"  {row['condition'].replace('_', ' '):<24}{row['questions']:>10}  {_interval(row['auroc'])}"
                for row in part["rows"]
            ]
            error = [f"  {'calibration error':<24}{'':>10}  {_interval(part['error'])}"] if "error" in part else []
            lines += ["", f"  {title}", *(rows + error)]
    lines += ["", "  confidence   answerable   questions", *map(_bin, report["unseen_topics"]["bins"])]
    return "\n".join(lines)


def calibration(figures: Mapping[str, Any], *, stored: bool) -> str:
    """Return a fit's figures as text."""
    before = figures["shipped"]
    counts = f"{figures['answerable']} answerable and {figures['not_answerable']} not answerable questions"
    lines = [
        f"{counts} ({figures['left_out']} left out: no hits, or another score type)",
        "",
        f"  {'':<12} {'AUROC':>8} {'ECE':>8}",
        f"  {'shipped':<12} {before['auroc']:>8.3f} {before['ece']:>8.3f}",
        f"  {'calibrated':<12} {figures['auroc']:>8.3f} {figures['ece']:>8.3f}   cross-validated",
        "",
        "  confidence   answerable   questions",
        *map(_bin, figures["bins"]),
        "",
        "Stored: searches use it from now on." if stored else "Nothing was stored.",
    ]
    return "\n".join(lines)


def _interval(value: Mapping[str, float]) -> str:
    return f"{value['value']:>8.3f} [{value['low']:.3f}, {value['high']:.3f}]"


def _bin(row: Mapping[str, float]) -> str:
    return f"  {row['confidence']:>10.3f} {row['answerable']:>12.3f} {row['count']:>11}"
