"""Badges."""

from explorer.components.badges import badges
from retrieval.engine.state import Note, Span

ADVICE = "This is usual for whole questions and does not affect vector search. To require words, put them in quotes."


def test_a_relaxed_query_is_told(finished):
    assert [(badge.text, badge.tone) for badge in badges(finished.trace)] == [
        ("few exact matches: searched for any term", "")
    ]


def test_a_relaxed_query_says_which_terms_were_searched_and_what_to_do(make_outcome):
    note = Note("fulltext_relaxed", "Fewer than 100 chunks match every term; searched for any of: hotel.")
    (badge,) = badges(make_outcome(trace=(Span("fulltext", 0.1, 0, 0, notes=(note,)),)).trace)
    assert badge.detail == f"{note.text} {ADVICE}"


def test_what_fell_back_comes_first_and_once(make_outcome, finished):
    note = Note("dense_timeout", "The vector leg ran out of time.", degraded=True)
    outcome = make_outcome(trace=(*finished.trace, Span("dense", 0.1, 0, 0, notes=(note, note))))
    assert [badge.text for badge in badges(outcome.trace)] == [
        "vector search timed out",
        "few exact matches: searched for any term",
    ]


def test_how_a_misspelled_name_was_read_is_told_in_words(make_outcome, finished):
    note = Note("spelling", "Read “Guuy” as “Guy”.", quotes=True)
    outcome = make_outcome(trace=(*finished.trace, Span("expand", 0.1, 0, 0, notes=(note,))))
    assert [badge.text for badge in badges(outcome.trace)] == [
        "few exact matches: searched for any term",
        "Read “Guuy” as “Guy”",
    ]


def test_a_note_without_the_text_that_the_log_leaves_out_is_told_by_its_name():
    notes = (Note("spelling", ""), Note("fulltext_relaxed", ""), Note("dense_exact", ""))
    found = badges((Span("expand", 0.1, 0, 0, notes=notes),))
    assert [(badge.text, badge.detail) for badge in found] == [
        ("spelling corrected", "From the query log."),
        ("few exact matches: searched for any term", ADVICE),
    ]


def test_a_question_that_needs_no_search_is_told(make_outcome):
    note = Note(
        "route_skip",
        "Nothing was searched: the question matches the route thanks (similarity 0.91), which needs no search.",
    )
    outcome = make_outcome(trace=(Span("route", 0.1, 0, 0, notes=(note,)),))
    assert [(badge.text, badge.detail, badge.tone) for badge in badges(outcome.trace)] == [
        ("no search needed", note.text, "")
    ]


def test_a_time_read_from_the_question_is_told(make_outcome, finished):
    note = Note("route_window", "“last week” narrows the time from 2026-05-25 00:00.")
    outcome = make_outcome(trace=(*finished.trace, Span("route", 0.1, 0, 0, notes=(note,))))
    assert [badge.text for badge in badges(outcome.trace)] == [
        "few exact matches: searched for any term",
        "time read from the question",
    ]
