"""GET /api/v1/connections/{slug}/quality: what the quality filter would drop."""

import pytest

from corecube.models import ApiKey, Compartment, Grant
from retrieval.models import Chunk


def address(slug, query=""):
    return f"/api/v1/connections/{slug}/quality{query}"


@pytest.fixture(autouse=True)
def low(world):
    Chunk.objects.filter(connection_id=world.ledger.pk).update(quality=0.1, quality_parts={"legal": 0.9})


def test_an_admin_is_told_what_would_be_dropped(world, get):
    answer = get(address("ledger"), world.key("alice")).json()
    (chunk,) = answer.pop("lowest")
    assert answer == {"connection": "ledger", "minimum": 0.3, "dropped": 1, "chunks": 1}
    stored = Chunk.objects.get(connection_id=world.ledger.pk)
    assert chunk["url"] == f"http://testserver/documents/{stored.document_id}/#chunk-0"
    assert (chunk["quality"], chunk["parts"]) == (0.1, {"legal": 0.9})
    assert chunk["beginning"].startswith("The rollback in March cost")


def test_a_threshold_and_a_limit_can_be_given(world, get):
    secret = world.key("alice")
    assert get(address("ledger", "?minimum=0.1"), secret).json()["dropped"] == 0
    assert get(address("ledger", "?minimum=1&limit=0"), secret).json()["lowest"] == []


def test_the_former_name_of_the_threshold_is_read(world, get):
    secret = world.key("alice")
    assert get(address("ledger", "?least=0.1"), secret).json()["minimum"] == 0.1
    assert get(address("ledger", "?least=0.1&minimum=0.2"), secret).json()["minimum"] == 0.2
    assert get(address("ledger", "?least=2"), secret).status_code == 422


@pytest.mark.parametrize(
    "query", ["?minimum=2", "?minimum=-1", "?minimum=nan", "?minimum=x", "?limit=201", "?limit=-1"]
)
def test_what_is_out_of_bounds_is_refused(world, get, query):
    response = get(address("ledger", query), world.key("alice"))
    assert (response.status_code, response.json()["error"]["param"]) == (422, query[1:].split("=")[0])


@pytest.mark.parametrize("slug", ["ledger", "runbooks", "nowhere"])
def test_it_is_for_admins_whatever_the_slug(world, get, slug):
    response = get(address(slug), world.key("bob"))
    assert (response.status_code, response.json()["error"]["message"]) == (403, "Only an admin may do this.")
    assert get(address(slug)).status_code == 401


def test_an_unknown_connection_is_not_found(world, get):
    assert get(address("nowhere"), world.key("alice")).status_code == 404


def test_an_admin_without_a_grant_is_told_the_counts_and_no_text(world, get):
    Grant.objects.filter(user=world.alice, compartment__slug="finance").delete()
    response = get(address("ledger"), world.key("alice"))
    assert response.json() == {"connection": "ledger", "minimum": 0.3, "dropped": 1, "chunks": 1, "lowest": None}
    assert "48,200" not in response.content.decode()


def test_a_narrowed_key_is_told_no_more_than_it_may_search(world, get):
    key, secret = ApiKey.issue(user=world.alice, name="narrow")
    key.compartments.add(Compartment.objects.get(slug="engineering"))
    assert get(address("ledger"), secret).json() == get(address("nowhere"), secret).json()
