"""Which chunks are packed, in which order, and what goes first."""

import uuid
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.types import PRIMARY, ChunkId
from retrieval.index.types import Neighbour, Relation
from retrieval.presets.contextpack.packing import counted, items, packed
from tests.passages import made

PRIORITY = [PRIMARY, Relation.PARENT, Relation.SIBLING, Relation.CROSS_PAGE]


def hit(document, ordinal, tokens=10, text=None):
    """Return chunk `ordinal` of a document, its text its own unless it is given."""
    plain = made(1, text or f"{document}:{ordinal}").hit
    own = text or f"{document}:{ordinal}"
    facts = replace(plain.chunk, token_count=tokens, content_hash=own)
    return replace(plain, chunk_id=ChunkId(uuid.UUID(int=document), ordinal), facts=facts)


def beside(primary, ordinal, relation, **more):
    return Neighbour(hit(primary.chunk_id.document_id.int, ordinal, **more), relation, primary.chunk_id)


def pack(found, budget, minimum=3):
    """Pack with a token for each header, and as many for a text as its chunk was made with."""
    sizes = {it.hit.chunk.text: it.hit.chunk.token_count for it in found}
    return packed(
        found,
        budget_tokens=budget,
        min_primary=minimum,
        header=lambda number, _: f"[{number}]",
        count_tokens=lambda texts: [1 + sizes[text.split("\n", 1)[1].removesuffix("\n\n")] for text in texts],
    )


def told(kept):
    return [(it.number, it.item.role, it.item.hit.chunk.text) for it in kept]


FIRST, SECOND = hit(1, 5), hit(2, 5)
AROUND = (
    beside(FIRST, 3, Relation.PARENT),
    beside(FIRST, 4, Relation.PARENT),
    beside(FIRST, 6, Relation.SIBLING),
    beside(FIRST, 8, Relation.CROSS_PAGE),
    beside(SECOND, 6, Relation.PARENT),
    beside(SECOND, 4, Relation.SIBLING),
)


def test_each_primary_is_followed_by_its_parents_then_come_siblings_and_pages():
    # The numbers say what is kept longest: primaries, parents (the nearer first), siblings, cross-page neighbours.
    assert told(pack(items((FIRST, SECOND), AROUND), 1000).kept) == [
        (1, "primary", "1:5"),
        (4, "parent", "1:3"),
        (3, "parent", "1:4"),
        (2, "primary", "2:5"),
        (5, "parent", "2:6"),
        (6, "sibling", "1:6"),
        (7, "sibling", "2:4"),
        (8, "cross_page", "1:8"),
    ]


def test_what_goes_first_by_hand():
    # Eight chunks of 10 + 1 tokens are 88; each one that goes leaves 11 less.
    found = items((FIRST, SECOND), AROUND)
    assert [it.item.role for it in pack(found, 40, minimum=2).dropped] == [
        "cross_page",
        "sibling",
        "sibling",
        "parent",
        "parent",
    ]
    assert told(pack(found, 40, minimum=2).kept) == [(1, "primary", "1:5"), (3, "parent", "1:4"), (2, "primary", "2:5")]
    assert pack(found, 40, minimum=2).tokens == 33


def test_tokens_are_counted_anew_and_all_at_once():
    asked = []

    def count(texts):
        asked.append(texts)
        return [100 * len(text.split()) for text in texts]

    # Ingestion counted ten tokens each.
    found = packed(
        items((FIRST, SECOND), ()), budget_tokens=1000, min_primary=1, header=lambda *_: "a b", count_tokens=count
    )
    assert asked == [["a b\n1:5\n\n", "a b\n2:5\n\n"]]
    assert [it.tokens for it in found.kept] == [300, 300]


def test_the_least_primary_hits_stay_though_they_exceed_the_budget():
    primaries = tuple(hit(number, 0) for number in range(1, 6))
    found = pack(items(primaries, ()), 5, minimum=3)
    assert [it.number for it in found.kept] == [1, 2, 3]
    assert found.tokens == 33
    assert pack(items(primaries[:2], ()), 5, minimum=3).tokens == 22
    assert pack(items(primaries, ()), 5, minimum=0).kept == ()


