"""The five tools: names, arguments, results and functions. Only the key or token of a request identifies the caller."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel, Field, ValidationError

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.data import read_toml
from corecube.database import first_or
from corecube.errors import InvalidRequestError, NotFoundError
from corecube.scope import AccessScope
from retrieval.agents.sessions import Session
from retrieval.api import memory
from retrieval.api.evidence import gather_counted
from retrieval.api.schemas import StrictBody
from retrieval.api.shape import Absolute, document_path
from retrieval.engine.pipeline import Watch
from retrieval.engine.types import Hit
from retrieval.models import Chunk, Document, SearchRecord
from retrieval.models.document import id_in
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS
from retrieval.presets.consolidated.evidence.recovery import Presence
from retrieval.records.accesses import note_accesses
from retrieval.search.evidence_runs import MAX_SUBJECT, EvidenceRequest, SectionEvidence
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.section_sets import DEFAULT_SECTION_SET
from retrieval.search.service import search

MAX_CHARACTERS: Final = 100_000  #: Maximum length of the text that one call returns, in characters.
_MAX_SHARED: Final = 2000  #: Maximum overlap of two neighboring chunks, in characters (128 tokens).
_MIN_SHARED: Final = 20  #: A shorter overlap is a coincidence.
_MAX_ORDINAL_LENGTH: Final = 9
_MAX_NAME: Final = 60
_MAX_PASSAGES: Final = 4  #: Passages per section of a complete set.
_BUDGET_SECONDS: Final = 60.0  #: Seconds for all sections together.
_MAX_SNIPPET: Final = 400


class SearchToolIn(StrictBody):
    """A search."""

    query: str = Field(min_length=1, description="A question or keywords.")
    top_k: int = Field(default=10, ge=1, le=50, description="Number of results.")
    preset: str = Field(default=DEFAULT_PRESET, max_length=40, description=f"Search preset: {', '.join(PRESETS)}.")


class ResultOut(BaseModel):
    """A search result."""

    id: str = Field(description="Id for fetch: opens the passage; the part before the colon opens the document.")
    title: str
    heading_path: list[str]
    snippet: str = Field(description="Start of the passage.")
    url: str
    source: str = Field(description="Name of its connection.")
    score: float


class SearchToolOut(BaseModel):
    """Search results, best first."""

    results: list[ResultOut]
    verdict: str | None = Field(description="Whether they answer the query: answerable, partial or not_answerable.")
    explanation: str = Field(description="Why they do not, in a sentence.")
    trace_id: str


class FetchToolIn(StrictBody):
    """The document or passage to open."""

    id: str = Field(min_length=1, max_length=60, description="The id of a search result, or of a document.")


class FetchToolOut(BaseModel):
    """The text of a document or a passage."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]
    truncated: bool = Field(description="Whether the document is longer than the text; search finds later passages.")


def result_out(hit: Hit, outcome: SearchOutcome, absolute: Absolute) -> ResultOut:
    """Return a hit with the start of its text; raise KeyError for one outside the scope."""
    chunk = hit.chunk
    text = " ".join(chunk.text.split())
    return ResultOut(
        id=str(hit.chunk_id),
        title=chunk.title,
        heading_path=list(chunk.heading_path),
        snippet=text if len(text) <= _MAX_SNIPPET else f"{text[:_MAX_SNIPPET].rstrip()} …",
        url=absolute(document_path(*hit.chunk_id)),
        source=outcome.state.scope.inclusion(chunk.connection_id).connection.name,
        score=hit.score,
    )


@dataclass(frozen=True, slots=True)
class Caller:
    """The principal of a request, and the URLs of this server in it."""

    principal: Principal
    absolute: Absolute
    #: Returns the principal as it is now; raises NotAuthenticatedError once it has no access any more.
    again: Callable[[], Principal]
    watch: Watch | None = None  #: Follows a search.
    session: Session | None = None  #: Of a client that has begun one.


def fetch(read: FetchToolIn, caller: Caller) -> FetchToolOut:
    """Return the text of a document or of the chunk with that id; raise NotFoundError outside the scope."""
    document_id, ordinal = _parts(read.id)
    scope = scope_for(caller.principal)
    missing = NotFoundError("No document with that id is visible to you.")
    document = first_or(missing, Document.objects.in_scope(scope).filter(pk=document_id))
    chunks = document.chunks.filter(connection_id__in=scope.connection_ids).order_by("ordinal")
    if ordinal is not None:
        chunks = chunks.filter(ordinal=ordinal)
    text, truncated = _joined(chunks.iterator(chunk_size=100))
    if not text:
        raise NotFoundError("No passage with that id is visible to you.")
    note_accesses([document.pk])
    who = caller.principal
    audit.record("document.read", actor=who.user, subject=str(document.pk), key=str(who.key or ""), client=who.client)
    return FetchToolOut(
        id=read.id,
        title=document.title,
        text=text,
        url=caller.absolute(document_path(document.pk, ordinal)),
        metadata=_metadata(document, scope),
        truncated=truncated,
    )


def _parts(wanted: str) -> tuple[UUID, int | None]:
    name, colon, place = wanted.partition(":")
    document_id = id_in(name)
    is_place = place.isascii() and place.isdigit() and len(place) <= _MAX_ORDINAL_LENGTH
    if document_id is None or (colon and not is_place):
        raise NotFoundError("No document with that id is visible to you.")
    return document_id, int(place) if colon else None


def _joined(chunks: Iterable[Chunk]) -> tuple[str, bool]:
    """Return the chunks' text without overlaps, and whether it was truncated."""
    text = ""
    for chunk in chunks:
        text += joint(text, chunk.text)
        if len(text) > MAX_CHARACTERS:
            return text[:MAX_CHARACTERS], True
    return text, False


