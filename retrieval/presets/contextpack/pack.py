"""A context pack: what was selected for a question, where it stands, how it came about, and the text of all of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from retrieval.engine.types import ChunkFacts, ChunkId


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedChunk:
    """A chunk of a pack."""

    #: The N of [N] above its text.
    number: int
    chunk_id: ChunkId
    #: primary, parent, sibling or cross_page.
    role: str
    facts: ChunkFacts
    #: Tokens of its header, its text and the break behind them.
    token_count: int
    #: On the rubric's scale, 0 to 100; None for what stands around a primary hit.
    score: float | None = None
    citation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateTrace:
    """A candidate as it came to be judged."""

    chunk_id: ChunkId
    #: Place in the blend, from 1, and its score there.
    rank: int
    score: float
    #: Places, from 1, in the legs that found it.
    ranks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankResult:
    """A candidate after reranking."""

    chunk_id: ChunkId
    #: 0 to 100 by the rubric; another reranker's score, or the blend's, on that scale where `is_judged` is not set.
    relevance_score: float
    #: None where no language model judged it.
    answerability: bool | None = None
    key_evidence: str = ""
    is_judged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PackTrace:
    """How a pack came about."""

    candidates: tuple[CandidateTrace, ...]
    #: Best first.
    rerank_results: tuple[RerankResult, ...]
    #: The sum of the chunks' tokens; the context has no more.
    final_token_count: int
    #: What the pack had to fit.
    budget_tokens: int
    #: The model whose tokens those are: that which would answer, or the embedding model. Empty where none were counted.
    tokenizer: str
    #: Chunks that were found and packed, by role: {"parent": {"found": 12, "packed": 9}}.
    expansion: Mapping[str, Mapping[str, int]]
    #: Codes of what fell back or was cut short; "pack_over_budget" where the best hits alone exceed the budget.
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPack:
    """What a reader is given for a question."""

    query: str
    #: In reading order, as `context_pack` has them.
    selected_chunks: tuple[SelectedChunk, ...]
    #: One line for each selected chunk, in the same order.
    citations: tuple[str, ...]
    trace: PackTrace
    context_pack: str
