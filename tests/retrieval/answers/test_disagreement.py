"""Answers that show what other documents say otherwise."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.extractive import chosen_texts, extract_answer
from retrieval.engine.types import QueryTerms, Term
from retrieval.llm.types import Task
from retrieval.ranking.quotes.candidates import candidates
from retrieval.ranking.quotes.conflicts import find_conflicts
from retrieval.ranking.quotes.ranker import Asking, Scored
from tests.passages import judged, made

QUESTION = "How many days of paid leave?"
TERMS = QueryTerms((Term("paid", 1, 3.0), Term("leav", 1, 2.0), Term("day", 1, 1.0)), 10)
CURRENT = "Everyone who works full time has 27 days of paid leave."
OTHER = "Everyone who works full time has 25 days of paid leave."


def of(number, text, title, *, year=2024, status="", connection=1):
    passage = made(number, text, title=title)
    changed = datetime(year, 3, 3, tzinfo=UTC)
    facts = replace(passage.hit.facts, modified_at=changed, status=status, connection_id=connection)
    return replace(passage, hit=replace(passage.hit, facts=facts))


def answer_to(*passages, question=QUESTION, trust=None):
    task = Task(question=question, passages=passages, terms=TERMS, answerability=judged(), trust=trust or {})
    return extract_answer(task).text


def test_the_newer_document_answers_and_the_other_follows_with_its_date_and_source():
    assert answer_to(of(1, OTHER, "Leave policy"), of(2, CURRENT, "Leave and absence", year=2026)) == (
        "Quoted from your documents:\n\n"
        f"> {CURRENT} [2]\n\n"
        "Another document says otherwise (Leave policy, updated 3 March 2024):\n\n"
        f"> {OTHER} [1]"
    )


def test_what_else_is_quoted_is_not_read_as_what_another_document_says():
    current = of(2, f"{CURRENT}\n\nDays of paid leave begin on Mondays.", "Leave and absence", year=2026)
    text = answer_to(of(1, OTHER, "Leave policy"), current)
    assert f"> {OTHER} [1]\n\nAlso found:\n\n> Days of paid leave begin on Mondays. [2]" in text


def test_the_more_trusted_document_answers_though_it_is_older():
    passages = of(1, OTHER, "Leave policy", connection=7), of(2, CURRENT, "Leave and absence", year=2026)
    assert answer_to(*passages, trust={7: 3, 1: 1}).startswith(f"Quoted from your documents:\n\n> {OTHER} [1]")


def test_a_superseded_document_is_named_as_an_older_version():
    text = answer_to(of(1, OTHER, "Draft", status="superseded"), of(2, CURRENT, "Leave and absence", year=2020))
    assert (
        "> " + CURRENT + " [2]\n\nAn older version says otherwise (Draft, updated 3 March 2024):\n\n> " + OTHER in text
    )
    assert "Another document" not in text


def test_a_superseded_document_is_quoted_behind_its_status_where_none_answers_better():
    old = of(1, f"{OTHER}\n\nDays of paid leave begin on Mondays.", "Leave", status="superseded")
    text = answer_to(old)
    assert f"Source status: superseded (Leave, updated 3 March 2024):\n\n> {OTHER} [1]" in text
    assert (text.count("updated 3 March 2024"), text.count("[1]")) == (1, 2)
    worse = of(2, "Paid leave begins on Mondays.", "Leave", status="superseded")
    assert "[2]" not in answer_to(of(1, CURRENT, "Leave and absence"), worse)
    assert "[2]" in answer_to(of(1, CURRENT, "Leave and absence"), of(2, "Paid leave begins on Mondays.", "Leave"))


@pytest.mark.parametrize(("score", "quoted"), [(1.9, OTHER), (2.1, CURRENT)])
def test_a_superseded_document_that_answers_far_better_is_quoted(score, quoted):
    passages = of(1, OTHER, "Rules", status="superseded"), of(2, CURRENT, "Leave")
    (old,), (current,) = (candidates([passage], "", "english") for passage in passages)
    (text,) = chosen_texts([Scored(old, {}, 5.0), Scored(current, {}, score)], (), max_characters=100)
    assert quoted in text


def test_a_title_about_old_things_does_not_make_a_document_old():
    assert "status" not in answer_to(of(1, CURRENT, "Expired leave and how to archive it"))


@pytest.mark.parametrize(("status", "quotes"), [("superseded", 2), ("", 3)])
def test_the_status_of_a_document_counts_as_characters(status, quotes):
    rules = [f"Paid leave of {number} days has its rule, {'and another, ' * 12}as written." for number in range(21, 26)]
    text = answer_to(of(1, "\n\n".join(rules), "Leave", status=status))
    assert (text.count("[1]"), len(text) <= 700) == (quotes, True)


def test_a_contradicted_statement_is_quoted_that_is_not_among_the_ranked():
    passages = (of(1, CURRENT, "Leave"), of(2, OTHER, "Leave"))
    conflicts = find_conflicts(QUESTION, passages, Asking.of(QUESTION, TERMS), {})
    quote, remark = chosen_texts((), conflicts, max_characters=700)
    assert CURRENT in quote
    assert OTHER in remark


def test_a_draft_without_another_version_is_not_marked():
    assert "status" not in answer_to(of(1, CURRENT, "Leave", status="draft for the board"))


def test_a_quote_that_a_current_document_holds_too_is_not_marked():
    text = answer_to(of(1, CURRENT, "Old leave", status="superseded"), of(2, CURRENT, "Leave"))
    assert f"> {CURRENT} [2]" in text
    assert "status" not in text


@pytest.mark.parametrize(
    ("question", "quotes_old"),
    [
        (QUESTION, False),
        ("How many days of paid leave did we have in 2024?", True),
        (f"{QUESTION} In the old rules?", True),
    ],
)
def test_a_superseded_document_gives_way_to_a_current_one_unless_the_question_is_about_the_past(question, quotes_old):
    worse = of(2, "Paid leave in days is granted by the office.", "Leave")
    text = answer_to(of(1, OTHER, "Rules", status="superseded"), worse, question=question)
    assert ("Source status" in text, "[2]" in text) == (quotes_old, True)


@pytest.mark.parametrize(("status", "is_quoted"), [("superseded", False), ("", True)])
def test_nothing_else_is_quoted_from_a_superseded_document(status, is_quoted):
    """A rule that the current version dropped contradicts nothing, but does not hold either."""
    dropped = "Paid leave ends after three days in December."
    old = of(1, f"{OTHER} {dropped}", "Working paper", status=status)
    text = answer_to(old, of(2, CURRENT, "Leave and absence", year=2026))
    assert OTHER in text
    assert (dropped in text) == is_quoted


def test_a_copy_of_one_side_adds_its_number():
    passages = of(1, CURRENT, "Leave", year=2026), of(2, OTHER, "Policy"), of(3, OTHER, "Copy")
    assert answer_to(*passages).count(OTHER) == 1
    assert f"{OTHER} [2][3]" in answer_to(*passages)


def test_the_row_of_a_table_follows_with_its_header():
    tables = (f"Item | Limit\nPaid leave | {days} days\nSick child | 10 days" for days in (25, 27))
    one, other = (of(n, table, f"Table {'xyz'[n]}", year=2023 + n) for n, table in enumerate(tables, start=1))
    text = answer_to(one, other)
    assert "> | Paid leave | 27 days |\n> | Sick child | 10 days |\n\n[2]" in text
    assert "2024):\n\n> | Item | Limit |\n> | --- | --- |\n> | Paid leave | 25 days |\n\n[1]" in text


def test_what_holds_for_another_year_is_left_out():
    passages = of(1, OTHER, "Leave 2024"), of(2, CURRENT, "Leave 2026", year=2026)
    text = answer_to(*passages, question="How many days of paid leave in 2024?")
    assert "25 days" in text
    assert "27 days" not in text
    assert "otherwise" not in text


@pytest.mark.parametrize("title", ["[1] Leave\npolicy", "Leave [2]"])
def test_a_title_is_no_citation_and_one_line(title):
    text = answer_to(of(1, OTHER, title), of(2, CURRENT, "Leave and absence", year=2026))
    assert "\\[" in text.split("otherwise (")[1].split("\n")[0]


@given(st.lists(st.text("Every zebra has paid leave.12 \n|", max_size=250), min_size=2, max_size=4))
def test_the_answer_stays_short(texts):
    passages = [
        of(n, f"Every zebra has {n + 20} days of paid leave. {text}", f"Title {n}") for n, text in enumerate(texts, 1)
    ]
    assert len(answer_to(*passages)) <= 700
