import csv
import io

import pytest

from corecube.access import Principal, scope_for
from corecube.models import AuditEvent
from retrieval.evaluation import qrels
from retrieval.evaluation.imports import Imported, import_lines, read_lines
from retrieval.evaluation.question_sets import CaseFacts, save_case, set_named
from retrieval.models import Chunk, Judgment
from retrieval.records.judgments import PassageId, grades_of, judge


def passage(slug, word):
    chunk = Chunk.objects.get(document__connection__slug=slug, text__contains=word)
    return PassageId(chunk.document_id, chunk.content_hash)


@pytest.fixture
def questions(world):
    """Return a set of three questions: one judged in two compartments, one that nothing answers, one not judged."""
    made = set_named("Release questions", actor=world.alice)
    save_case(made, "how to roll back, safely", actor=world.alice)
    save_case(made, "-who won the cup", actor=world.alice, facts=CaseFacts(is_answerable=False))
    save_case(made, "what is new", actor=world.alice, facts=CaseFacts(user=world.bob, tags=("news", "weekly")))
    scope = scope_for(world.principal("alice"))
    for where, grade in ((passage("runbooks", "deployctl"), 3), (passage("ledger", "tangerine"), 1)):
        judge("How to roll back, safely", where, grade=grade, by=world.alice, scope=scope)
    return made


def scoped(person):
    return {"viewer": person, "scope": scope_for(Principal(person))}


def importing(person):
    return {"actor": person, "scope": scope_for(Principal(person))}


def test_csv_goes_out_and_comes_back(questions, world):
    text = "".join(qrels.csv_of(questions, **scoped(world.alice)))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert sorted((row["query"], row["answerable"], row["grade"]) for row in rows) == [
        ("'-who won the cup", "no", ""),
        ("how to roll back, safely", "yes", "1"),
        ("how to roll back, safely", "yes", "3"),
        ("what is new", "yes", ""),
    ]
    before = grades_of("how to roll back, safely", **scoped(world.alice))
    Judgment.objects.all().delete()
    again = set_named("Again", actor=world.alice)
    done = import_lines(read_lines([text], again), again, **importing(world.alice))
    assert done == Imported(cases=3, judgments=2, skipped=0)
    assert grades_of("how to roll back, safely", **scoped(world.alice)) == before
    facts = ("query", "is_answerable", "user", "tags")
    assert list(again.cases.values_list(*facts)) == list(questions.cases.values_list(*facts))


def test_qrels_go_out_and_come_back(questions, world):
    text = "".join(qrels.qrels_of(questions, **scoped(world.alice)))
    assert {line.split()[3] for line in text.splitlines()} == {"3", "1"}
    Judgment.objects.all().delete()
    done = import_lines(read_lines([text], questions), questions, **importing(world.alice))
    assert done == Imported(cases=0, judgments=2, skipped=0)


def test_what_is_outside_the_scope_neither_goes_out_nor_comes_in(questions, world):
    whole = "".join(qrels.csv_of(questions, **scoped(world.alice)))
    assert "Costs" in whole
    limited = "".join(qrels.csv_of(questions, **scoped(world.bob)))
    assert "Costs" not in limited
    assert str(passage("ledger", "tangerine").document_id) not in limited + "".join(
        qrels.qrels_of(questions, **scoped(world.bob))
    )
    done = import_lines(read_lines([whole], questions), questions, **importing(world.bob))
    assert (done.judgments, done.skipped) == (1, 1)
    assert list(Judgment.objects.filter(by=world.bob).values_list("grade", flat=True)) == [3]


def test_the_audit_log_names_cases_and_no_text(questions):
    events = list(AuditEvent.objects.filter(action__in=("question_set.created", "case.saved")))
    assert len(events) == 4
    assert {event.subject for event in events} == {"release-questions"}
    assert not [event for event in events if "roll" in str(event.details)]
