"""Arguments and results of the tools. The caller is identified only by the request's key, never by arguments."""

from typing import Final

from pydantic import BaseModel, Field

from retrieval.api.schemas import StrictBody
from retrieval.api.shape import Absolute, document_path
from retrieval.engine.types import Hit
from retrieval.presets.catalog import DEFAULT_PRESET
from retrieval.search.outcome import SearchOutcome

_MAX_SNIPPET: Final = 400


class SearchToolIn(StrictBody):
    """A search."""

    query: str = Field(min_length=1, description="A question or keywords.")
    top_k: int = Field(default=10, ge=1, le=50, description="Number of results.")
    preset: str = Field(default=DEFAULT_PRESET, max_length=40, description="Search preset.")


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
