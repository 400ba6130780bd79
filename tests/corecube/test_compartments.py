"""Making, changing and deleting compartments."""

import pytest

from corecube.compartments import change_compartment, consequences, create_compartment, delete_compartment
from corecube.errors import ConflictError, InvalidRequestError
from corecube.models import ApiKey, AuditEvent, Compartment, Grant


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


def test_a_new_one_has_a_slug_from_its_name(people):
    made = create_compartment(name="Human Resources", description="", actor=people["alice"])
    assert made.slug == "human-resources"
    assert AuditEvent.objects.get(action="compartment.created").subject == "human-resources"


@pytest.mark.parametrize("name", ["Finance", "finance", "FINANCE!", "!!!"])
def test_a_name_that_gives_no_new_slug_is_refused(people, name):
    Compartment.objects.create(slug="finance", name="Finance")
    with pytest.raises(InvalidRequestError):
        create_compartment(name=name, description="", actor=people["alice"])


def test_renaming_keeps_the_slug(people):
    compartment = Compartment.objects.create(slug="finance", name="Finance")
    change_compartment(compartment, name="Money", description="All of it", actor=people["alice"])
    compartment.refresh_from_db()
    assert (compartment.slug, compartment.name, compartment.description) == ("finance", "Money", "All of it")
    assert AuditEvent.objects.get(action="compartment.changed").details == {"before": "Finance", "after": "Money"}


def test_one_with_connections_stays(world):
    compartment = Compartment.objects.get(slug="engineering")
    assert consequences(compartment).connections == ("Runbooks", "Vault")
    with pytest.raises(ConflictError, match="Runbooks, Vault"):
        delete_compartment(compartment, actor=world.alice)
    assert Compartment.objects.filter(slug="engineering").exists()


def test_deleting_takes_the_grants_and_the_narrowed_keys(people):
    compartment = Compartment.objects.create(slug="old", name="Old")
    Grant.objects.create(user=people["bob"], compartment=compartment, clearance=1)
    key, secret = ApiKey.issue(user=people["bob"], name="robot")
    key.compartments.add(compartment)
    gone = delete_compartment(compartment, actor=people["alice"])
    assert (gone.grants, gone.keys) == (1, 1)
    assert ApiKey.objects.for_secret(secret) is None
    assert not Grant.objects.exists()
    revoked = AuditEvent.objects.get(action="key.revoked")
    assert (revoked.actor, revoked.details["deleted_compartment"]) == (people["alice"], "old")
    assert AuditEvent.objects.get(action="compartment.deleted").details == {"grants": 1, "keys_revoked": 1}
