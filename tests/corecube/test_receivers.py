import pytest

from corecube.access import Principal, scope_for
from corecube.models import ApiKey, AuditEvent, Compartment, Connection, Grant
from corecube.scope import Sensitivity


@pytest.fixture
def narrow(people):
    """Return a compartment, and Bob's key that is narrowed to it while Bob himself sees another one too."""
    project, wiki = (Compartment.objects.create(slug=slug, name=slug) for slug in ("project", "wiki"))
    Connection.objects.create(slug="pages", name="Pages", kind="upload", compartment=wiki)
    for compartment in (project, wiki):
        Grant.objects.create(user=people["bob"], compartment=compartment, clearance=Sensitivity.RESTRICTED)
    key, secret = ApiKey.issue(user=people["bob"], name="robot")
    key.compartments.add(project)
    return project, key, secret


def visible(secret):
    """Return how many connections a key's secret opens; None when it opens nothing at all any more."""
    key = ApiKey.objects.for_secret(secret)
    return None if key is None else len(scope_for(Principal(key.user, key)).included)


def in_the_administration(client, alice, compartment):
    client.force_login(alice)
    client.post(f"/admin/corecube/compartment/{compartment.pk}/delete/", {"post": "yes"})


def as_an_action_of_the_administration(client, alice, compartment):
    client.force_login(alice)
    chosen = {"action": "delete_selected", "_selected_action": [compartment.pk], "post": "yes"}
    client.post("/admin/corecube/compartment/", chosen)


def as_a_set(client, alice, compartment):
    Compartment.objects.filter(pk=compartment.pk).delete()


def by_itself(client, alice, compartment):
    compartment.delete()


@pytest.mark.parametrize("delete", [in_the_administration, as_an_action_of_the_administration, as_a_set, by_itself])
def test_a_key_narrowed_to_a_deleted_compartment_is_revoked(client, people, narrow, delete):
    compartment, key, secret = narrow
    assert visible(secret) == 0
    delete(client, people["alice"], compartment)
    assert not Compartment.objects.filter(slug="project").exists()
    assert visible(secret) is None
    event = AuditEvent.objects.get(action="key.revoked")
    assert event.subject == str(key)
    assert event.details == {"user": "bob", "deleted_compartment": "project"}


def test_other_keys_and_earlier_revocations_stay_as_they_are(people, narrow):
    compartment, key, _ = narrow
    key.revoked_at = key.created_at
    key.save()
    _, other = ApiKey.issue(user=people["bob"], name="whole")
    compartment.delete()
    key.refresh_from_db()
    assert key.revoked_at == key.created_at
    assert visible(other) == 1
    assert not AuditEvent.objects.filter(action="key.revoked").exists()
