"""The sample company's documents that contradict each other, and its superseded ones."""

import pytest

from retrieval.answers.extractive import extract_answer
from retrieval.encoders.vector_cache import SentenceEncoder
from retrieval.llm.types import Task

# Without the mark no test database is made, and the module's fixture would fill the installation's own.
pytestmark = pytest.mark.django_db


def test_the_only_documents_that_contradict_each_other_are_the_minutes_about_tunnel_2(asked):
    assert {it.question["id"] for it in asked if it.outcome.state.answerability.reason == "conflicting"} == {"tunnel-2"}


def test_what_is_newer_answers_and_the_other_follows_with_its_source(asked, real_encoder):
    answers = {
        it.question["id"]: answer_to(it, real_encoder)
        for it in asked
        if it.question["id"] in {"tunnel-2", "leave-days", "hotel-limit", "km-rate-2024"}
    }
    for name, first, source, other in (
        (
            "tunnel-2",
            "26 November",
            "Another document says otherwise (Operations weekly, 5 November 2026",
            "19 November",
        ),
        ("leave-days", "27 days", "An older version says otherwise (Leave policy, working copy", "has 25 days"),
        ("hotel-limit", "145 euros", "An older version says otherwise (Travel rules", "120 euros"),
    ):
        assert answers[name].index(first) < answers[name].index(source) < answers[name].index(other)
    assert "0.38 euros" in answers["km-rate-2024"]
    assert "0.44 euros" not in answers["km-rate-2024"]


def answer_to(it, encoder):
    state = it.outcome.state
    task = Task(
        question=it.question["text"],
        passages=state.passages,
        terms=state.terms,
        vector=state.vector,
        answerability=state.answerability,
        trust=state.scope.trust,
    )
    return extract_answer(task, language="english", encoder=SentenceEncoder(encoder)).text
