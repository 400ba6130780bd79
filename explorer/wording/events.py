"""Labels of the codes in search events. Pure: no Django, no request."""

from collections.abc import Mapping
from typing import Final

from retrieval.encoders.breaker import BreakerState
from retrieval.presets.consolidated.evidence.cascade import Tier
from retrieval.presets.consolidated.evidence.density import TightenSkip
from retrieval.presets.consolidated.evidence.recovery import Diagnosis
from retrieval.presets.consolidated.evidence.scoring import Provider, RerankSkip

TIERS: Final[Mapping[str, str]] = {
    Tier.DOCUMENTS: "Without document filter",
    Tier.STRUCTURE: "Matching headings only",
    Tier.COMPARTMENT: "Entire compartment, no filters",
    Tier.INDEXES: "All embedding indexes",
    Tier.LEXICAL: "Keyword search only",
}

#: The results of a search for a missing source type, each with its tone.
DIAGNOSES: Final[Mapping[str, tuple[str, str]]] = {
    Diagnosis.RECOVERED: ("recovered", "good"),
    Diagnosis.ABSENT: ("not found", "warn"),
    Diagnosis.KNOWN_ABSENT: ("known missing", "warn"),
    Diagnosis.STILL_LOOKING: ("another section is still searching", "warn"),
    Diagnosis.FAILED: ("failed", "bad"),
}

RERANK_SKIPS: Final[Mapping[str, str]] = {
    RerankSkip.CIRCUIT_BREAKER: "its circuit breaker is open after repeated failures",
    RerankSkip.BUDGET: "not enough time was left",
    RerankSkip.API_ERROR: "it failed",
}

PROVIDERS: Final[Mapping[str, str]] = {
    Provider.CROSS_ENCODER: "cross-encoder",
    Provider.SEMANTIC_BM25: "SemanticBM25",
    Provider.NONE: "nothing; pool order used",
}

BREAKER_WORDS: Final[Mapping[str, str]] = {
    BreakerState.CLOSED: "breaker closed",
    BreakerState.OPEN: "breaker open",
    BreakerState.HALF_OPEN: "breaker half-open",
}

TIGHTEN_SKIPS: Final[Mapping[str, str]] = {
    TightenSkip.GRADE: "only pools graded A or B are cut",
    TightenSkip.INPUTS: "no floor was applied, or no cosine is known",
    TightenSkip.BREAKER: "the reranker's breaker is not closed",
    TightenSkip.NO_ROOM: "the section retains all of its chunks",
    TightenSkip.NO_CLIFF: "the similarity drops without a sharp step",
    TightenSkip.WEAKER: "the section's floor already drops the tail",
    TightenSkip.BREAKER_AT_APPLY: "the reranker's breaker opened in the meantime",
    TightenSkip.NO_CROSS_ENCODER: "no cross-encoder is in use",
    TightenSkip.POOL_SIZE: "too few chunks would remain",
    TightenSkip.SOURCE_DIVERSITY_LOSS: "it would drop the last chunk of a source type",
}
