from hypothesis import given
from hypothesis import strategies as st

from retrieval.presets.consolidated.evidence.order import cut_with_protection
from tests.retrieval.presets.consolidated.evidence.conftest import TYPES, numbers, type_of, typed


def row(types, recovered=()):
    return tuple(
        typed(number, kind, **({"recovered": 1.0} if number in recovered else {})) for number, kind in enumerate(types)
    )


def cut(hits, keep, *, limit=8, floors=None):
    kept, drops = cut_with_protection(
        hits, keep=keep, max_protected=limit, survivor_floors=floors or {}, type_of=type_of
    )
    assert len(kept) + len(drops) == len(hits)
    return numbers(kept)


def test_recovered_chunks_that_were_cut_come_back_eight_at_most():
    hits = row(["pdf"] * 3 + ["excel"] * 10, recovered=range(3, 13))
    assert cut(hits, 3) == list(range(11))
    assert cut(hits, 3, limit=2) == [0, 1, 2, 3, 4]
    assert cut(hits, 3, limit=0) == [0, 1, 2]


def test_a_survivor_floor_is_met_by_the_best_of_the_type():
    hits = row(["pdf", "pdf", "excel", "pdf", "excel", "excel"])
    assert cut(hits, 3, floors={"excel": 2}) == [0, 1, 2, 4]
    assert cut(hits, 3, floors={"excel": 9}) == [0, 1, 2, 4, 5]
    assert cut(hits, 3, floors={"costar": 2}) == [0, 1, 2]


def test_protected_chunks_count_towards_the_floor():
    hits = row(["pdf", "pdf", "excel", "excel", "excel"], recovered={4})
    assert cut(hits, 1, floors={"excel": 1}) == [0, 4]
    assert cut(hits, 1, floors={"excel": 2}) == [0, 2, 4]


def test_a_pool_that_fits_is_not_cut():
    assert cut(row(["pdf"] * 2), 5) == [0, 1]
    assert cut((), 5) == []


@given(
    st.lists(st.tuples(st.sampled_from(TYPES), st.booleans()), max_size=40),
    st.integers(1, 20),
    st.dictionaries(st.sampled_from(TYPES), st.integers(1, 6)),
)
def test_every_floor_is_met_as_far_as_it_can_be(rows, keep, floors):
    hits = row([kind for kind, _ in rows], {number for number, (_, is_new) in enumerate(rows) if is_new})
    kept = cut(hits, keep, floors=floors)
    assert kept == sorted(kept)
    assert kept[:keep] == list(range(min(keep, len(hits))))
    assert len(kept) <= keep + 8 + sum(floors.values())
    for kind, floor in floors.items():
        there = sum(type_of(it) == kind for it in hits)
        assert sum(type_of(hits[number]) == kind for number in kept) >= min(floor, there)
