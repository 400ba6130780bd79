"""What a run searches and answers with, where that is not what the installation uses."""

from dataclasses import dataclass, replace
from typing import Final

from django.db.models import QuerySet

from corecube.errors import InvalidRequestError
from retrieval.encoders.reranker import Reranker
from retrieval.evaluation.answers import QUOTES
from retrieval.evaluation.runner import without_judge
from retrieval.index.embedding_index import progress
from retrieval.models import EmbeddingIndex, EvaluationRun, LanguageModel
from retrieval.search import runtime
from retrieval.stages.resources import Resources


@dataclass(frozen=True, slots=True)
class Components:
    """The choices of a run; by default what the installation uses."""

    index: int | None = None  #: The number of another embedding index.
    is_reranked: bool = True  #: False for no reranker.
    language_model: str = ""  #: Slug of the model that judges and answers where it may; "extractive" for quotes alone.


USUAL: Final = Components()


def of_run(run: EvaluationRun) -> Components:
    """Return the choices of a run."""
    return Components(run.index_number, run.is_reranked, run.language_model)


def usual(runs: QuerySet[EvaluationRun]) -> QuerySet[EvaluationRun]:
    """Return the runs with what the installation uses, without those of sweeps, which measure a part of the queries."""
    return runs.filter(index_number=None, is_reranked=True, language_model="", trial=None)


def check(components: Components) -> None:
    """Raise InvalidRequestError for what there is not, and for an index in which chunks have no vector."""
    if components.index is not None:
        _index(components.index)
    _check_model(components.language_model)
    if not components.is_reranked and runtime.reranker() is None:
        raise InvalidRequestError("There is no reranker to leave out.")


def other_indexes() -> list[EmbeddingIndex]:
    """Return the complete indexes that are not active."""
    found = EmbeddingIndex.objects.exclude(status=EmbeddingIndex.Status.ACTIVE).order_by("pk")
    return [row for row in found if not progress(row).missing]


def resources_for(components: Components) -> Resources:
    """Return what searches with these components need.

    Raises InvalidRequestError as `check` does for the index and the language model, ModelMissingError and ConfigError
    for an embedding model that cannot be loaded.
    """
    _check_model(components.language_model)
    resources = runtime.resources()
    if components.index is not None:
        resources = runtime.resources_of(_index(components.index))
    if not components.is_reranked:
        resources = replace(resources, reranker=None)
    return without_judge(resources) if components.language_model == QUOTES else resources


def reranker_name(reranker: Reranker | None) -> str:
    """Return the name of a reranker; empty for none."""
    return reranker.name if reranker else ""


def _check_model(slug: str) -> None:
    if slug not in {"", QUOTES} and not LanguageModel.objects.filter(slug=slug, is_enabled=True).exists():
        raise InvalidRequestError(f"There is no enabled language model {slug!r}.")


def _index(number: int) -> EmbeddingIndex:
    row = EmbeddingIndex.objects.filter(pk=number).first()
    if row is None:
        raise InvalidRequestError(f"There is no embedding index {number}.")
    if missing := progress(row).missing:
        raise InvalidRequestError(f"{missing:,} chunks have no vector in embedding index {number} yet.")
    return row
