"""What the tools read and return. Nothing that is read says who asks: that is the request's key alone."""

from pydantic import BaseModel, Field

from retrieval.api.request_body import StrictBody
from retrieval.presets.catalog import DEFAULT_PRESET


class SearchToolIn(StrictBody):
    """A search."""

    query: str = Field(min_length=1, description="A question or keywords.")
    top_k: int = Field(default=10, ge=1, le=50, description="Results wanted.")
    preset: str = Field(default=DEFAULT_PRESET, max_length=40, description="How to search.")


class ResultOut(BaseModel):
    """A passage that was found."""

    id: str = Field(description="Opens the passage with fetch; the part before the colon opens its whole document.")
    title: str
    heading_path: list[str]
    snippet: str = Field(description="The passage's beginning.")
    url: str
    source: str = Field(description="Name of the connection that it comes from.")
    score: float


class SearchToolOut(BaseModel):
    """What a search found, best first."""

    results: list[ResultOut]
    verdict: str | None = Field(description="Whether they answer the question: answerable, partial or not_answerable.")
    explanation: str = Field(description="Why they do not, in a sentence.")
    trace_id: str


class FetchToolIn(StrictBody):
    """What to open."""

    id: str = Field(min_length=1, max_length=60, description="The id of a search result, or of a document.")


class FetchToolOut(BaseModel):
    """A document's text, or a passage's."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]
    truncated: bool = Field(description="Whether the document goes on after the text; search opens its later passages.")
