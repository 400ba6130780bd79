import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.presets.consolidated.evidence.depth import Grade, GradeConfig, grade_of, relaxed_floor

CONFIG = GradeConfig()


@pytest.mark.parametrize(
    ("cosines", "grade"),
    [
        ([0.7, 0.5], Grade.A),  # mean 0.6
        ([0.5, 0.1, 0.5], Grade.B),  # of the best two 0.5
        ([0.9], Grade.C),  # one place empty: 0.45
        ([0.3, 0.3], Grade.D),
        ([0.2, 0.2], Grade.F),
        ([], Grade.F),
    ],
)
def test_grades_by_hand(cosines, grade):
    assert grade_of(cosines, keep=2, config=CONFIG) is grade


def test_only_poor_grades_relax_the_floor():
    relaxed = [round(relaxed_floor(0.2, grade, CONFIG), 3) for grade in Grade]
    assert relaxed == [0.2, 0.2, 0.18, 0.15, 0.1]
    assert [grade.is_high for grade in Grade] == [True, True, False, False, False]


@given(st.lists(st.floats(0, 1), max_size=20), st.floats(0, 1))
def test_more_evidence_never_grades_worse(cosines, more):
    before, after = (grade_of(it, keep=5, config=CONFIG) for it in (cosines, [*cosines, more]))
    assert list(Grade).index(after) <= list(Grade).index(before)
