"""The first steps, read from the data."""

from uuid import uuid4

import pytest
from django.utils import timezone

from corecube.models import Compartment, Connection, Grant
from corecube.scope import Sensitivity
from explorer.pages.health.views import dismiss, guide, is_dismissed
from retrieval.models import Document, EvaluationRun, QuestionSet, SearchRecord

pytestmark = pytest.mark.django_db


def done(viewer):
    return [step["key"] for step in guide(viewer)["steps"] if step["is_done"]]


def test_nothing_is_done_in_an_empty_installation(people):
    steps = guide(people["alice"])
    assert done(people["alice"]) == []
    assert (steps["next_step"]["key"], steps["done"], steps["is_done"]) == ("source", 0, False)


def test_each_step_is_done_once_the_data_say_so(people):
    alice = people["alice"]
    compartment = Compartment.objects.create(slug="c", name="C")
    connection = Connection.objects.create(slug="s", name="S", kind="upload", compartment=compartment, sensitivity=0)
    # A source without a document answers nothing; what she may see herself gives nobody else access.
    Grant.objects.create(user=alice, compartment=compartment, clearance=Sensitivity.RESTRICTED)
    assert done(alice) == []
    Grant.objects.create(user=people["bob"], compartment=compartment, clearance=Sensitivity.INTERNAL)
    assert done(alice) == ["people"]
    Document.objects.create(
        id=uuid4(), connection=connection, external_id="a", title="A", byte_size=1, synced_at=timezone.now()
    )
    assert done(alice) == ["source", "people"]
    assert guide(alice)["next_step"]["key"] == "question"


def test_a_search_that_answered_is_a_useful_one(world):
    record = {"preset": "corecube", "milliseconds": 9}
    SearchRecord.objects.create(**record, hit_count=3, verdict="not_answerable")
    assert "question" not in done(world.alice)
    SearchRecord.objects.create(**record, hit_count=3, verdict="answerable")
    assert done(world.alice) == ["source", "people", "question"]


def test_a_run_is_the_first_measure(world):
    questions = QuestionSet.objects.create(slug="q", name="Q")
    assert guide(world.alice)["steps"][-1]["address"] == "/judgments/q/"
    EvaluationRun.objects.create(question_set=questions, preset="corecube", user=world.alice)
    assert done(world.alice) == ["source", "people", "measure"]
    QuestionSet.objects.create(slug="r", name="R")
    assert guide(world.alice)["steps"][-1]["address"] == "/judgments/"


def test_it_is_put_away_for_one_admin_alone(people):
    dismiss(people["alice"])
    dismiss(people["alice"])
    assert is_dismissed(people["alice"])
    assert not is_dismissed(people["bob"])


def test_a_fixed_number_of_statements(world, django_assert_num_queries):
    with django_assert_num_queries(5):
        guide(world.alice)
