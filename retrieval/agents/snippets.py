"""A hit as an agent's tools return it."""

from typing import Final

from retrieval.agents.schemas import ResultOut
from retrieval.api.shape import Absolute, document_path
from retrieval.engine.types import Hit
from retrieval.search.outcome import SearchOutcome

_SNIPPET_CHARACTERS: Final = 400


def result_out(hit: Hit, outcome: SearchOutcome, absolute: Absolute) -> ResultOut:
    """Return a hit with the beginning of its text; raise KeyError for one that is not in scope."""
    chunk = hit.chunk
    text = " ".join(chunk.text.split())
    return ResultOut(
        id=str(hit.chunk_id),
        title=chunk.title,
        heading_path=list(chunk.heading_path),
        snippet=text if len(text) <= _SNIPPET_CHARACTERS else f"{text[:_SNIPPET_CHARACTERS].rstrip()} …",
        url=absolute(document_path(*hit.chunk_id)),
        source=outcome.state.scope.inclusion(chunk.connection_id).connection.name,
        score=hit.score,
    )
