"""How what is recalled shares its budget."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.memory.recall import pack_in_turns
from tests.retrieval.conftest import hit


def packed(memory, rest, budget, limit=100):
    return pack_in_turns(
        tuple(memory),
        tuple(rest),
        budget_tokens=budget,
        limit=limit,
        header=lambda number, it: f"[{number}] {it.chunk.title}",
        count_tokens=lambda _: 2,
    )


def numbers(passages):
    return [passage.hit.chunk_id.document_id.int for passage in passages]


def test_the_memory_comes_first_and_leaves_half_for_the_rest():
    memory = [hit(number, tokens=8) for number in (1, 2, 3, 4)]
    rest = [hit(number, tokens=8) for number in (11, 12)]
    passages = packed(memory, rest, 50)
    # 10 tokens each: two of the memory in its half, the rest, and one more of the memory.
    assert numbers(passages) == [1, 2, 11, 12, 3]
    assert [(it.number, it.header[:3]) for it in passages] == [(n, f"[{n}]") for n in (1, 2, 3, 4, 5)]


def test_the_memory_takes_it_all_where_there_is_nothing_else():
    assert numbers(packed([hit(n, tokens=8) for n in (1, 2, 3)], [], 30)) == [1, 2, 3]


def test_the_rest_takes_it_all_where_nothing_is_remembered():
    assert numbers(packed([], [hit(n, tokens=8) for n in (1, 2, 3)], 30)) == [1, 2, 3]


def test_no_more_passages_than_that_and_half_of_them_are_left_for_the_rest():
    memory = [hit(number, tokens=8) for number in (1, 2, 3, 4)]
    rest = [hit(number, tokens=8) for number in (11, 12)]
    assert numbers(packed(memory, rest, 1000, limit=3)) == [1, 2, 11]
    assert numbers(packed(memory, [], 1000, limit=3)) == [1, 2, 3]


def test_what_is_remembered_word_for_word_as_it_stands_elsewhere_comes_once():
    remembered, elsewhere = hit(1, tokens=8), hit(11, tokens=8)
    same = replace(elsewhere, facts=replace(elsewhere.chunk, content_hash=remembered.chunk.content_hash))
    assert numbers(packed([remembered], [same, hit(12, tokens=8)], 1000)) == [1, 12]


@given(
    memory=st.lists(st.integers(1, 60), max_size=8),
    rest=st.lists(st.integers(1, 60), max_size=8),
    budget=st.integers(0, 300),
)
def test_the_budget_holds_and_nothing_comes_twice(memory, rest, budget):
    own = [hit(number, tokens=tokens) for number, tokens in enumerate(memory)]
    others = [hit(100 + number, tokens=tokens) for number, tokens in enumerate(rest)]
    passages = packed(own, others, budget)
    assert sum(it.token_count for it in passages) <= budget
    assert len(set(numbers(passages))) == len(passages)
    assert [it.number for it in passages] == list(range(1, len(passages) + 1))
