import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ranking.examination import MIN_PEOPLE, MIN_SHOWINGS, Counts, Place, Showing, examination, use_grade

pytestmark = pytest.mark.pure

FIRST, SECOND = Place("explorer", 1), Place("explorer", 2)


def counts(shown, first, second):
    return [Counts("a", FIRST, shown, first), Counts("a", SECOND, shown, second)]


def test_one_round_by_hand():
    # Of the nine unused showings at the second place, a third each was unexamined though useful, and examined though
    # useless: 0.5 * 0.5 / 0.75. So four are examined, and with the prior (4 + 10 / 2) / (10 + 10).
    assert examination(counts(10, 5, 1), rounds=1) == {FIRST: 1, SECOND: pytest.approx(0.45)}


def test_two_rounds_by_hand():
    # After the first round the passage is useful in (5 + 4 + 1) / (20 + 2) = 5/11 of the cases, and the second place
    # is examined in 9/20. Of nine unused showings there, 9/20 * 6/11 / (1 - 9/20 * 5/11) = 54/175 are examined.
    assert examination(counts(10, 5, 1), rounds=2)[SECOND] == pytest.approx((1 + 9 * 54 / 175 + 5) / 20)


def test_many_showings_outweigh_the_prior():
    assert examination(counts(100_000, 50_000, 10_000))[SECOND] == pytest.approx(0.2, abs=0.001)


def test_without_uses_elsewhere_to_compare_with_the_prior_stays():
    # A passage that is shown in the third place alone may be useless as well as unseen.
    third = Place("chat", 3)
    assert examination([Counts("a", third, 1, 0)])[third] == pytest.approx(1 / 3, abs=0.02)
    assert examination([]) == {}


def test_surfaces_are_examined_differently():
    chat = [Counts("a", Place("chat", position), 1_000, 500) for position in (1, 2)]
    found = examination([*counts(1_000, 500, 100), *chat])
    assert found[Place("chat", 2)] > 0.9
    assert found[SECOND] < 0.3


def test_simulated_readers_are_found_again():
    """Readers examine places with known probabilities, two rankings share passages, unused searches are absent."""
    true, random, many = np.array([1, 0.7, 0.5, 0.3, 0.2]), np.random.default_rng(7), []
    for query in range(300):
        useful = 0.3 * random.beta(1, 2, 5)
        for order in (random.permutation(5), random.permutation(5)):
            used = random.random((200, 5)) < true * useful[order]
            used = used[used.any(axis=1)]
            for position, passage in enumerate(order, start=1):
                times = int(used[:, position - 1].sum())
                many.append(Counts((query, int(passage)), Place("explorer", position), len(used), times))
    found = examination(many)
    assert [found[Place("explorer", it)] for it in range(1, 6)] == pytest.approx(true.tolist(), abs=0.05)


showings = st.builds(
    Showing,
    person=st.integers(1, 6),
    place=st.builds(Place, st.sampled_from(("chat", "explorer")), st.integers(1, 20)),
    opened=st.booleans(),
    copied=st.booleans(),
    rating=st.sampled_from((None, 1, -1)),
)


@given(
    st.lists(
        st.builds(
            lambda passage, position, shown, used: Counts(passage, Place("chat", position), shown, min(shown, used)),
            st.integers(1, 5),
            st.integers(1, 20),
            st.integers(1, 1_000),
            st.integers(0, 1_000),
        )
    )
)
def test_examination_is_a_probability_and_the_first_place_is_certain(many):
    found = examination(many, rounds=5)
    assert set(found) == {it.place for it in many}
    assert all(0 < it <= 1 for it in found.values())
    assert all(value == 1 for place, value in found.items() if place.position == 1)


@given(st.lists(showings))
def test_a_grade_is_of_0_to_3_and_needs_its_people(many):
    found = use_grade(many, {})
    if len({it.person for it in many}) < MIN_PEOPLE or len(many) < MIN_SHOWINGS:
        assert found is None
    else:
        assert found in range(4)


def shown(*values, place=FIRST):
    kinds = {0: {}, 1: {"opened": True}, 2: {"opened": True, "copied": True}, 3: {"rating": 1}, -3: {"rating": -1}}
    return [Showing(person, place, **kinds[value]) for person, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "place", "grade"),
    [
        ((0, 0, 0, 0, 0), FIRST, 0),
        ((1, 1, 0, 0, 0), FIRST, 0),  # 2/5
        ((1, 1, 1, 0, 0), FIRST, 1),  # 3/5
        ((2, 2, 2, 2, 0), FIRST, 2),  # 8/5
        ((3, 3, 3, 3, 1), FIRST, 3),  # 13/5
        ((2, 2, 2, -3, 0), FIRST, 1),  # 3/5
        ((-3, 0, 0, 0, 0), FIRST, 0),
        ((1, 1, 0, 0, 0), SECOND, 1),  # 2/5, examined half the time: 4/5
        ((1, 0, 0, 0, 0), Place("explorer", 20), 1),  # 1/5, clipped to 0.3: 2/3
    ],
)
def test_grades_by_hand(values, place, grade):
    assert use_grade(shown(*values, place=place), {}) == grade


def test_the_probabilities_that_were_found_count_before_the_prior():
    assert use_grade(shown(1, 1, 0, 0, 0, place=SECOND), {SECOND: 0.9}) == 0


def test_a_person_counts_once():
    eager = [Showing(1, FIRST, copied=True)] * 50
    # 2 of one person and 0 of three others.
    assert use_grade([*eager, *shown(0, place=FIRST), Showing(2, FIRST), Showing(3, FIRST)], {}) == 1
    assert use_grade([*eager, Showing(2, FIRST)], {}) is None
