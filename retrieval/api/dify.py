"""POST /api/dify/retrieval: an external knowledge base for Dify, with errors in Dify's format."""

import logging
import math
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Final, Literal
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI, Router
from ninja.errors import AuthenticationError, HttpError, ValidationError
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from corecube import errors
from corecube.access import ScopeRequest
from corecube.api import KeyAuth, is_outage, make_api, principal_of
from corecube.data import read_toml
from corecube.sanitise import storable
from retrieval.answers.memory.recall import usable_preset
from retrieval.api.schemas import RequestBody
from retrieval.api.shape import document_path
from retrieval.engine.metadata_conditions import Condition, Conditions, Value
from retrieval.engine.types import Hit, ScoreType
from retrieval.models import Document, SearchRecord
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

logger = logging.getLogger(__name__)

_TextOperator = Literal["contains", "not contains", "start with", "end with", "is", "is not", "in", "not in"]
_OtherOperator = Literal["empty", "not empty", "=", "≠", ">", "<", "≥", "≤", "before", "after"]
Operator = Literal[_TextOperator, _OtherOperator]
_Name = Annotated[str, StringConstraints(max_length=100)]
_Value = Annotated[str, StringConstraints(max_length=1000)]
_Number = Annotated[float, Field(allow_inf_nan=False)]
router = Router(tags=["dify"])
_BAD_HEADER: Final = 1001
_BAD_KEY: Final = 1002
_NO_KNOWLEDGE: Final = 2001
_MAX_HITS: Final = 100  #: Hits to read if conditions may remove some of them.
_MAX_MAXSIM: Final = 1.5  #: Highest value of the blend plus half of the late interaction.
_MAX_RUBRIC: Final = 100.0


class RetrievalSetting(RequestBody):
    """The number of hits and the score threshold."""

    top_k: int = Field(default=5, ge=1, le=100)
    score_threshold: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)


class ConditionIn(RequestBody):
    """One condition on a document's metadata."""

    name: _Name | Annotated[list[_Name], Field(min_length=1, max_length=20)] = Field(
        description="A metadata field, or several of which one must meet the condition."
    )
    comparison_operator: Operator
    value: _Value | _Number | Annotated[list[_Value], Field(max_length=100)] | None = None


class MetadataCondition(RequestBody):
    """Conditions on a document's metadata."""

    logical_operator: Literal["and", "or"] = "and"
    conditions: list[ConditionIn] = Field(default=[], max_length=20)


class FilterIn(ConditionIn):
    """A condition without unknown fields."""

    model_config = ConfigDict(extra="forbid")


class FiltersIn(MetadataCondition):
    """Conditions without unknown fields."""

    model_config = ConfigDict(extra="forbid")

    conditions: list[FilterIn] = Field(default=[], max_length=20)  # type: ignore[assignment]  # narrower


def conditions_of(given: MetadataCondition | None) -> Conditions | None:
    """Return the engine's conditions, None for none."""
    if given is None or not given.conditions:
        return None
    return Conditions(tuple(map(_condition, given.conditions)), all_of=given.logical_operator == "and")


def _condition(given: ConditionIn) -> Condition:
    names = [given.name] if isinstance(given.name, str) else given.name
    value: Value
    match given.value:
        case list(texts):
            value = tuple(map(storable, texts))
        case str(text):
            value = storable(text)
        case number:
            value = number
    return Condition(tuple(map(storable, names)), given.comparison_operator, value)


class RetrievalIn(RequestBody):
    """A query to a knowledge base."""

    knowledge_id: str = Field(max_length=50, description='A connection\'s slug, or "all" for all that the key may see.')
    query: str
    retrieval_setting: RetrievalSetting = Field(default_factory=RetrievalSetting)
    metadata_condition: MetadataCondition | None = None


class RecordOut(BaseModel):
    """A hit."""

    content: str
    score: float = Field(ge=0, le=1)
    title: str
    metadata: dict[str, str] = Field(description="The document's metadata and the chunk's source.")


class RetrievalOut(BaseModel):
    """The hits, best first."""

    records: list[RecordOut]


class DifyError(BaseModel):
    """An error: 1001 no bearer token, 1002 an invalid one, 2001 unknown knowledge base, else the HTTP status."""

    error_code: int
    error_msg: str


_REFUSALS: Final = dict.fromkeys((400, 403, 404, 422, 429, 503))


def dify_api() -> NinjaAPI:
    """Return Dify's API for external knowledge bases, for programs with a key."""
    api = make_api(name="dify", auth=[KeyAuth()], error=DifyError, **read_toml("retrieval", "apis.toml")["dify"])
    handlers: dict[type[Exception], Callable[..., HttpResponse]] = {
        errors.CoreCubeError: _corecube_error,
        ValidationError: _invalid,
        AuthenticationError: _no_header,
        HttpError: _not_json,
        Exception: _unexpected,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)
    api.add_router("", router)
    return api


