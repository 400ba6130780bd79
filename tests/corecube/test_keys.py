"""Issuing and revoking API keys."""

from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.errors import NotPermittedError
from corecube.keys import KeyState, KeyTerms, issue_key, key_state, revoke_key, visible_compartments
from corecube.models import ApiKey, AuditEvent, Compartment, Connection
from corecube.models.access import key_digest
from corecube.scope import Sensitivity


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


def compartment(slug):
    return Compartment.objects.get(slug=slug)


def seen(secret):
    key = ApiKey.objects.for_secret(secret)
    return [it.connection.slug for it in scope_for(Principal(key.user, key)).included]


def test_a_key_sees_no_more_than_it_is_narrowed_to(world):
    whole = KeyTerms(name="whole")
    finance = KeyTerms(name="finance", compartments=(compartment("finance"),))
    internal = KeyTerms(name="internal", max_sensitivity=Sensitivity.INTERNAL.value)
    secrets = [issue_key(user=world.alice, terms=terms, actor=world.alice)[1] for terms in (whole, finance, internal)]
    assert [seen(secret) for secret in secrets] == [["ledger", "runbooks", "vault"], ["ledger"], ["ledger", "runbooks"]]


def test_a_key_is_read_as_django_reads_it(world):
    both = compartment("finance"), compartment("engineering")
    terms = KeyTerms(name="x", presets=("helix",), compartments=both, expires_at=timezone.now() + timedelta(days=1))
    issued, secret = issue_key(user=world.alice, terms=terms, actor=world.alice)
    read, known = ApiKey.objects.for_secret(secret), ApiKey.objects.get(pk=issued.pk)
    for one, other in ((read, known), (read.user, known.user)):
        names = [field.attname for field in type(one)._meta.concrete_fields]
        assert [getattr(one, name) for name in names] == [getattr(other, name) for name in names]
        assert not one._state.adding
    assert read.compartments.all() == list(known.compartments.all())
    ApiKey.objects.update(expires_at=timezone.now())
    assert ApiKey.objects.for_secret(secret) is None


def test_only_its_digest_is_kept_and_the_log_has_no_secret(world):
    key, secret = issue_key(user=world.bob, terms=KeyTerms(name="robot", presets=("helix",)), actor=world.alice)
    assert key.digest == key_digest(secret)
    assert not Principal(world.bob, key).may_use("corecube")
    event = AuditEvent.objects.get(action="key.issued")
    assert secret not in str(event.details) + event.subject
    assert (event.actor, event.details) == (world.alice, {"user": "bob"})


def test_a_user_issues_keys_for_themselves_alone(world):
    issue_key(user=world.bob, terms=KeyTerms(name="mine", compartments=(compartment("engineering"),)), actor=world.bob)
    with pytest.raises(NotPermittedError):
        issue_key(user=world.alice, terms=KeyTerms(name="hers"), actor=world.bob)


def test_a_user_can_name_neither_unseen_compartments_nor_connections_to_push_to(world):
    inbox = Connection.objects.create(slug="inbox", name="Inbox", kind="push", compartment=compartment("engineering"))
    for terms in (
        KeyTerms(name="x", compartments=(compartment("finance"),)),
        KeyTerms(name="x", push_connections=(inbox,)),
    ):
        with pytest.raises(NotPermittedError):
            issue_key(user=world.bob, terms=terms, actor=world.bob)
    assert not ApiKey.objects.exists()


def test_the_compartments_that_a_user_may_know_of(world):
    assert [it.slug for it in visible_compartments(world.bob)] == ["engineering"]
    assert visible_compartments(world.charlie) == []
    assert [it.slug for it in visible_compartments(world.alice)] == ["engineering", "finance"]


def test_revoking_stops_it_once_and_for_all(world):
    key, secret = issue_key(user=world.bob, terms=KeyTerms(name="robot"), actor=world.bob)
    with pytest.raises(NotPermittedError):
        revoke_key(key, actor=world.charlie)
    revoke_key(key, actor=world.bob)
    revoke_key(key, actor=world.alice)
    assert ApiKey.objects.for_secret(secret) is None
    assert AuditEvent.objects.get(action="key.revoked").actor == world.bob


def test_states(world):
    now = timezone.now()
    key, _ = issue_key(user=world.bob, terms=KeyTerms(name="robot", expires_at=now), actor=world.alice)
    assert key_state(key, now - timedelta(seconds=1)) is KeyState.ACTIVE
    assert key_state(key, now) is KeyState.EXPIRED
    key.user.is_active = False
    assert key_state(key, now - timedelta(seconds=1)) is KeyState.OWNER_INACTIVE
    key.revoked_at = now
    assert key_state(key, now) is KeyState.REVOKED
