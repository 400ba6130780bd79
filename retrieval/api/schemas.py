"""Request and response bodies of CoreCube's API that several operations share."""

import json
from collections.abc import Mapping
from datetime import datetime
from types import NoneType
from typing import Annotated, Any, Final, Literal, TypeVar, get_args
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from retrieval.engine.pipeline import HYBRID
from retrieval.presets.catalog import DEFAULT_PRESET

_Schema = TypeVar("_Schema", bound=BaseModel)


def filled(schema: type[_Schema], source: object, /, **given: Any) -> _Schema:  # noqa: ANN401 -- fields of the schema
    """Return a response with the given fields, and the source's values in its other fields without a default."""
    others = (name for name, field in schema.model_fields.items() if field.is_required() and name not in given)
    return schema(**{name: getattr(source, name) for name in others}, **given)


#: Numbers by dotted name; the tunables' own declarations check them.
Numbers = Annotated[
    dict[str, Any], Field(max_length=200, json_schema_extra={"additionalProperties": {"type": "number"}})
]
Overrides = Annotated[
    Numbers,
    Field(description='Preset settings for this request: {"blend.dense": 0.5}. Costly settings can only be lowered.'),
]

TopK = Annotated[int, Field(ge=1, le=100, description="Number of hits to return.")]
Mode = Annotated[
    str,
    Field(
        default=HYBRID,
        max_length=40,
        description='"hybrid" runs every search leg of the preset; "dense" only vectors, "fulltext" only full text.',
    ),
]


class RequestBody(BaseModel):
    """A JSON object of a request; null for an optional field is the same as leaving the field out.

    Clients that serialise every field they know send null for those without a value. A field whose type has None
    keeps its null, which may differ from leaving it out: in a change it removes a value.
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe defaults in words: generators of TypeScript take a field with a default for a required one."""
        described = handler(core_schema)
        for field in handler.resolve_ref_schema(described).get("properties", {}).values():
            default = field.pop("default", None)
            if isinstance(default, str | int | float) and default != "":
                shown = json.dumps(default)
                field["description"] = f"{field.get('description', '')} Default: {shown}.".strip()
        return described

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: object) -> object:
        if not isinstance(given, Mapping):
            return given
        ignored = {
            name
            for name, field in cls.model_fields.items()
            if not field.is_required() and NoneType not in get_args(field.annotation)
        }
        return {name: value for name, value in given.items() if value is not None or name not in ignored}


class StrictBody(RequestBody):
    """A JSON object of a request that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


class ScopeIn(StrictBody):
    """Limits a search to some connections; it never gives more access."""

    include: list[str] = Field(default=[], description="Slugs of connections to search; empty means all visible ones.")
    exclude: list[str] = Field(default=[], description="Slugs of connections to leave out.")


class SearchIn(StrictBody):
    """A search."""

    query: str = Field(description="The query; presets read the first 500 characters.")
    preset: str = DEFAULT_PRESET
    mode: Mode
    top_k: TopK = 10
    scope: ScopeIn = Field(default_factory=ScopeIn)
    explain: bool = Field(default=False, description="Adds the score breakdown of each hit, and what each stage did.")
    overrides: Overrides = Field(default_factory=dict)
    draft: bool = Field(default=False, description="For admins: runs with the preset's draft.")
    group_by: Literal["document"] | None = Field(default=None, description="Adds `groups`: the hits by document.")


class Source(BaseModel):
    """A connection, as the source of a hit or document."""

    connection: str = Field(description="The connection's slug.")
    name: str
    compartment: str
    sensitivity: str
    trust: str


class Pages(BaseModel):
    """The pages of a chunk, from 1, both ends included."""

    start: int
    end: int


class Rows(BaseModel):
    """The table rows, records or lines of a chunk, from 1, both ends included."""

    start: int
    end: int
    unit: str = Field(description="row, record or line.")


class MatchOut(BaseModel):
    """A lexeme of the query that a chunk contains."""

    lexeme: str
    idf: float
    share: float = Field(description="Its contribution to the full-text score.")
    weight: str = Field(description="The field with the highest weight that contains it: A title, B headings, C text.")


class LiftOut(BaseModel):
    """Why the graph raised a hit: a name in the query or a link from another hit. Both ends of a link are in scope."""

    kind: str = Field(description="named, link, shared_name, hyperlink, triple, next or section.")
    amount: float = Field(description="Its contribution to the graph signal, whose maximum is 1.")
    name: str = Field(description="The linking name as written; empty for neighboring chunks.")
    source_chunk: str | None = Field(description="The chunk with the link; null for a name in the query.")
    sentence: str = Field(description="The sentence of that chunk that contains the name; empty for none.")


class RelevanceOut(BaseModel):
    """A language model's judgment of a hit."""

    relevance_score: float = Field(description="By the rubric, 0 to 100.")
    answerability: bool = Field(description="Whether the hit alone answers the query.")
    key_evidence: str = Field(description="The decisive words of the hit.")


