"""The names in a search's events as people read them. Pure: no Django, no request."""

from collections.abc import Mapping
from typing import Final

from retrieval.encoders.breaker import BreakerState
from retrieval.presets.consolidated.evidence.cascade import Tier
from retrieval.presets.consolidated.evidence.density import TightenSkip
from retrieval.presets.consolidated.evidence.recovery import Diagnosis
from retrieval.presets.consolidated.evidence.rerank_plan import Provider, RerankSkip

TIERS: Final[Mapping[str, str]] = {
    Tier.DOCUMENTS: "Without the request's documents",
    Tier.STRUCTURE: "Under the headings alone",
    Tier.COMPARTMENT: "The whole compartment, without filters",
    Tier.INDEXES: "Every embedding index",
    Tier.LEXICAL: "By words alone",
}

#: What looking for a source type came to, with the tone of it.
DIAGNOSES: Final[Mapping[str, tuple[str, str]]] = {
    Diagnosis.RECOVERED: ("recovered", "good"),
    Diagnosis.ABSENT: ("not there", "warn"),
    Diagnosis.KNOWN_ABSENT: ("known not to be there", "warn"),
    Diagnosis.STILL_LOOKING: ("another section still looks", "warn"),
    Diagnosis.FAILED: ("failed", "bad"),
}

RERANK_SKIPS: Final[Mapping[str, str]] = {
    RerankSkip.CIRCUIT_BREAKER: "it failed several times in a row and its breaker is open",
    RerankSkip.BUDGET: "too little time was left for its chunks",
    RerankSkip.API_ERROR: "it failed",
}

PROVIDERS: Final[Mapping[str, str]] = {
    Provider.CROSS_ENCODER: "cross-encoder",
    Provider.SEMANTIC_BM25: "SemanticBM25",
    Provider.NONE: "nothing, the pool's order stands",
}

#: In short, for a hit.
PROVIDER_WORDS: Final[Mapping[str, str]] = {**PROVIDERS, Provider.NONE: "not reranked"}

BREAKER_WORDS: Final[Mapping[str, str]] = {
    BreakerState.CLOSED: "breaker closed",
    BreakerState.OPEN: "breaker open",
    BreakerState.HALF_OPEN: "breaker on trial",
}

TIGHTEN_SKIPS: Final[Mapping[str, str]] = {
    TightenSkip.GRADE: "only a pool graded A or B is",
    TightenSkip.INPUTS: "no floors saw it, or none of its cosines is known",
    TightenSkip.BREAKER: "the reranker's breaker is not closed",
    TightenSkip.NO_ROOM: "there are no more chunks than are kept anyway",
    TightenSkip.NO_CLIFF: "its nearness falls without a cliff",
    TightenSkip.WEAKER: "the section's own floor drops what lies below the cliff",
    TightenSkip.BREAKER_AT_APPLY: "the reranker's breaker opened meanwhile",
    TightenSkip.NO_CROSS_ENCODER: "there is no cross-encoder whose work a cut would save",
    TightenSkip.POOL_SIZE: "fewer chunks would be left than are kept",
    TightenSkip.SOURCE_DIVERSITY_LOSS: "the last chunk of a source type would go",
}
