"""Who may see a connection, and what a change does to that."""

import pytest
from django.contrib.auth.models import Group

from corecube.access import Principal, scope_for
from corecube.models import Compartment, Connection, Grant, User
from corecube.reach import ConnectionAccess, access_change, access_to
from corecube.scope import Sensitivity


@pytest.fixture
def compartment(people):
    """Alice by a grant of her own up to restricted, Bob by a group up to internal, a former colleague by that too."""
    made = Compartment.objects.create(slug="c", name="C")
    staff = Group.objects.create(name="staff")
    gone = User.objects.create_user("gone", is_active=False)
    staff.user_set.add(people["bob"], gone)
    Grant.objects.create(group=staff, compartment=made, clearance=Sensitivity.INTERNAL)
    Grant.objects.create(user=people["alice"], compartment=made, clearance=Sensitivity.RESTRICTED)
    return made


@pytest.mark.parametrize(
    ("sensitivity", "expected"),
    [
        (Sensitivity.PUBLIC, ConnectionAccess(("staff",), ("alice", "bob"))),
        (Sensitivity.INTERNAL, ConnectionAccess(("staff",), ("alice", "bob"))),
        (Sensitivity.CONFIDENTIAL, ConnectionAccess((), ("alice",))),
    ],
)
def test_grants_reach_up_to_their_clearance(compartment, sensitivity, expected):
    assert access_to(compartment.pk, sensitivity) == expected


@pytest.mark.parametrize("sensitivity", Sensitivity)
def test_it_is_the_rule_that_searches_follow(compartment, people, sensitivity):
    it = Connection.objects.create(slug="x", name="X", kind="push", compartment=compartment, sensitivity=sensitivity)
    seeing = {name for name, user in people.items() if scope_for(Principal(user)).allows(it.pk)}
    assert set(access_to(compartment.pk, sensitivity).users) == seeing


def test_a_change_names_who_gains_and_who_loses(compartment):
    low, high = (access_to(compartment.pk, level) for level in (Sensitivity.PUBLIC, Sensitivity.RESTRICTED))
    assert access_change(low, high).losing == ConnectionAccess(("staff",), ("bob",))
    assert access_change(high, low).gaining == ConnectionAccess(("staff",), ("bob",))
    assert not access_change(low, low)
    assert access_change(low, high)
