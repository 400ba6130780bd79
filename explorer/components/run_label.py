"""What an evaluation run measured, in a few words."""

from collections.abc import Iterator, Mapping
from typing import Final

from explorer.components.preset_numbers import version_label
from explorer.wording import preset_title
from retrieval.evaluation.answers import QUOTES
from retrieval.models import EvaluationRun

DRAFT: Final = " draft"  #: Behind a preset's name: its draft.
_OTHER_GRADES: Final[Mapping[str, str]] = {
    EvaluationRun.Counts.MODEL: ", with model grades",
    EvaluationRun.Counts.USE: ", with grades from use",
}


def label(run: EvaluationRun) -> str:
    """Return what a run measured, in a few words."""
    changed = f", {len(run.overrides)} changed" if run.overrides else ""
    name = f", {run.name[0].lower()}{run.name[1:]}" if run.name and run.trigger else ""
    other = _OTHER_GRADES.get(run.counts, "")
    chosen = "".join(f", {it}" for it in _components(run))
    return f"{preset_title(run.preset)}{_version(run)}{changed}{other}{chosen}{name}"


def _version(run: EvaluationRun) -> str:
    """Return the version that a run measured; empty before it has begun, and for numbers of no version."""
    if run.is_draft:
        return f"{DRAFT} of version {run.version}" if run.version else DRAFT
    return "" if run.version is None or run.is_fixed else f", {version_label(run.version)}"


def _components(run: EvaluationRun) -> Iterator[str]:
    """Yield what a run uses in place of what the installation does."""
    if run.index_number is not None:
        yield f"index {run.index_number}"
    if not run.is_reranked:
        yield "no reranker"
    if run.language_model:
        yield "quotes" if run.language_model == QUOTES else run.language_model