def test_a_chunk_is_packed_once_for_its_strongest_reason():
    primary, other = hit(1, 5), hit(1, 6)
    around = [
        beside(primary, 6, Relation.PARENT),
        beside(primary, 7, Relation.SIBLING),
        beside(other, 7, Relation.PARENT),
        beside(other, 5, Relation.SIBLING),
        beside(primary, 7, Relation.CROSS_PAGE),
    ]
    found = items((primary, other), around)
    assert [(it.chunk_id.ordinal, it.role) for it in found] == [(5, "primary"), (6, "primary"), (7, "parent")]


def test_the_same_text_is_packed_once_beside_the_hits():
    around = [beside(FIRST, 3, Relation.PARENT, text="1:5"), beside(FIRST, 4, Relation.PARENT, text="same")]
    around.append(beside(SECOND, 4, Relation.PARENT, text="same"))
    assert [it.hit.chunk.text for it in items((FIRST, SECOND), around)] == ["1:5", "2:5", "same"]


def test_they_are_counted_by_role():
    assert counted(items((FIRST, SECOND), AROUND)) == {"primary": 2, "parent": 3, "sibling": 2, "cross_page": 1}


_AROUND = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 12), st.sampled_from(Relation), st.integers(1, 60)), max_size=40
)


@given(st.lists(st.integers(1, 60), max_size=6), _AROUND, st.integers(1, 1500), st.integers(0, 6))
def test_dropping_follows_the_priority_exactly(primary_tokens, around, budget, minimum):
    primaries = tuple(hit(number, 6, tokens) for number, tokens in enumerate(primary_tokens, start=1))
    neighbours = [
        beside(primaries[place], ordinal, relation, tokens=tokens)
        for place, ordinal, relation, tokens in around
        if place < len(primaries)
    ]
    found = items(primaries, neighbours)
    packing = pack(found, budget, minimum)
    everything = [*packing.kept, *packing.dropped]
    # Nothing is lost or doubled, and what is kept is numbered without gaps.
    assert sorted(it.item.chunk_id for it in everything) == sorted(it.chunk_id for it in found)
    assert len({it.chunk_id for it in found}) == len(found)
    assert sorted(it.number for it in packing.kept) == list(range(1, len(packing.kept) + 1))
    # What went, went in order of priority, and nothing weaker than it was kept.
    ranks = [PRIORITY.index(it.item.role) for it in packing.dropped]
    assert ranks == sorted(ranks, reverse=True)
    strongest_dropped = min(ranks, default=len(PRIORITY))
    assert all(PRIORITY.index(it.item.role) <= strongest_dropped for it in packing.kept)
    # Within one role the worst primary hit's goes first.
    for role in PRIORITY:
        places = [it.item.place for it in packing.dropped if it.item.role == role]
        assert places == sorted(places, reverse=True)
    # No more went than had to: the last one that went would not have fitted.
    if packing.dropped:
        assert packing.tokens + packing.dropped[-1].tokens > budget
    # The budget is exceeded by nothing but the least primary hits.
    kept = {it.item.chunk_id for it in packing.kept}
    stays = {it.chunk_id for it in primaries[:minimum]}
    assert stays <= kept
    assert packing.tokens <= budget or kept == stays


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), _AROUND)
def test_the_reading_order_is_that_of_the_relations(primary_tokens, around):
    primaries = tuple(hit(number, 6, tokens) for number, tokens in enumerate(primary_tokens, start=1))
    neighbours = [
        beside(primaries[place], ordinal, relation) for place, ordinal, relation, _ in around if place < len(primaries)
    ]
    kept = [it.item for it in pack(items(primaries, neighbours), 10**6).kept]
    roles = [it.role for it in kept]
    behind = [role for role in roles if role in {Relation.SIBLING, Relation.CROSS_PAGE}]
    assert roles[len(roles) - len(behind) :] == behind == sorted(behind, key=PRIORITY.index)
    for place, it in enumerate(kept):
        if it.role == Relation.PARENT:
            assert kept[place - 1].place == it.place
    assert [it.place for it in kept if it.role == PRIMARY] == list(range(len(primaries)))
