"""Which chunks of the seeds are read for names."""

from uuid import UUID

import pytest

from retrieval.engine.types import ChunkId
from retrieval.graph.links import SeedText
from retrieval.graph.mentions import Mentions
from retrieval.presets.helix.stages.expand import seed_chunks

LONG, NAMED, OTHER = (UUID(int=number) for number in (1, 2, 3))
#: Ten chunks of a long document were found, the first of them the best.
FOUND = {ChunkId(LONG, number): 1.0 - number / 100 for number in range(10)}


def texts(*chunks):
    return [SeedText(ChunkId(*it), "", Mentions((), 0)) for it in chunks]


def first_chunks(document):
    return texts(*((document, number) for number in range(4)))


def taken(wanted, read, scores):
    return [it.chunk for it in wanted.of(read, scores)]


def test_the_best_of_what_was_found_is_read_and_no_first_chunk_beside_it():
    wanted = seed_chunks(FOUND, [LONG, OTHER], [], limit=8)
    assert wanted.chunks == {ChunkId(LONG, number) for number in range(8)}
    assert wanted.begun == ()


def test_first_chunks_fill_what_room_is_left():
    scores = {ChunkId(LONG, 7): 0.9, ChunkId(OTHER, 2): 0.5}
    wanted = seed_chunks(scores, [LONG, OTHER], [], limit=4)
    assert wanted.begun == (LONG, OTHER)
    read = [*texts(*scores), *first_chunks(LONG), *first_chunks(OTHER)[:2]]
    assert taken(wanted, read, scores) == [(LONG, 7), (OTHER, 2), (LONG, 0), (OTHER, 0)]


@pytest.mark.parametrize("score", [None, 0.2])
def test_a_named_document_is_read_behind_any_number_of_better_chunks(score):
    scores = FOUND if score is None else {**FOUND, ChunkId(NAMED, 3): score, ChunkId(NAMED, 5): score / 2}
    wanted = seed_chunks(scores, [NAMED, LONG], [NAMED], limit=8)
    best = [ChunkId(LONG, number) for number in range(8)]
    if score is None:
        assert wanted.begun == (NAMED,)
        assert taken(wanted, [*texts(*best), *first_chunks(NAMED)], scores) == [*best, (NAMED, 0)]
    else:
        assert wanted.begun == ()
        assert taken(wanted, texts(*best, (NAMED, 3)), scores) == [*best, (NAMED, 3)]
