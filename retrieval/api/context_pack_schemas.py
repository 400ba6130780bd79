"""What POST /api/v1/context-pack reads and writes."""

from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from retrieval.api.dify_schemas import FiltersIn
from retrieval.api.preset_schemas import Overrides, TopK
from retrieval.api.request_body import RequestBody
from retrieval.api.schemas import AnswerabilityOut, Pages, Rows, ScopeIn, Source, Timings


class ContextPackIn(RequestBody):
    """A question to retrieve a context for."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(description="What is asked; the first 500 characters are read.")
    filters: FiltersIn | None = Field(default=None, description="Only documents whose metadata meet these conditions.")
    scope: ScopeIn = Field(default_factory=ScopeIn)
    top_k: TopK | None = Field(default=None, description="Primary hits wanted; none for as many as the preset packs.")
    overrides: Overrides = Field(default_factory=dict)
    draft: bool = Field(default=False, description="For admins: runs with the preset's draft.")


class SelectedChunkOut(BaseModel):
    """A chunk of the context."""

    number: int = Field(description="The N of [N] above its text; the lower, the longer it is kept under the budget.")
    chunk_id: str
    document_id: UUID
    role: str = Field(description="primary, parent, sibling or cross_page.")
    title: str
    heading_path: list[str]
    text: str
    url: str = Field(description="The chunk on its document's page.")
    source: Source
    source_type: str
    pages: Pages | None
    rows: Rows | None
    token_count: int
    relevance_score: float | None = Field(description="0 to 100; none for what stands around a primary hit.")
    citation: str


class CandidateOut(BaseModel):
    """A candidate as it came to be judged."""

    chunk_id: str
    rank: int
    score: float = Field(description="The blend of vectors, full text and freshness.")
    ranks: dict[str, int] = Field(description="Places, from 1, in the rankings that found it.")


class RerankResultOut(BaseModel):
    """A candidate after reranking."""

    chunk_id: str
    relevance_score: float = Field(description="0 to 100.")
    answerability: bool | None = Field(description="Whether it answers the question; none where no model judged it.")
    key_evidence: str
    judged: bool = Field(description="Whether a language model judged it; else another score on the same scale.")


class ExpansionOut(BaseModel):
    """Chunks of one role."""

    found: int
    packed: int


class PackTraceOut(BaseModel):
    """How the context came about."""

    candidates: list[CandidateOut]
    rerank_results: list[RerankResultOut] = Field(description="Best first.")
    final_token_count: int
    budget_tokens: int = Field(description="Exceeded only with `pack_over_budget` in `degraded`.")
    tokenizer: str = Field(
        description="The model whose tokens those are: that which would answer, or the embedding model."
    )
    expansion_stats: dict[str, ExpansionOut] = Field(description="By role.")


class ContextPackOut(BaseModel):
    """A context for a question, with its citations and how it came about."""

    query: str
    selected_chunks: list[SelectedChunkOut] = Field(description="In reading order.")
    citations: Annotated[list[str], Field(description="A line for each selected chunk, in the same order.")]
    trace: PackTraceOut
    context_pack: str
    trace_id: UUID
    preset_version: str = Field(description="Fingerprint of the stages and every number.")
    answerability: AnswerabilityOut | None = Field(description="None when the time was up before it was judged.")
    degraded: list[str] = Field(description="Codes of what fell back or was cut short.")
    timings: Timings
