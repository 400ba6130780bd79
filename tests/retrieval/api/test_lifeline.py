"""GET /api/v1/lifeline."""

import uuid

import pytest

from corecube.models import ApiKey, Compartment
from corecube.scope import Sensitivity
from retrieval.models import Document, SearchRecord

PATH = "/api/v1/lifeline"


@pytest.fixture
def ask(client):
    def send(secret, **query):
        return client.get(PATH, query, headers={"Authorization": f"Bearer {secret}"} if secret else {})

    return send


def titled(title):
    return str(Document.objects.get(title=title).pk)


def test_a_document_is_followed_to_its_passage(world, ask):
    body = ask(world.key("bob"), q="how do we roll back staging?", document=titled("Rolling back")).json()
    assert (body["title"], body["connection"], body["lost_at"], body["citation"]) == (
        "Rolling back",
        "Runbooks",
        None,
        1,
    )
    assert [step["step"] for step in body["steps"]][:4] == ["indexed", "allowed", "scope", "dense"]
    assert {step["state"] for step in body["steps"]} == {"passed"}
    assert body["chunks"] == [{"ended_at": "packed", "packed": True, "chunks": 1}]
    assert SearchRecord.objects.get(pk=body["trace_id"]).query == "how do we roll back staging?"


def test_the_first_drop_comes_with_what_would_have_helped(world, ask):
    body = ask(world.key("alice"), q="zanzibar", document=titled("Rolling back"), top_k=1).json()
    lost = next(step for step in body["steps"] if step["state"] == "dropped")
    assert (body["lost_at"], lost["step"]) == ("packed", "packed")
    assert lost["remedy"].startswith("Requesting ")


def test_one_leg_alone_is_followed_too(world, ask):
    body = ask(world.key("bob"), q="passphrase", document=titled("Rolling back"), mode="fulltext").json()
    assert "dense" not in [step["step"] for step in body["steps"]]
    assert (body["lost_at"], body["chunk_id"]) == ("fulltext", body["chunk_id"])


def test_a_connection_that_the_request_leaves_out(world, ask):
    body = ask(world.key("alice"), q="rollback", document=titled("Rolling back"), exclude="runbooks").json()
    assert body["lost_at"] == "scope"


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_a_document_out_of_scope_is_like_one_that_is_not_there(world, ask, name):
    secret = world.key(name)
    hidden = ask(secret, q="rollback", document=titled("Breach of March"))
    unknown = ask(secret, q="rollback", document=str(uuid.uuid4()))
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.content == unknown.content


def test_a_narrowed_key_of_an_admin_reaches_no_further_than_itself(world, ask):
    key, secret = ApiKey.issue(user=world.alice, name="narrow")
    ApiKey.objects.filter(pk=key.pk).update(max_sensitivity=Sensitivity.INTERNAL)
    key.compartments.add(Compartment.objects.get(slug="engineering"))
    assert ask(secret, q="rollback", document=titled("Rolling back")).status_code == 200
    for title in ("Breach of March", "Costs"):
        assert ask(secret, q="rollback", document=titled(title)).status_code == 404


def test_what_cannot_be_read_is_refused(world, ask):
    secret = world.key("bob")
    assert ask("", q="rollback", document=titled("Rolling back")).status_code == 401
    assert ask(secret, q="rollback", document="no id").status_code == 422
    assert ask(secret, q="", document=titled("Rolling back")).status_code == 422
    assert ask(secret, q="rollback", document=titled("Rolling back"), preset="none").status_code == 404
    assert ask(secret, q="rollback", document=titled("Rolling back"), exclude="vault").status_code == 404
    assert ask(secret, q="rollback", document=titled("Rolling back"), draft="true").status_code == 403