class HitLedger(BaseModel):
    """All signals and contributions of a hit's score. A signal that was not computed is absent, never 0."""

    signals: dict[str, float]
    ranks: dict[str, int] = Field(description="Ranks, from 1, in the rankings that found it.")
    contributions: dict[str, float] = Field(description="The score is the sum of these.")
    matches: list[MatchOut]
    lifts: list[LiftOut] = Field(description="Contributions of names and links to the graph signal; helix only.")
    relevance: RelevanceOut | None = Field(default=None, description="Only if a language model judged the hit.")


class HitOut(BaseModel):
    """A chunk that was found."""

    rank: int
    chunk_id: str
    document_id: UUID
    external_id: str = Field(description="The document's id in its source.")
    position: int = Field(description="The chunk's place in its document, from 0.")
    title: str
    heading_path: list[str]
    text: str
    url: str = Field(description="The chunk on its document's page.")
    uri: str = Field(description="The document's URI in its source; empty for none.")
    source: Source
    source_type: str
    metadata: dict[str, str] = Field(description="The document's metadata.")
    pages: Pages | None
    rows: Rows | None
    modified_at: datetime | None
    synced_at: datetime
    score: float
    score_type: str
    explain: HitLedger | None = None


class GroupOut(BaseModel):
    """The hits of a document."""

    document_id: UUID
    external_id: str
    title: str
    url: str = Field(description="The document's page.")
    uri: str
    source: Source
    metadata: dict[str, str]
    score: float = Field(description="The score of its best hit.")
    ranks: list[int] = Field(description="The ranks of its hits, best first.")


class PassageOut(BaseModel):
    """A hit in the packed context, with its citation number."""

    number: int
    chunk_id: str
    header: str
    token_count: int


class NoteOut(BaseModel):
    """A message of a stage."""

    code: str
    text: str
    degraded: bool


class DropOut(BaseModel):
    """A chunk that a stage removed."""

    chunk_id: str
    reason: str


class SpanOut(BaseModel):
    """What one stage did."""

    stage: str
    parent: str
    ms: float
    hits_in: int
    hits_out: int
    drops: list[DropOut]
    notes: list[NoteOut]


class ExcludedOut(BaseModel):
    """A connection outside the scope, and the rule that excludes it."""

    connection: str
    name: str
    reason: str


class Explanation(BaseModel):
    """What each stage did; for admins, also the connections outside the scope."""

    spans: list[SpanOut]
    excluded: list[ExcludedOut] | None = Field(default=None, description="For admins.")


class AnswerabilityOut(BaseModel):
    """Whether the passages answer the query, computed from raw signals."""

    verdict: str = Field(description="answerable, partial or not_answerable.")
    confidence: float = Field(description="Probability that the passages contain the answer, 0 to 1.")
    calibrated: bool = Field(description="Whether the confidence is calibrated on judged questions.")
    reason: str = Field(description="Why the verdict is partial or not_answerable, or conflicting; else empty.")
    explanation: str = Field(description="The reason in a sentence, with its figures.")
    signals: dict[str, float] | None = Field(default=None, description="With `explain`: the raw signals.")
    contributions: dict[str, float] | None = Field(
        default=None, description="With `explain`: the contribution of each signal to the log-odds."
    )


class Timings(BaseModel):
    """Milliseconds: total and by stage."""

    total_ms: float
    stages: dict[str, float]


class SearchOut(BaseModel):
    """The result of a search."""

    trace_id: UUID
    preset: str
    preset_version: str = Field(description="Fingerprint of the stages and all settings.")
    version: int = Field(description="The preset's version; 0 for the shipped defaults.")
    mode: str = Field(description="hybrid, or the only search leg.")
    hits: list[HitOut]
    groups: list[GroupOut] | None = Field(default=None, description="With `group_by`: documents by their best hit.")
    passages: list[PassageOut]
    answerability: AnswerabilityOut | None = Field(description="None if the deadline passed first.")
    degraded: list[str] = Field(description="Codes of fallbacks and early stops.")
    skipped: str = Field(description="Why the search was skipped; empty if it ran.")
    timings: Timings
    explain: Explanation | None = None


class ErrorDetail(BaseModel):
    """Why a request failed."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorOut(BaseModel):
    """An error response."""

    error: ErrorDetail


#: Statuses of error responses of all operations; the API has their schema.
REFUSALS: Final[Mapping[int, None]] = dict.fromkeys((400, 401, 403, 404, 422, 429, 503))
#: Statuses of error responses of operations that can conflict with another change.
CHANGE_REFUSALS: Final[Mapping[int, None]] = {**REFUSALS, 409: None}


def links(module: str, parameter: str, field: str, *functions: str) -> dict[str, Any]:
    """Return OpenAPI links from a response's field to the path parameter of other operations of a module."""
    prefix = module.replace(".", "_")
    return {
        "links": {
            name: {"operationId": f"{prefix}_{name}", "parameters": {parameter: f"$response.body#/{field}"}}
            for name in functions
        }
    }