@router.post("/retrieval", response={200: RetrievalOut, **_REFUSALS}, summary="Retrieve")
def retrieve(request: HttpRequest, body: RetrievalIn) -> RetrievalOut:
    """Find the chunks that answer a query in one connection or in all that the key's user may see."""
    principal = principal_of(request)
    wanted, conditions = body.retrieval_setting, conditions_of(body.metadata_condition)
    outcome = search(
        SearchRequest(
            text=body.query,
            preset=usable_preset(principal),
            top_k=_MAX_HITS if conditions else wanted.top_k,
            narrowing=ScopeRequest() if body.knowledge_id == "all" else ScopeRequest((body.knowledge_id,)),
            surface=SearchRecord.Surface.API,
        ),
        principal=principal,
    )
    ids = {hit.chunk_id.document_id for hit in outcome.hits}
    documents = Document.objects.in_scope(outcome.state.scope).in_bulk(list(ids))
    records = (_record(hit, outcome, documents, request) for hit in outcome.hits)
    matching = [
        record
        for record in records
        if record.score >= wanted.score_threshold and (conditions is None or conditions.met_by(record.metadata))
    ]
    return RetrievalOut(records=matching[: wanted.top_k])


def _record(hit: Hit, outcome: SearchOutcome, documents: Mapping[UUID, Document], request: HttpRequest) -> RecordOut:
    chunk, document = hit.chunk, documents.get(hit.chunk_id.document_id)
    stored = {name: str(value) for name, value in document.metadata.items()} if document else {}
    url = request.build_absolute_uri(document_path(*hit.chunk_id))
    facts = {
        "title": chunk.title,
        "path": chunk.uri or url,
        "url": url,
        "document_id": str(hit.chunk_id.document_id),
        "chunk_id": str(hit.chunk_id),
        # Raises for a connection outside the scope, so that such a chunk fails the request and is not shown.
        "connection": outcome.state.scope.inclusion(chunk.connection_id).connection.slug,
        "source_type": chunk.source_type,
        "modified_at": chunk.modified_at.isoformat() if chunk.modified_at else "",
    }
    # Scaled to 0 to 1 in the same order.
    score = hit.score
    if hit.score_type is ScoreType.LOGIT:
        score = 1 / (1 + math.exp(-max(-60.0, min(60.0, score))))
    elif hit.score_type is ScoreType.MAXSIM:
        score /= _MAX_MAXSIM
    elif hit.score_type in {ScoreType.RUBRIC, ScoreType.MAPPED}:
        score /= _MAX_RUBRIC
    return RecordOut(
        content=chunk.text, score=max(0.0, min(1.0, score)), title=chunk.title, metadata={**stored, **facts}
    )


def _answer(status: int, code: int, message: str) -> HttpResponse:
    return JsonResponse({"error_code": code, "error_msg": message}, status=status)


def _no_header(request: HttpRequest, error: HttpError) -> HttpResponse:  # noqa: ARG001 -- ninja's signature
    message = "Invalid Authorization header format. Expected 'Bearer <api-key>' format."
    return _answer(HTTPStatus.FORBIDDEN, _BAD_HEADER, message)


def _corecube_error(request: HttpRequest, error: errors.CoreCubeError) -> HttpResponse:
    if isinstance(error, errors.NotAuthenticatedError):
        if not request.headers.get("Authorization", "").lower().startswith("bearer "):
            return _no_header(request, HttpError(403, ""))
        return _answer(HTTPStatus.FORBIDDEN, _BAD_KEY, str(error))
    if isinstance(error, errors.UnknownConnectionError):
        return _answer(HTTPStatus.NOT_FOUND, _NO_KNOWLEDGE, "The knowledge does not exist.")
    if is_outage(error):
        return _unexpected(request, error)
    if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error("dify.failed code=%s", error.code, exc_info=error)
    response = _answer(error.status, error.status, str(error))
    if isinstance(error, errors.RefusedForNowError):
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response


def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:  # noqa: ARG001 -- ninja's signature
    first = error.errors[0]
    message = f"{'.'.join(map(str, first['loc'][2:])) or 'body'}: {first['msg']}."
    return _answer(HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.UNPROCESSABLE_ENTITY, message)


def _not_json(request: HttpRequest, error: HttpError) -> HttpResponse:  # noqa: ARG001 -- ninja's signature
    return _answer(error.status_code, error.status_code, "The body is not valid JSON.")


def _unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.error("dify.failed path=%s", request.path, exc_info=error)
    if is_outage(error):
        return _answer(
            HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.SERVICE_UNAVAILABLE, str(errors.DatabaseUnavailableError())
        )
    return _answer(HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.INTERNAL_SERVER_ERROR, str(errors.CoreCubeError()))
