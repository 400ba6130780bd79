"""The cost of an enrichment pass. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.ingest.enrich import triples
from retrieval.ingest.enrich.prompts import TYPICAL_ANSWER_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The amounts of a pass."""

    waiting: int  #: Chunks that lack something, and how many of them one pass processes.
    chunks: int
    written_here: int  #: Those of them whose questions a model on this machine writes at no cost.
    requests: int
    tokens_sent: int
    tokens_answered: int
    price: float | None  #: None if no price is configured.


def estimate(
    request_tokens: Sequence[int],
    *,
    waiting: int,
    chunks: int,
    prices: tuple[float, float],
    written_here: int = 0,
    for_triples: int = 0,
) -> Estimate:
    """Return the cost of requests with these tokens and answers of typical length; `for_triples` are for triples.

    `prices` are those of a million tokens sent and answered, in the currency of the bill; 0 if not configured.
    """
    longer = for_triples * (triples.TYPICAL_ANSWER_TOKENS - TYPICAL_ANSWER_TOKENS)
    sent, answered = sum(request_tokens), len(request_tokens) * TYPICAL_ANSWER_TOKENS + longer
    return Estimate(
        waiting=waiting,
        chunks=chunks,
        written_here=written_here,
        requests=len(request_tokens),
        tokens_sent=sent,
        tokens_answered=answered,
        price=(sent * prices[0] + answered * prices[1]) / 1_000_000 if max(prices) > 0 else None,
    )
