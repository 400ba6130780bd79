"""Reading a language model's judgments: what breaks the schema is left out, and nothing is guessed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.presets.contextpack.judge import Relevance
from retrieval.presets.contextpack.prompt import ANSWER_SCHEMA, Reading, read_answer


def result(number, score: object = 70, *, answers=False, evidence="four minutes", **more):
    return {"id": number, "relevance_score": score, "answerability": answers, "key_evidence": evidence, **more}


def answer(*results, **more):
    return json.dumps({"results": list(results), **more})


def test_each_result_is_read():
    reading = read_answer(answer(result(1, 100, answers=True), result(2, 0, evidence="")), candidates=2)
    assert reading == Reading(
        {1: Relevance(100.0, is_answering=True, evidence="four minutes"), 2: Relevance(0.0, is_answering=False)}
    )


def test_a_score_between_two_steps_is_taken():
    assert read_answer(answer(result(1, 83.5)), candidates=1).judged[1].score == 83.5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot help with that.",
        '{"results": [',
        "[]",
        "null",
        '{"results": {}}',
        '{"judgments": []}',
        answer(result(1), comment="done"),
        f"Sure! {answer(result(1))}",
        '{"results": [{"id": 1, "relevance_score": NaN, "answerability": true, "key_evidence": ""}]}',
        "[" * 100_000,
    ],
)
def test_what_is_no_such_object_says_nothing(text):
    assert read_answer(text, candidates=3) == Reading({}, is_whole=False)


def test_a_code_block_around_the_object_is_taken_off():
    assert set(read_answer(f"```json\n{answer(result(1))}\n```", candidates=1).judged) == {1}


@pytest.mark.parametrize(
    "broken",
    [
        result(1, 101),
        result(1, -1),
        {**result(1), "relevance_score": True},
        result(1, "70"),
        result(1, None),
        result(1, 1e999),
        result(1, answers="yes"),
        result(1, evidence=None),
        result("1"),
        {**result(1), "id": True},
        result(1.0),
        result(0),
        result(4),
        result(1, reason="because"),
        {"id": 1, "relevance_score": 70},
        "1: 70",
        None,
    ],
)
def test_a_result_that_breaks_the_schema_is_left_out_and_the_others_count(broken):
    text = json.dumps({"results": [broken, result(2)]}).replace("Infinity", "1e999")
    assert read_answer(text, candidates=3) == Reading(
        {2: Relevance(70.0, is_answering=False, evidence="four minutes")}, left_out=1
    )


def test_a_candidate_judged_twice_and_differently_is_not_judged():
    twice = answer(result(1, 100), result(1, 0), result(2), result(2))
    assert set(read_answer(twice, candidates=2).judged) == {2}
    assert set(read_answer(answer(result(1, 100), result(1, 0), result(1, 100)), candidates=2).judged) == set()


def test_evidence_is_one_short_line_without_what_cannot_be_seen():
    evidence = read_answer(answer(result(1, evidence=f"one\n two\u202e {'x' * 400}")), candidates=1).judged[1].evidence
    assert evidence.startswith("one two xxx")
    assert len(evidence) == 300


def test_the_schema_is_the_one_that_is_read_by():
    item = ANSWER_SCHEMA["properties"]["results"]["items"]
    assert set(item["required"]) == set(item["properties"]) == set(result(1))
    assert not item["additionalProperties"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 200) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["results", *result(1)]), inner, max_size=4)
    ),
)


@given(st.text() | _JSON.map(json.dumps) | st.lists(_JSON).map(lambda it: json.dumps({"results": it})))
def test_whatever_is_answered_only_candidates_are_judged_within_the_scale(text):
    judged = read_answer(text, candidates=3).judged
    assert set(judged) <= {1, 2, 3}
    assert all(0 <= it.score <= 100 for it in judged.values())
