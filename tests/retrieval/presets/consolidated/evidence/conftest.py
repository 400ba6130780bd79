"""Pools made by hand: what the pure rules of evidence work on."""

from dataclasses import replace

from hypothesis import strategies as st

from retrieval.engine.types import ScoreType
from tests.retrieval.conftest import hit

TYPES = ("excel", "costar", "pdf", "docx")


def typed(number, source_type="pdf", score=0.0, *, quality=1.0, tokens=10, document=None, kind=None, **signals):
    """Return a hit of a source type; hits of one `document` are its chunks."""
    made = hit(number, score, tokens=tokens, **signals)
    facts = replace(made.chunk, source_type=source_type, quality=quality)
    chunk_id = made.chunk_id
    if document is not None:
        chunk_id = hit(document).chunk_id._replace(ordinal=number)
    return replace(made, chunk_id=chunk_id, facts=facts, score_type=kind or ScoreType.BLEND)


def type_of(it):
    return it.chunk.source_type


def numbers(hits):
    """Return the numbers that hits without a document were made with."""
    return [it.chunk_id.document_id.int for it in hits]


@st.composite
def pools(draw, max_size=40):
    """Draw hits with falling scores, of any types and documents."""
    size = draw(st.integers(0, max_size))
    types = draw(st.lists(st.sampled_from(TYPES), min_size=size, max_size=size))
    documents = draw(st.lists(st.integers(1, 5), min_size=size, max_size=size))
    return tuple(
        typed(place, kind, 1 - place / 100, document=document)
        for place, (kind, document) in enumerate(zip(types, documents, strict=True))
    )
