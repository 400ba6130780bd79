"""Documents that contradict each other, from their files to the answer."""

from tests.conftest import LEAVE

QUESTION = "How many days of paid parental leave does everyone at the warehouse have?"


def test_the_newer_answers_the_other_follows_and_the_reason_is_conflicting(contradicting, ask):
    answer = ask(QUESTION, contradicting.key("bob")).json()
    content, own = answer["choices"][0]["message"]["content"], answer["corecube"]
    other = content.index("Another document says otherwise (Leave rules, updated 9 May 2024):")
    assert content.index(LEAVE.format(20)) < other < content.index(LEAVE.format(15))
    assert LEAVE.format(10) not in content
    assert own["answerability"]["reason"] == "conflicting"
    assert own["answerability"]["explanation"].startswith("Documents contradict each other: “Everyone at")
