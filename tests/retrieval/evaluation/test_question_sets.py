import pytest

from corecube.errors import InvalidRequestError
from corecube.models import AuditEvent
from retrieval.evaluation.question_sets import delete_case, delete_set, mark_case, save_case, set_named
from retrieval.models import Case, QuestionSet
from retrieval.records.judgments import MAX_QUERY_LENGTH


def test_a_set_is_made_once_under_its_name(people):
    assert set_named(" Release   questions ", actor=people["alice"]) == set_named(
        "release questions", actor=people["alice"]
    )
    assert QuestionSet.objects.get().name == "Release questions"
    with pytest.raises(InvalidRequestError, match="letter or a digit"):
        set_named("…", actor=people["alice"])


def test_a_question_is_saved_once_and_cut_where_retrieval_reads_no_further(people):
    made = set_named("s", actor=people["alice"])
    first, is_new = save_case(made, f"  {'long ' * 200}", actor=people["alice"])
    assert is_new
    assert len(first.query) <= MAX_QUERY_LENGTH
    assert save_case(made, f"{'long ' * 200}", actor=people["alice"]) == (first, False)
    with pytest.raises(InvalidRequestError, match="needs a question"):
        save_case(made, " \0 ", actor=people["alice"])


def test_a_set_holds_only_so_many(people, monkeypatch):
    monkeypatch.setattr("retrieval.evaluation.question_sets.MAX_CASES", 1)
    made = set_named("s", actor=people["alice"])
    save_case(made, "one", actor=people["alice"])
    with pytest.raises(InvalidRequestError, match="A question set can have at most 1 cases"):
        save_case(made, "two", actor=people["alice"])


def test_every_change_is_audited(people):
    alice = people["alice"]
    made = set_named("s", actor=alice)
    case, _ = save_case(made, "one", actor=alice)
    mark_case(case, is_answerable=False, actor=alice)
    assert not Case.objects.get().is_answerable
    delete_case(case, actor=alice)
    delete_set(made, actor=alice)
    assert not QuestionSet.objects.exists()
    assert list(AuditEvent.objects.order_by("pk").values_list("action", flat=True)) == [
        "question_set.created",
        "case.saved",
        "case.marked",
        "case.deleted",
        "question_set.deleted",
    ]
