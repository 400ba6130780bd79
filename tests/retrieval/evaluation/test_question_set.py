import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from corecube.access import scope_for
from retrieval.engine.types import Verdict
from retrieval.evaluation.question_sets import CaseFacts, measure_cases, save_case, set_named
from retrieval.models import Chunk, SearchRecord
from retrieval.records.judgments import PassageId, judge

pytestmark = pytest.mark.usefixtures("unhurried")

QUESTION = "Run deployctl rollback before touching the staging database"


@pytest.fixture
def questions(world):
    made = set_named("Release questions", actor=world.alice)
    save_case(made, QUESTION, actor=world.alice)
    save_case(made, "who won the football cup in brazil", actor=world.alice, facts=CaseFacts(is_answerable=False))
    chunk = Chunk.objects.get(text__contains="deployctl")
    where = PassageId(chunk.document_id, chunk.content_hash)
    judge(QUESTION, where, grade=3, by=world.alice, scope=scope_for(world.principal("alice")))
    return made


def test_each_case_is_asked_and_measured(questions, world):
    result = measure_cases(list(questions.cases.all()), preset="corecube", principal=world.principal("alice"))
    answerable, unanswerable = result.cases
    assert answerable.measures.ndcg == answerable.measures.reciprocal_rank == answerable.measures.recall == 1.0
    assert 0 < answerable.measures.judged < 1
    assert (result.measured, result.means) == (1, answerable.measures)
    assert (unanswerable.measures, unanswerable.verdict) == (None, Verdict.NOT_ANSWERABLE)
    assert result.refusals == (1, 1)
    assert result.wrongly_refused[1] == 1
    assert not SearchRecord.objects.exists()


def test_judgments_outside_the_askers_scope_do_not_count(questions, world):
    result = measure_cases(list(questions.cases.all()), preset="corecube", principal=world.principal("charlie"))
    assert (result.measured, result.means.ndcg) == (0, None)


def test_the_command_measures_a_set(questions, world):
    out = StringIO()
    call_command("evaluate", "--set", "release-questions", stdout=out)
    assert "corecube, 2 cases, 1 with judgments" in out.getvalue()
    assert "ndcg                 1.0000" in out.getvalue()
    out = StringIO()
    call_command("evaluate", "--set", "release-questions", "--as", "bob", "--json", stdout=out)
    printed = json.loads(out.getvalue())
    assert (printed["measures"]["ndcg"], printed["rightly_refused"]) == (1.0, [1, 1])


@pytest.mark.parametrize("arguments", [("--set", "no-such"), ("--set", "release-questions", "--as", "nobody"), ()])
def test_what_cannot_be_measured_is_said(questions, arguments):
    with pytest.raises(CommandError):
        call_command("evaluate", *arguments, stdout=StringIO())
