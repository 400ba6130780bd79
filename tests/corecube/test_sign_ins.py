"""Sign-ins in the audit log."""

import pytest

from corecube.models import AuditEvent

PASSWORD = "b"
LOGIN = "/login/"


@pytest.fixture
def logged(people):
    return lambda: list(AuditEvent.objects.order_by("pk").values_list("action", "actor__username", "subject"))


def test_a_sign_in_and_a_sign_out_are_logged(client, logged):
    client.post(LOGIN, {"username": "bob", "password": PASSWORD})
    client.post("/logout/")
    assert logged() == [("session.signed_in", "bob", "bob"), ("session.signed_out", "bob", "bob")]
    assert AuditEvent.objects.first().details == {"address": "127.0.0.1"}


def test_a_refusal_names_who_there_is_and_never_the_password(client, logged):
    client.post(LOGIN, {"username": "bob", "password": "hunter2"})
    assert logged() == [("session.refused", None, "bob")]
    assert "hunter2" not in str(AuditEvent.objects.values())


def test_a_name_that_nobody_has_is_not_kept(client, logged):
    client.post(LOGIN, {"username": "my secret password", "password": "bob"})
    assert logged() == [("session.refused", None, "")]
    assert "secret" not in str(AuditEvent.objects.values())


def test_who_is_not_active_is_refused_by_name(client, people, logged):
    people["bob"].is_active = False
    people["bob"].save()
    client.post(LOGIN, {"username": "bob", "password": PASSWORD})
    assert logged() == [("session.refused", None, "bob")]


def test_a_program_that_signs_somebody_in_is_no_sign_in(client, people, logged):
    client.force_login(people["bob"])
    assert logged() == []
