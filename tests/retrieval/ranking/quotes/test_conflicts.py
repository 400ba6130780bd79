"""Statements of different documents that differ, and which of them comes first."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.types import QueryTerms, Term
from retrieval.engine.words import stemmer
from retrieval.ranking.quotes.conflicts import MAX_PLACE, disagreement, find_conflicts
from retrieval.ranking.quotes.ranker import Asking
from tests.passages import made

LEAVE = "Everyone who works full time has {} days of paid leave in a calendar year."
HEADER = "Item | Limit or rate\n"


def of(number, text, title="", year=None, *, trust=1, status="", headings=()):
    """Return a passage of a document of its own; `trust` is the id of its connection."""
    passage = made(number, text, title=title or f"Document {'abcdefgh'[number]}", headings=headings)
    changed = datetime(year, 3, 3, tzinfo=UTC) if year else None
    facts = replace(passage.hit.facts, modified_at=changed, status=status, connection_id=trust)
    return replace(passage, hit=replace(passage.hit, facts=facts))


def conflicts_of(question, *passages, **options):
    words = {stemmer("english")(word.lower()) for word in question.strip("?").split()}
    terms = QueryTerms(tuple(Term(word, 1, 2.0) for word in sorted(words)), 10)
    return find_conflicts(question, passages, Asking.of(question, terms), {1: 1, 2: 2, 3: 3}, **options)


def said(claims):
    return [claim.passage.number for claim in claims]


def only(question, *passages):
    """Return the numbers of the one conflict: the first passage, its equals, the old ones, those of other years."""
    (found,) = conflicts_of(question, *passages)
    return found.first.passage.number, said(found.equal), said(found.old), said(found.beside)


def test_the_more_trusted_comes_first_then_the_newer():
    question = "How many days of paid leave?"
    older, newer, trusted = LEAVE.format(25), LEAVE.format(26), LEAVE.format(27)
    assert only(question, of(1, older, year=2023), of(2, newer, year=2025)) == (2, [1], [], [])
    assert only(question, of(1, older, year=2023), of(2, newer, year=2025), of(3, trusted, year=2020, trust=3)) == (
        3,
        [2, 1],
        [],
        [],
    )


def test_an_unknown_date_counts_as_the_oldest():
    assert only("How much paid leave?", of(1, LEAVE.format(25)), of(2, LEAVE.format(27), year=2001))[0] == 2


@pytest.mark.parametrize(
    "old",
    [{"status": "superseded"}, {"status": "Draft"}, {"title": "Leave policy (draft)"}, {"title": "Leave, archived"}],
)
def test_what_is_superseded_or_a_draft_is_no_equal_however_trusted_and_new(old):
    passages = of(1, LEAVE.format(25), year=2026, trust=3, **old), of(2, LEAVE.format(27), year=2020)
    assert only("How much paid leave?", *passages) == (2, [], [1], [])
    assert disagreement(conflicts_of("How much paid leave?", *passages)) == ""


def test_an_earlier_edition_is_no_equal():
    passages = (
        of(1, HEADER + "Late arrival | 50 euros", "Tariff 2025"),
        of(2, HEADER + "Late arrival | 65 euros", "Tariff 2026"),
    )
    assert only("What does a late arrival cost?", *passages) == (2, [], [1], [])


def test_the_year_of_the_question_decides():
    passages = (
        of(1, HEADER + "Late arrival | 50 euros", "Tariff 2025"),
        of(2, HEADER + "Late arrival | 65 euros", "Tariff 2026"),
    )
    assert only("What did a late arrival cost in 2025?", *passages) == (1, [], [], [2])
    assert disagreement(conflicts_of("What did a late arrival cost in 2025?", *passages)) == ""


def test_of_a_table_only_the_row_that_the_numbers_of_the_question_pick_is_compared():
    table = "Absence | Abroad\nmore than 6 hours | {} pounds\nmore than 10 hours | {} pounds"
    passages = of(1, table.format(15, 28), year=2023), of(2, table.format(18, 32), year=2025)
    (found,) = conflicts_of("What is paid abroad for more than 11 hours of absence?", *passages)
    assert found.first.unit.text == "more than 10 hours | 32 pounds"


def test_the_explanation_names_both_sides():
    found = conflicts_of(
        "How long is the induction valid?", *(of(n, f"The induction is valid for {n} months.") for n in (1, 2))
    )
    assert disagreement(found) == (
        "Documents contradict each other: “The induction is valid for 1 months.” [1], "
        "“The induction is valid for 2 months.” [2]."
    )


def test_what_only_one_says_of_the_question_may_be_in_the_others_title_or_headings():
    question = "How many days of leave does an employee have?"
    texts = (
        "27 days of leave are granted in a calendar year.",
        "An employee is granted 25 days of leave in a calendar year.",
    )
    assert conflicts_of(question, of(1, texts[0]), of(2, texts[1])) == ()
    assert only(question, of(1, texts[0], "Each employee", year=2026), of(2, texts[1], year=2025)) == (1, [2], [], [])


DIFFERENT_THINGS = {
    "full time and part time": (
        "How many days of leave do employees get?",
        "Full-time employees get 27 days of leave.",
        "Part-time employees get 15 days of leave.",
    ),
    "adults and children": (
        "What does a ticket cost?",
        "An adult ticket of the museum costs 12 euros.",
        "A child ticket of the museum costs 6 euros.",
    ),
    "a day and a week": (
        "How many hours may a driver drive?",
        "A driver may drive 9 hours a day.",
        "A driver may drive 56 hours a week.",
    ),
    "at least and at most": (
        "How many days before departure must travel be booked?",
        "Travel must be booked at least 7 days before departure.",
        "Travel must be booked at most 90 days before departure.",
    ),
    "of something that another sentence names": (
        "How long is the probation period for employees?",
        "Their probation period for the season is three months.",
        "The probation period for employees is six months.",
    ),
    "the terms of another sentence": (
        "How many days of leave do apprentices get?",
        "- Apprentices: see the agreement. Managers get 30 days of leave.",
        "- Apprentices: see the annex. Cleaners get 24 days of leave.",
    ),
}


@pytest.mark.parametrize(("question", "one", "other"), DIFFERENT_THINGS.values(), ids=DIFFERENT_THINGS)
def test_different_things_may_have_different_values(question, one, other):
    assert conflicts_of(question, of(1, one), of(2, other)) == ()


def test_two_editions_with_their_days_are_an_older_and_a_newer_one():
    titles = "Leave policy, 1 March 2024", "Leave policy, 1 March 2026"
    passages = (of(n, LEAVE.format(24 + n), title) for n, title in enumerate(titles, start=1))
    assert only("How many days of paid leave?", *passages) == (2, [], [1], [])


@pytest.mark.parametrize("text", ["Tunnel 2 stays down until 26 May.", "Tunnel 2 is expected back on 26 May."])
def test_two_issues_of_a_year_contradict_each_other_in_what_is_asked(text):
    passages = (
        of(
            1,
            "Tunnel 2 is expected back on 19 November.",
            "Operations weekly, 5 November 2026",
            headings=("Tallow Quay",),
        ),
        of(2, text, "Operations weekly, 12 November 2026", year=2026, headings=("Tallow Quay",)),
    )
    assert only("When is tunnel 2 expected back?", *passages) == (2, [1], [], [])


@pytest.mark.parametrize(
    ("status", "title", "numbers"), [("Archive", "", (2, [], [1])), ("", "Museum and archive", (1, [2], []))]
)
def test_an_archive_is_superseded_by_its_status_and_not_by_its_name(status, title, numbers):
    passages = of(1, LEAVE.format(25), title, year=2026, status=status), of(2, LEAVE.format(27), title, year=2020)
    assert only("How much paid leave?", *passages)[:3] == numbers


def test_two_meetings_do_not_contradict_each_other():
    texts = "The council met in the chamber until 21:35.", "The council met in the chamber until 22:10."
    question = "Who met in the council chamber?"
    assert conflicts_of(question, *(of(n, text, "Council minutes") for n, text in enumerate(texts, start=1)))
    titles = "Council minutes, 11 March 2025", "Council minutes, 13 May 2025"
    assert conflicts_of(question, *(of(n, *it) for n, it in enumerate(zip(texts, titles, strict=True), start=1))) == ()


def test_of_what_the_question_is_not_about_nothing_is_explained():
    passages = [of(n, f"The induction is valid for {n} months.") for n in (1, 2)]
    found = conflicts_of("What does the induction cost a driver of the depot?", *passages)
    assert [it.is_doubt for it in found] == [False]
    assert disagreement(found) == ""


CONFLICTS = {
    "numbers": ("What does a hotel cost?", "A hotel may cost 120 euros.", "A hotel may cost 145 euros a night."),
    "number words": (
        "How many days move?",
        "Up to five days move to the next year.",
        "Up to eight days move to the next year.",
    ),
    "dates": ("When do days lapse?", "Days lapse on 31 March, taken or not.", "Days lapse on 30 June, taken or not."),
    "times": ("When does the desk open?", "The desk opens at 06:00.", "The desk opens at 07:30."),
    "yes and no": (
        "Are photographs accepted?",
        "Photographs of receipts are accepted.",
        "Photographs of receipts are not accepted.",
    ),
    "allowed and forbidden": (
        "Is smoking allowed in the yard?",
        "Smoking is allowed in the yard.",
        "Smoking is forbidden in the yard.",
    ),
    "one other word": (
        "How many days of leave does an employee have?",
        "Each employee is granted 27 days of leave per year.",
        "Each employee receives 25 days of leave per year.",
    ),
    "a sentence of an item": (
        "How early must a request reach the registrar?",
        "5. Loans. Short notice is hard. Resolved: requests must reach the registrar nine months before the loan.",
        "Requests must reach the registrar six months before the loan.",
    ),
    "a part before a semicolon": (
        "How late may a school cancel its visit free of charge?",
        "You can cancel a visit of a school free of charge up to 10 working days before it.",
        "Schools can cancel a visit free of charge up to 15 working days before it; then half of the price is due.",
    ),
    "other words": (
        "Within how many days can goods of the shop be returned with the receipt?",
        "You can return unused goods bought in the shop within 30 days, with the receipt.",
        "You can bring goods from the shop back within 21 days if you have the receipt.",
    ),
    "rows": ("hotel", HEADER + "Hotel, per night | 120 euros", HEADER + "Hotel, per night | 145 euros"),
}


@pytest.mark.parametrize(("question", "one", "other"), CONFLICTS.values(), ids=CONFLICTS)
def test_a_different_value_is_a_conflict(question, one, other):
    assert only(question, of(1, one, year=2025), of(2, other, year=2026)) == (2, [1], [], [])


NO_CONFLICTS = {
    "the same value": ("A hotel may cost 120 euros.", "Hotels may cost 120 euros."),
    "another unit": ("The hotel search takes 4 minutes.", "The hotel search takes 4 hours."),
    "another name": ("The hotel in Vessing costs 120 euros.", "The hotel in Ostermere costs 145 euros."),
    "a name in one only": ("The hotel night costs 120 euros.", "The hotel night in Paris costs 145 euros."),
    "another code": ("Hotel alarm K5 comes after 3 minutes.", "Hotel alarm K6 comes after 5 minutes."),
    "another year": ("In 2025 the hotel limit was 120 euros.", "In 2026 the hotel limit is 145 euros."),
    "other words": ("The hotel costs 120 euros.", "The manager of the hotel has 12 keys."),
    "another subject": ("Employees receive 20% off in the hotel.", "Volunteers receive 15% off in the hotel."),
    "another day": ("The inspection on 3 March scored 82 %.", "The inspection on 6 April scored 86 %."),
    "another row": (HEADER + "Hotel, per night | 120 euros", HEADER + "Hotel in a capital city | 180 euros"),
    "a row of another table": (HEADER + "Hotel | 120 euros", "Building | Rooms\nHotel | 14"),
    "another step of a scale": (
        HEADER + "Hotel up to 3 nights | 120 euros\nHotel up to 7 nights | 100 euros",
        HEADER + "Hotel up to 14 nights | 90 euros",
    ),
    "a sentence and a row": ("The hotel costs 120 euros.", HEADER + "Hotel | 145 euros"),
}


@pytest.mark.parametrize(("one", "other"), NO_CONFLICTS.values(), ids=NO_CONFLICTS)
def test_different_things_are_no_conflict(one, other):
    assert conflicts_of("hotel", of(1, one), of(2, other)) == ()


def test_titles_and_headings_that_name_different_things_are_no_conflict():
    one, other = "The hotel limit is 120 euros.", "The hotel limit is 145 euros."
    assert conflicts_of("hotel", of(1, one, "Service levels Vessing"), of(2, other, "Service levels Ostermere")) == ()
    assert conflicts_of("hotel", of(1, one, "Incident INC-7"), of(2, other, "Incident INC-9")) == ()
    assert (
        conflicts_of("hotel", of(1, one, headings=("Sites", "Vessing")), of(2, other, headings=("Sites", "Quay"))) == ()
    )


def test_one_document_does_not_contradict_itself():
    first = of(1, "The hotel limit is 120 euros. The hotel limit is 145 euros.")
    assert conflicts_of("hotel limit", first) == ()


def test_a_later_issue_gives_another_date_in_other_words():
    question = "When is tunnel 2 expected back?"
    passages = [
        of(1, "Tunnel 2 is expected back on 19 November.", "Weekly, 5 November 2026", 2025, headings=("Quay",)),
        of(2, "Tunnel 2 stays down until 26 November.", "Weekly, 12 November 2026", 2026, headings=("Quay",)),
    ]
    assert only(question, *passages) == (2, [1], [], [])
    elsewhere = of(2, "Tunnel 2 stays down until 26 November.", "Weekly, 12 November 2026", 2026, headings=("Port",))
    assert conflicts_of(question, passages[0], elsewhere) == ()


@given(st.permutations([(1, 25, 2023, 1), (2, 26, 2025, 2), (3, 27, 2026, 2), (4, 28, 2020, 3)]))
def test_the_order_of_the_passages_does_not_decide(order):
    found = only(
        "paid leave", *(of(number, LEAVE.format(days), year=year, trust=trust) for number, days, year, trust in order)
    )
    assert found == (4, [3, 2, 1], [], [])


@given(st.lists(st.text(max_size=120), min_size=2, max_size=4))
def test_any_texts_give_conflicts_of_different_documents_that_differ(texts):
    passages = [of(number, text) for number, text in enumerate(texts, start=1)]
    for conflict in conflicts_of("zebra days", *passages):
        numbers = {conflict.first.passage.number, *said(conflict.lesser)}
        assert len(numbers) == 1 + len(said(conflict.lesser))


@given(
    st.lists(st.sampled_from([*map(LEAVE.format, range(25, 28)), "Paid work.", "A paid day."]), min_size=7, max_size=7)
)
def test_the_nearest_statements_decide_whether_documents_disagree(texts):
    passages = [of(number, text) for number, text in enumerate(texts, start=1)]
    nearest = conflicts_of("How many days of paid leave?", *passages, limit=MAX_PLACE)
    every = conflicts_of("How many days of paid leave?", *passages)
    assert nearest == every[: len(nearest)]
    assert disagreement(nearest) == disagreement(every)
