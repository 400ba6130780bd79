"""What many people see at once is what the access rule says of each."""

import pytest
from django.contrib.auth.models import Group
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corecube.access import Principal, scope_for
from corecube.models import Compartment, Connection, Grant, User
from corecube.reach import ReachChange, reach_change, reach_of
from tests.profiles import examples

LEVEL = st.integers(0, 3)
MAYBE = st.one_of(st.none(), LEVEL)


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


@pytest.fixture
def small(people):
    """Two groups, two compartments with two connections each, and the cast without grants."""
    groups = [Group.objects.create(name=name) for name in ("g", "h")]
    compartments = [Compartment.objects.create(slug=slug, name=slug) for slug in ("c", "d")]
    connections = [
        Connection.objects.create(slug=f"{it.slug}{number}", name="n", kind="upload", compartment=it)
        for it in compartments
        for number in (1, 2)
    ]
    return groups, compartments, connections


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_it_agrees_with_the_access_rule(small, people, data):
    groups, compartments, connections = small
    Grant.objects.all().delete()
    for connection in connections:
        connection.sensitivity, connection.enabled = data.draw(LEVEL), data.draw(st.booleans())
        connection.save()
    for compartment in compartments:
        for group in groups:
            if (level := data.draw(MAYBE)) is not None:
                Grant.objects.create(group=group, compartment=compartment, clearance=level)
        if (level := data.draw(MAYBE)) is not None:
            Grant.objects.create(user=people["bob"], compartment=compartment, clearance=level)
    for user in people.values():
        user.groups.set(data.draw(st.sets(st.sampled_from(groups))))
    User.objects.filter(pk=people["charlie"].pk).update(is_active=data.draw(st.booleans()))
    reach = reach_of(User.objects.all())
    for user in User.objects.all():
        own = frozenset(scope_for(Principal(user)).connection_ids)
        assert reach.get(user.username, frozenset()) == own


def test_its_queries_do_not_grow_with_the_people(world, django_assert_num_queries):
    with django_assert_num_queries(4):
        reach_of(User.objects.all())


def test_a_change_counts_per_person():
    before = {"ann": frozenset({1, 2}), "ben": frozenset()}
    after = {"ann": frozenset({2}), "ben": frozenset({2, 3}), "cho": frozenset()}
    assert reach_change(before, after) == ReachChange(gained={"ben": 2}, lost={"ann": 1})
