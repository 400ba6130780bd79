"""The first steps, read from the data."""

import pytest

from corecube.models import ApiKey, Compartment, Connection, Grant
from corecube.scope import Sensitivity
from explorer.pages.health.views import dismiss, guide, is_dismissed
from retrieval.models import SearchRecord

pytestmark = pytest.mark.django_db


def done(viewer):
    return [step["key"] for step in guide(viewer)["steps"] if step["is_done"]]


def test_nothing_is_done_in_an_empty_installation(people):
    steps = guide(people["alice"])
    assert done(people["alice"]) == []
    assert (steps["next_step"]["key"], steps["done"], steps["is_done"]) == ("connect", 0, False)


def test_each_step_is_done_once_the_data_say_so(people):
    alice = people["alice"]
    compartment = Compartment.objects.create(slug="c", name="C")
    Connection.objects.create(slug="s", name="S", kind="upload", compartment=compartment, sensitivity=0)
    assert done(alice) == ["connect"]
    # What she may see herself gives nobody else access.
    Grant.objects.create(user=alice, compartment=compartment, clearance=Sensitivity.RESTRICTED)
    assert done(alice) == ["connect"]
    Grant.objects.create(user=people["bob"], compartment=compartment, clearance=Sensitivity.INTERNAL)
    ApiKey.issue(user=alice, name="chat")
    assert done(alice) == ["connect", "access", "key"]
    assert guide(alice)["next_step"]["key"] == "sync"


def test_a_search_that_answered_is_a_useful_one(world):
    record = {"preset": "corecube", "milliseconds": 9}
    SearchRecord.objects.create(**record, hit_count=3, verdict="not_answerable")
    assert "query" not in done(world.alice)
    SearchRecord.objects.create(**record, hit_count=3, verdict="answerable")
    assert done(world.alice) == ["connect", "sync", "access", "query"]


def test_it_is_put_away_for_one_admin_alone(people):
    dismiss(people["alice"])
    dismiss(people["alice"])
    assert is_dismissed(people["alice"])
    assert not is_dismissed(people["bob"])


def test_a_fixed_number_of_statements(world, django_assert_num_queries):
    with django_assert_num_queries(5):
        guide(world.alice)
