"""What a text states: its frame of words and its values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ranking.quotes.statements import statement, stems


def stated(text):
    return statement(text, "english")


@pytest.mark.parametrize(
    ("text", "slots", "values"),
    [
        ("27 days of leave", ("day",), ((27,),)),
        ("three weeks ahead", ("week",), ((3,),)),
        ("€ 1,200.50 and 0,38 euros", ("euro", "euro"), ((1200.5,), (0.38,))),
        ("-25 °C", ("celsius",), ((-25,),)),
        ("on 2026-11-26", ("date",), ((2026, 11, 26),)),
        ("until 26 November", ("date",), ((None, 11, 26),)),
        ("until November 26th, 2026", ("date",), ((2026, 11, 26),)),
        ("from 06:30", ("time",), ((6, 30),)),
        ("RIME-4107 in K5", (), ()),
        ("an increase of 12 per cent", ("",), ((12,),)),
    ],
)
def test_values_have_their_unit(text, slots, values):
    found = stated(text)
    assert (found.slots, found.values) == (slots, values)


def test_years_are_no_values():
    found = stated("In 2026 the fee is 65 euros.")
    assert (found.years, found.values) == ({2026}, ((65,),))


def test_names_and_codes_are_known_as_such():
    assert stated("The gate at Vessing reports RIME-4107.").names == {"vess", "rime-4107"}


@pytest.mark.parametrize(
    ("text", "denies"),
    [
        ("Photographs are not accepted.", True),
        ("Photographs are accepted.", False),
        ("Dogs are forbidden.", True),
        ("Dogs are not forbidden.", False),
        ("You can't smoke.", True),
    ],
)
def test_it_tells_whether_a_text_denies(text, denies):
    assert stated(text).denies is denies


def test_only_values_at_the_same_place_are_compared():
    one = stated("After five years it is 28 days, after ten years 29.")
    other = stated("After five years it is 26 days, after ten years 28.")
    assert one.differences(other) == ((1, (28,), (26,)), (3, (29,), (28,)))
    assert stated("It takes 4 hours.").differences(stated("It takes 4 days.")) == ()


def test_a_date_without_a_year_equals_the_same_day_of_any_year():
    assert stated("until 26 November").differences(stated("until 26 November 2026")) == ()


@given(st.text(max_size=80), st.text(max_size=80))
def test_differences_are_the_same_from_both_sides_and_none_to_itself(one, other):
    assert stated(one).differences(stated(one)) == ()
    first, second = stated(one), stated(other)
    if first.slots == second.slots:
        assert [(b, a) for _, a, b in first.differences(second)] == [(a, b) for _, a, b in second.differences(first)]


@given(
    st.text(max_size=80)
    | st.lists(st.sampled_from(["May", "5th", "2020-01-02", "-backup", "x", " ", ", "])).map("".join)
)
def test_a_statement_has_only_stems_of_its_text(text):
    found = stated(text)
    assert found.words | {token for token in found.tokens if not token.startswith("#")} <= stems(text, "english")


def test_values_are_read_as_the_language_writes_them():
    found = statement("Belege über 1.250,50 € ab dem 3. März 2026, 14:30 Uhr", "german")
    assert (found.slots, found.values) == (("euro", "date", "time"), ((1250.5,), (2026, 3, 3), (14, 30)))
