from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from retrieval.presets.consolidated.evidence.order import FairnessConfig, fair_order, min_slots
from tests.retrieval.presets.consolidated.evidence.conftest import pools, type_of, typed

CONFIG = FairnessConfig()


def order(rows, slots, config=CONFIG):
    """Return the ordinals in their new order of hits that are given as (document, type)."""
    hits = tuple(typed(number, kind, document=document) for number, (document, kind) in enumerate(rows))
    return [it.chunk_id.ordinal for it in fair_order(hits, slots, type_of=type_of, config=config)]


def test_one_document_takes_half_of_the_places_at_most():
    assert order([(1, "pdf")] * 4 + [(2, "pdf"), (3, "excel")], 4) == [0, 1, 4, 5, 2, 3]
    assert order([(1, "pdf")] * 4 + [(2, "pdf")], 4) == [0, 1, 4, 2, 3]


def test_one_type_takes_three_quarters_at_most():
    rows = [(number, "pdf") for number in range(5)] + [(9, "excel")]
    assert order(rows, 4) == [0, 1, 2, 5, 3, 4]


def test_with_nothing_else_to_show_the_order_stands():
    assert order([(1, "pdf")] * 5, 4) == [0, 1, 2, 3, 4]
    assert order([], 4) == []


def test_behind_the_places_the_order_stands():
    assert order([(1, "pdf"), (1, "pdf"), (2, "pdf")], 1) == [0, 1, 2]


@given(pools(), st.integers(1, 20), st.floats(0.05, 1), st.floats(0.05, 1))
def test_nothing_is_lost_and_a_share_is_only_exceeded_where_nothing_else_is_left(hits, slots, document, kind):
    config = replace(CONFIG, document_share=document, type_share=kind)
    done = fair_order(hits, slots, type_of=type_of, config=config)
    assert sorted(it.chunk_id for it in done) == sorted(it.chunk_id for it in hits)
    if hits:
        assert done[0].chunk_id == hits[0].chunk_id
    # Without the digits that a product of fractions leaves behind.
    limit = max(1, round(document * slots, 9))
    shown = Counter(it.chunk_id.document_id for it in done[:slots])
    over = [name for name, count in shown.items() if count >= limit + 1]
    for name in over:
        # Every hit of another document that has not had its share stands among the places already.
        assert all(shown[it.chunk_id.document_id] >= limit or it.chunk_id.document_id == name for it in done[slots:])


def test_how_many_places_a_hit_needs():
    """The document's second chunk needs three places, half of which are rounded up; its third needs five."""
    rows = [(1, "pdf")] * 4 + [(number, "excel") for number in range(2, 8)]
    hits = fair_order(
        tuple(typed(number, kind, document=document) for number, (document, kind) in enumerate(rows)),
        4,
        type_of=type_of,
        config=CONFIG,
    )
    needed = {it.chunk_id.ordinal: min_slots(it, hits, type_of=type_of, config=CONFIG) for it in hits}
    assert [needed[ordinal] for ordinal in range(5)] == [1, 3, 5, 7, 2]


@given(pools(max_size=12), st.integers(1, 8))
def test_with_the_places_that_it_needs_a_hit_has_one_and_with_fewer_it_has_none(pool, slots):
    hits = fair_order(pool, slots, type_of=type_of, config=CONFIG)
    for it in hits:
        minimum = min_slots(it, hits, type_of=type_of, config=CONFIG)
        shown = [fair_order(pool, count, type_of=type_of, config=CONFIG)[:count] for count in range(1, minimum + 1)]
        assert [it.chunk_id in {one.chunk_id for one in placed} for placed in shown] == [False] * (minimum - 1) + [True]
