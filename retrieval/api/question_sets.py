"""Question sets over HTTP, for admins: make one, read it with its agreement, import, draw from the log."""

from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import Count
from django.http import HttpRequest
from ninja import Path, Router
from pydantic import BaseModel, Field

from corecube.access import Principal, scope_for
from corecube.api import principal_of
from corecube.database import first_or
from corecube.errors import NotFoundError
from corecube.sanitise import storable
from retrieval.api.managed import installation_admin
from retrieval.api.schemas import CHANGE_REFUSALS, REFUSALS, StrictBody, filled, links
from retrieval.evaluation.drawing import MAX_DRAWN, draw
from retrieval.evaluation.imports import MAX_CHARACTERS, import_lines, read_lines
from retrieval.evaluation.judging import agreement, rated_passages
from retrieval.evaluation.question_sets import set_named
from retrieval.models import QuestionSet

router = Router(tags=["evaluation"])
Slug = Annotated[str, Path(max_length=50)]


class QuestionSetIn(StrictBody):
    """A new question set."""

    name: str = Field(min_length=1, max_length=120)


class QuestionSetOut(BaseModel):
    """A question set."""

    slug: str
    name: str
    version: int = Field(description="Counts the changes of its cases.")
    cases: int


class QuestionSetsOut(BaseModel):
    """The question sets, by name."""

    question_sets: list[QuestionSetOut]


class CaseOut(BaseModel):
    """A question of a set."""

    id: UUID
    query: str
    answerable: bool
    user: str | None = Field(description="Whose access it is measured with; null for that of the user of a run.")
    tags: list[str]
    answers: list[list[str]] = Field(
        description="What an answer must contain: each part is a list of alternatives, one of which must appear."
    )


class AgreementOut(BaseModel):
    """How well raters agree on the passages that they share."""

    raters: list[str]
    passages: int
    kappa: float | None = Field(description="1 is full agreement, 0 chance; Cohen's for two raters, Fleiss' for more.")


class QuestionSetDetailOut(QuestionSetOut):
    """A question set with its cases, and the agreement of its raters within the principal's scope."""

    questions: list[CaseOut]
    agreement: list[AgreementOut]
    disputed: int = Field(description="Passages with different grades.")
    decided: int = Field(description="Those of them with a final grade.")


class ImportIn(StrictBody):
    """Files that belong together, as text."""

    files: list[Annotated[str, Field(max_length=MAX_CHARACTERS)]] = Field(min_length=1, max_length=10)


class ImportedOut(BaseModel):
    """What an import added."""

    cases: int
    judgments: int
    skipped: int = Field(description="Grades of documents that do not exist or are outside the principal's scope.")


class DrawIn(StrictBody):
    """What to draw from the log."""

    sample: Literal["random", "frequent", "refused", "disliked", "unsure", "slow"]
    number: int = Field(default=20, ge=1, le=MAX_DRAWN)
    seed: int | None = Field(default=None, ge=0, lt=2**31, description="For the same draw from the same log.")


class DrawnOut(BaseModel):
    """How many questions were added."""

    cases: int


def set_of(slug: str) -> QuestionSet:
    """Return a question set; raise NotFoundError for an unknown one."""
    unknown = NotFoundError("There is no question set with that slug.")
    return first_or(unknown, QuestionSet.objects.filter(slug=storable(slug)))


def admin_of(request: HttpRequest) -> Principal:
    """Return the principal of an admin's request; raise NotPermittedError for others and for a narrowed key."""
    principal = principal_of(request)
    installation_admin(principal)
    return principal


def _facts(it: QuestionSet, cases: int) -> dict[str, Any]:
    return {"slug": it.slug, "name": it.name, "version": it.version, "cases": cases}


@router.get("/evaluation/sets", response={200: QuestionSetsOut, **REFUSALS}, summary="List question sets")
def list_sets(request: HttpRequest) -> QuestionSetsOut:
    """Return the question sets. For admins."""
    admin_of(request)
    sets = QuestionSet.objects.annotate(size=Count("cases"))
    return QuestionSetsOut(question_sets=[QuestionSetOut(**_facts(it, it.size)) for it in sets])


@router.post(
    "/evaluation/sets",
    response={200: QuestionSetOut, **CHANGE_REFUSALS},
    openapi_extra={
        "responses": {200: links(__name__, "question_set", "slug", "read_set", "import_into_set", "draw_into_set")}
    },
    summary="Make a question set",
)
def make_set(request: HttpRequest, body: QuestionSetIn) -> QuestionSetOut:
    """Return the question set of a name, made if there is none. For admins."""
    made = set_named(body.name, actor=admin_of(request).user)
    return QuestionSetOut(**_facts(made, made.cases.count()))


@router.get(
    "/evaluation/sets/{question_set}", response={200: QuestionSetDetailOut, **REFUSALS}, summary="Read a question set"
)
def read_set(request: HttpRequest, question_set: Slug) -> QuestionSetDetailOut:
    """Return a set's cases, and how well its raters agree. For admins."""
    principal = admin_of(request)
    found = set_of(question_set)
    cases = list(found.cases.select_related("user"))
    known = agreement(rated_passages(found, scope_for(principal)))
    pairs = [([it.first, it.second], it.agreement) for it in known.pairs]
    if len(pairs) > 1:
        pairs.append((sorted({name for names, _ in pairs for name in names}), known.overall))
    return QuestionSetDetailOut(
        **_facts(found, len(cases)),
        questions=[
            CaseOut(
                id=it.pk,
                query=it.query,
                answerable=it.is_answerable,
                user=it.user.username if it.user else None,
                tags=it.tags,
                answers=it.answers,
            )
            for it in cases
        ],
        agreement=[AgreementOut(raters=names, passages=it.passages, kappa=it.kappa) for names, it in pairs],
        disputed=known.disputed,
        decided=known.decided,
    )


@router.post(
    "/evaluation/sets/{question_set}/import",
    response={200: ImportedOut, **CHANGE_REFUSALS},
    summary="Import questions and judgments",
)
def import_into_set(request: HttpRequest, question_set: Slug, body: ImportIn) -> ImportedOut:
    """Add the questions and grades of files, as lists, CSV, TSV, TREC, BEIR, Quepid or OpenSearch write them.

    Grades are stored as the principal's. For admins.
    """
    principal = admin_of(request)
    found = set_of(question_set)
    lines = read_lines(body.files, found)
    return filled(ImportedOut, import_lines(lines, found, actor=principal.user, scope=scope_for(principal)))


@router.post(
    "/evaluation/sets/{question_set}/draw",
    response={200: DrawnOut, **CHANGE_REFUSALS},
    summary="Draw questions from the log",
)
def draw_into_set(request: HttpRequest, question_set: Slug, body: DrawIn) -> DrawnOut:
    """Add questions of the last 90 days' log to a set, each with the access of its user. For admins."""
    principal = admin_of(request)
    drawn = draw(set_of(question_set), body.sample, body.number, actor=principal.user, seed=body.seed)
    return DrawnOut(cases=drawn)
