"""The Idempotency-Key of a push."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx2
import pytest
from django.utils import timezone

from corecube.models import ApiKey, Connection, PushedItem
from retrieval.models import IdempotentRequest

PATH = "/api/v1/documents"
TEXT = "The pump in hall seven runs at forty bar."


@pytest.fixture
def inbox(governed):
    return Connection.objects.create(
        slug="inbox", name="Inbox", kind="push", compartment=governed.runbooks.compartment, sensitivity=1
    )


@pytest.fixture
def secret(governed, inbox):
    key, secret = ApiKey.issue(user=governed.charlie, name="pumps")
    key.push_connections.add(inbox)
    return secret


@pytest.fixture
def put(client):
    def send(secret, once="", **body):
        headers = {"Authorization": f"Bearer {secret}"} | ({"Idempotency-Key": once} if once else {})
        sent = {"connection": "inbox", "external_id": "pumps/7", "text": TEXT} | body
        return client.put(PATH, json.dumps(sent), content_type="application/json", headers=headers)

    return send


def test_the_same_request_again_is_answered_as_before(put, secret):
    first, again = put(secret, "a"), put(secret, "a")
    assert first.json()["state"] == "indexed"
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert (first.headers.get("Idempotent-Replayed"), again.headers.get("Idempotent-Replayed")) == (None, "true")
    assert put(secret).json()["state"] == "unchanged"
    assert PushedItem.objects.count() == 1


def test_another_body_is_refused_and_does_nothing(put, secret):
    put(secret, "a")
    refused = put(secret, "a", external_id="pumps/8")
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "idempotency_key_reused")
    assert refused.json()["error"]["param"] == "Idempotency-Key"
    assert PushedItem.objects.count() == 1


def test_a_request_that_is_at_work_is_not_done_twice(put, secret):
    put(secret, "a")
    IdempotentRequest.objects.update(status=None)
    busy = put(secret, "a")
    assert (busy.status_code, busy.json()["error"]["code"]) == (409, "idempotency_key_in_use")
    assert "x-should-retry" not in busy.headers
    IdempotentRequest.objects.update(at=timezone.now() - timedelta(minutes=6))
    assert put(secret, "a").status_code == 200


def test_a_request_that_failed_can_be_sent_again(put, secret, inbox):
    Connection.objects.filter(pk=inbox.pk).update(enabled=False)
    assert put(secret, "a").status_code >= 400
    assert not IdempotentRequest.objects.exists()
    Connection.objects.filter(pk=inbox.pk).update(enabled=True)
    assert put(secret, "a").json()["state"] == "indexed"


def test_a_day_later_the_key_is_free(put, secret):
    put(secret, "a")
    IdempotentRequest.objects.update(at=timezone.now() - timedelta(hours=25))
    assert put(secret, "a", external_id="pumps/8").status_code == 200
    assert IdempotentRequest.objects.count() == 1


def test_keys_of_different_programs_are_not_the_same(put, secret, governed, inbox):
    put(secret, "a")
    other = governed.key("alice")
    answer = put(other, "a", external_id="pumps/8")
    assert (answer.status_code, answer.headers.get("Idempotent-Replayed")) == (200, None)


def test_who_may_not_push_any_more_is_not_answered_from_memory(put, secret):
    put(secret, "a")
    ApiKey.objects.get().push_connections.clear()
    assert put(secret, "a").status_code == 403


def test_an_endless_key_is_refused(put, secret):
    assert put(secret, "x" * 256).status_code == 422
    assert put(secret, "x" * 255).status_code == 200


def test_of_many_at_once_one_is_done(server, secret, inbox):
    headers = {"Authorization": f"Bearer {secret}", "Idempotency-Key": "a"}

    def send(_):
        body = {"connection": "inbox", "external_id": "pumps/7", "text": TEXT}
        return httpx2.put(f"{server}{PATH}", json=body, headers=headers, timeout=30)

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(send, range(6)))
    done = [it for it in answers if it.status_code == 200]
    fresh = [it for it in done if "Idempotent-Replayed" not in it.headers]
    assert {it.status_code for it in answers} <= {200, 409}
    assert [it.json()["state"] for it in fresh] == ["indexed"]
    assert len({it.text for it in done}) == 1
