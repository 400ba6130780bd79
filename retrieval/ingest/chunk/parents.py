"""Parent sections: the neighbouring chunks that give a chunk its context."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from retrieval.ingest.chunk.merging import filled
from retrieval.text.document import ChunkDraft


def with_parents(drafts: Sequence[ChunkDraft], max_tokens: int) -> tuple[ChunkDraft, ...]:
    """Return the chunks with the first and the last ordinal of their parent section.

    A section is all text under one heading path, including subsections; a chunk's parent is the largest section of at
    most `max_tokens` tokens. If a single heading has more, its chunks fill several parents one after the other. Parents
    do not overlap: all chunks of a parent have the same one.
    """
    bounds = {
        draft.ordinal: (section[0].ordinal, section[-1].ordinal)
        for section in _sections(list(drafts), 0, max_tokens)
        for draft in section
    }
    return tuple(
        replace(draft, section_start=bounds[draft.ordinal][0], section_end=bounds[draft.ordinal][1]) for draft in drafts
    )


def _sections(run: list[ChunkDraft], depth: int, max_tokens: int) -> Iterator[list[ChunkDraft]]:
    if sum(draft.token_count for draft in run) <= max_tokens:
        yield run
    elif all(len(draft.heading_path) <= depth for draft in run):
        yield from filled(run, lambda draft: draft.token_count, max_tokens)
    else:
        for _, below in groupby(run, key=lambda draft: draft.heading_path[: depth + 1]):
            yield from _sections(list(below), depth + 1, max_tokens)
