import pytest

from retrieval.ranking.agreement import Agreement, cohen, fleiss

#: The worked example of Fleiss (1971) in its usual short form: 14 raters put each of 10 subjects into one of 5 kinds.
FLEISS = [
    (0, 0, 0, 0, 14),
    (0, 2, 6, 4, 2),
    (0, 0, 3, 5, 6),
    (0, 3, 9, 2, 0),
    (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0),
    (3, 2, 6, 3, 0),
    (2, 5, 3, 2, 2),
    (6, 5, 2, 1, 0),
    (0, 2, 2, 3, 7),
]


def test_fleiss_kappa_of_his_example():
    passages = [[kind for kind, number in enumerate(row) for _ in range(number)] for row in FLEISS]
    assert fleiss(passages) == Agreement(10, pytest.approx(0.210, abs=0.0005))


def test_passages_of_one_rater_are_left_out():
    assert fleiss([[3], [0, 0], [2, 2], [1]]) == Agreement(2, 1.0)
    assert fleiss([[3], [1]]) == Agreement(0, None)
    # All agree on the only grade: chance would too.
    assert fleiss([[3, 3], [3, 3]]) == Agreement(2, None)


def test_cohens_kappa_weighs_the_square_of_the_distance():
    # Squared distances: 0, 1, 0, 9, sum 10, observed mean 2.5. First rater 0, 1, 3, 3, second 0, 2, 3, 0:
    # over all 16 pairs (0: 0+4+9+0) + (1: 1+1+4+1) + 2 (3: 9+1+0+9) = 13 + 7 + 38 = 58, expected mean 3.625.
    assert cohen([(0, 0), (1, 2), (3, 3), (3, 0)]) == Agreement(4, pytest.approx(1 - 2.5 / 3.625))


def test_two_raters_agree_fully_by_chance_and_not_at_all():
    assert cohen([(0, 0), (3, 3)]) == Agreement(2, 1.0)
    assert cohen([(0, 0), (0, 3), (3, 0), (3, 3)]) == Agreement(4, 0.0)
    assert cohen([(0, 3), (3, 0)]) == Agreement(2, -1.0)
    assert cohen([(2, 2), (2, 2)]) == Agreement(2, None)
    assert cohen([]) == Agreement(0, None)
