"""GET /api/v1/indexes."""

import pytest

from corecube.models import ApiKey
from retrieval.index import embedding_index
from retrieval.models import Chunk
from retrieval.testing import HashEncoder


class Other(HashEncoder):
    name = "other"


def test_an_admin_sees_every_index_and_how_far_it_is(world, get):
    embedding_index.start_index(Other(dim=32), source="local:other", mode="chunk_first")
    active, building = get("/api/v1/indexes", world.key("alice")).json()
    chunks = Chunk.objects.count()
    assert (active["status"], active["model"], active["done"], active["seconds_left"]) == (
        "active",
        "hash",
        chunks,
        0.0,
    )
    assert (building["status"], building["dimensions"], building["source"]) == ("building", 32, "local:other")
    assert (building["done"], building["chunks"], building["seconds_left"]) == (0, chunks, None)


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_others_see_nothing(world, get, name):
    answer = get("/api/v1/indexes", world.key(name))
    assert answer.status_code == 403
    assert "hash" not in answer.content.decode()


def test_a_narrowed_key_of_an_admin_sees_nothing(world, get):
    key, secret = ApiKey.issue(user=world.alice, name="narrow")
    key.compartments.add(world.runbooks.compartment)
    assert get("/api/v1/indexes", secret).status_code == 403


def test_nobody_sees_nothing(world, get):
    assert get("/api/v1/indexes").status_code == 401
