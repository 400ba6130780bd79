import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.index.salience import salience_of

shares = st.none() | st.floats(0, 1)


def test_the_four_shares_are_weighed():
    # 0.5 * 0.6 + 0.2 * (1 - 1/4) + 0.15 * 0.5 + 0.15 * 1 = 0.3 + 0.15 + 0.075 + 0.15
    assert salience_of(1, 4, terms=0.6, title=0.5, headings=1.0) == pytest.approx(0.675)


def test_a_share_of_nothing_is_left_out():
    # Without title and headings: (0.5 * 0.6 + 0.2 * 0.75) / 0.7
    assert salience_of(1, 4, terms=0.6) == pytest.approx(0.45 / 0.7)
    assert salience_of(0, 1) == 1.0


@given(
    st.builds(
        lambda a, b, c, n, k: salience_of(k % n, n, a, b, c),
        shares,
        shares,
        shares,
        st.integers(1, 50),
        st.integers(0, 49),
    )
)
def test_it_lies_between_0_and_1(salience):
    assert 0 <= salience <= 1


@given(shares, st.integers(2, 50))
def test_of_equal_chunks_the_earlier_one_says_more(share, chunks):
    first, second = (salience_of(place, chunks, terms=share) for place in (0, 1))
    assert first > second