def joint(before: str, after: str) -> str:
    """Return what `after` adds to `before`: the text behind their overlap, without overlap a new paragraph."""
    if not before:
        return after
    limit = min(len(before), len(after), _MAX_SHARED)
    shared = next((size for size in range(limit, _MIN_SHARED - 1, -1) if before.endswith(after[:size])), 0)
    return after[shared:] if shared else f"\n\n{after}"


def _metadata(document: Document, scope: AccessScope) -> dict[str, str]:
    connection = scope.inclusion(document.connection_id).connection
    return {
        **{name: str(value) for name, value in document.metadata.items()},
        "connection": connection.name,
        "compartment": connection.compartment,
        "uri": document.uri,
        "source_type": document.source_type,
        "modified_at": document.modified_at.isoformat() if document.modified_at else "",
    }


class EvidenceToolIn(StrictBody):
    """A request for evidence."""

    subject: str = Field(min_length=1, max_length=MAX_SUBJECT, description="Subject of the report.")
    section_set: str = Field(default=DEFAULT_SECTION_SET, max_length=_MAX_NAME, description="Kind of report.")
    section: str = Field(
        default="", max_length=_MAX_NAME, description="One of its sections, with all its passages; empty for all."
    )
    compartments: list[str] = Field(default=[], max_length=100, description="Slugs of compartments; empty for all.")


class SectionToolOut(BaseModel):
    """The evidence of a section."""

    section: str
    title: str
    results: list[ResultOut]
    missing: list[str] = Field(description="Required source types without passages.")
    thin: list[str] = Field(description="Required source types with too few passages.")
    not_looked_for: list[str] = Field(description="Required source types that could not be searched.")
    problem: str = Field(description="Why the section was not searched; empty if it was.")
    trace_id: str | None


class EvidenceToolOut(BaseModel):
    """Evidence for each section, in the report's order."""

    sections: list[SectionToolOut]


def _evidence(read: EvidenceToolIn, caller: Caller) -> EvidenceToolOut:
    """Gather evidence for an agent; raise as `gather` does."""
    request = EvidenceRequest(
        section_set=read.section_set,
        section=read.section,
        subject=read.subject,
        compartments=tuple(read.compartments),
        budget_seconds=_BUDGET_SECONDS,
    )
    evidence = gather_counted(request, caller.principal, caller.watch)
    limit = None if read.section else _MAX_PASSAGES
    return EvidenceToolOut(sections=[_section(found, caller.absolute, limit) for found in evidence.sections])


def _section(found: SectionEvidence, absolute: Absolute, limit: int | None) -> SectionToolOut:
    outcome = found.outcome
    return SectionToolOut(
        section=found.section.name,
        title=found.section.title,
        results=[result_out(hit, outcome, absolute) for hit in outcome.hits[:limit]] if outcome else [],
        missing=_types(found, Presence.MISSING),
        thin=_types(found, Presence.THIN),
        not_looked_for=_types(found, Presence.NOT_LOOKED_FOR),
        problem=found.problem,
        trace_id=str(outcome.id) if outcome else None,
    )


def _types(found: SectionEvidence, presence: Presence) -> list[str]:
    return [name for name, cell in found.cells.items() if cell.presence is presence]


@dataclass(frozen=True, slots=True)
class AgentTool:
    """One tool."""

    reads: type[BaseModel]
    returns: type[BaseModel]
    run: Callable[[Any, Caller], BaseModel]
    title: str
    description: str
    is_read_only: bool = True  #: One that is not only adds.


def call(name: str, arguments: Mapping[str, Any], caller: Caller) -> BaseModel:
    """Run a tool; raise NotFoundError for an unknown one, InvalidRequestError, or as the tool does."""
    tool = TOOLS.get(name)
    if tool is None:
        raise NotFoundError("There is no tool with that name.")
    try:
        read = tool.reads.model_validate(dict(arguments))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InvalidRequestError(f"{place or 'arguments'}: {first['msg']}.") from error
    return tool.run(read, caller)


def _search(read: SearchToolIn, caller: Caller) -> SearchToolOut:
    request = SearchRequest(text=read.query, preset=read.preset, top_k=read.top_k, surface=SearchRecord.Surface.AGENT)
    outcome = search(request, principal=caller.principal, watch=caller.watch)
    judged = outcome.state.answerability
    return SearchToolOut(
        results=[result_out(hit, outcome, caller.absolute) for hit in outcome.hits],
        verdict=judged.verdict.value if judged else None,
        explanation=judged.explanation if judged else "",
        trace_id=str(outcome.id),
    )


def _recall(read: memory.RecallToolIn, caller: Caller) -> memory.RecallOut:
    return memory.recalled(
        memory.RecallIn(**read.model_dump()), caller.principal, caller.absolute, SearchRecord.Surface.AGENT
    )


def _remember(read: memory.RememberToolIn, caller: Caller) -> memory.RememberOut:
    return memory.remembered(memory.RememberIn(**read.model_dump()), caller.principal, caller.absolute)


_TEXTS: Final = read_toml("retrieval.agents", "tools.toml")
TOOLS: Final[Mapping[str, AgentTool]] = {
    "search": AgentTool(SearchToolIn, SearchToolOut, _search, **_TEXTS["search"]),
    "fetch": AgentTool(FetchToolIn, FetchToolOut, fetch, **_TEXTS["fetch"]),
    "recall": AgentTool(memory.RecallToolIn, memory.RecallOut, _recall, **_TEXTS["recall"]),
    "remember": AgentTool(
        memory.RememberToolIn, memory.RememberOut, _remember, is_read_only=False, **_TEXTS["remember"]
    ),
    "evidence": AgentTool(EvidenceToolIn, EvidenceToolOut, _evidence, **_TEXTS["evidence"]),
}
