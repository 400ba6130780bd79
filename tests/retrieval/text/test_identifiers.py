"""Names written as machines write them: which they are, and who holds them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retrieval.text.identifiers import share_found, written_names


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("what does ERR_WINCH-4711 mean?", ("err_winch-4711",)),
        ("Is Q-4711 open, and E-12?", ("q-4711", "e-12")),
        ("where is retry_limit of corecube.settings read", ("retry_limit", "corecube.settings")),
        ("who calls std::move in src/app/main.cpp", ("std::move", "src/app/main.cpp")),
        ("upgrade 1.2.3 for ann@example.org", ("1.2.3", "ann@example.org")),
        (r"open C:\temp", (r"c:\temp",)),
    ],
)
def test_what_is_written_as_code(question, names):
    assert written_names(question) == names


@pytest.mark.parametrize(
    "question",
    [
        "a state-of-the-art, well-known method",
        "the U.S. and e.g. Washington D.C. in 1990-1995",
        "a 20-year-old and/or his/her friend paid 48,200 at 3.5 percent at 10:30",
        "AC/DC and AT&T on 2024-05-01",
        "It ended.The next began",
        "",
    ],
)
def test_what_is_plain_language(question):
    assert written_names(question) == ()


def test_a_name_is_held_whole_and_in_any_case():
    names = ("e-4711", "retry_limit")
    assert share_found(names, "It said e-4711.", "RETRY_LIMIT = 3") == 1.0
    assert share_found(names, "E-47110, XE-4711, the E-4711_B; then (E-4711)") == 0.5
    assert share_found(names, "retry_limits and _retry_limit") == 0.0
    assert share_found((), "anything") == 0.0


@given(st.text(max_size=60))
@example("0\\0_")
def test_a_question_holds_what_it_writes(question):
    assert share_found(names := written_names(question), question) in {0.0, 1.0}
    assert bool(names) == (share_found(names, question) == 1.0)
