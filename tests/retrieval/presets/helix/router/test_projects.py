import pytest

from retrieval.presets.helix.router.question import project_in


@pytest.mark.parametrize(
    ("text", "known", "found"),
    [
        ("What did we decide for project atlas?", ["atlas"], "atlas"),
        ("the atlas project", ["Atlas"], "Atlas"),
        ("open an atlas of the world", ["atlas"], ""),
        ("the tests of Atlas fail", ["Atlas"], "Atlas"),
        ("Atlas fails", ["Atlas"], ""),
        ("tests in corecube-web", ["corecube-web", "corecube"], "corecube-web"),
        ("why does hall 7 leak", ["hall 7"], "hall 7"),
        ("why does hall 71 leak", ["hall 7"], ""),
        ("data of the customers", ["data"], ""),
        ("anything", ["", " ", "a"], ""),
        ("what is c++ in project c++", ["c++"], "c++"),
    ],
)
def test_a_known_project_is_found_where_its_name_is_meant(text, known, found):
    assert project_in(text, known) == found
