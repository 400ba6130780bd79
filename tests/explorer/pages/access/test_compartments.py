"""Compartments and levels."""

import pytest

from corecube.models import ApiKey, Compartment
from retrieval.ingest.sync import sync_connection

PAGE = "/access/compartments/"


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


@pytest.fixture
def admin(browse):
    return browse("alice")


def test_the_list_names_connections_documents_and_who_sees_them(admin, world):
    sync_connection(world.runbooks)
    page = admin.get(PAGE).content.decode()
    for part in ("Runbooks", "Vault", "engineers", "Ledger", "For members of the organisation only."):
        assert part in page
    rows = {row["compartment"].slug: row for row in admin.get(PAGE).context["rows"]}
    assert rows["engineering"]["documents"] == 2
    assert [(holder.name, level) for holder, level in rows["engineering"]["holders"]] == [
        ("engineers", "internal"),
        ("alice", "restricted"),
    ]


def test_the_levels_are_counted(admin):
    assert {name: connections for name, _, connections in admin.get(PAGE).context["levels"]} == {
        "public": 0,
        "internal": 2,
        "confidential": 0,
        "restricted": 1,
    }


def test_a_compartment_says_how_many_see_each_connection(admin):
    shown = admin.get(f"{PAGE}engineering/").context["row"]
    assert {line["connection"].slug: line["people"] for line in shown["connections"]} == {"runbooks": 2, "vault": 1}


def test_one_is_added_renamed_and_deleted(admin):
    made = admin.post(f"{PAGE}new/", {"name": "Sales", "description": "Offers"})
    assert made.headers["Location"] == f"{PAGE}sales/"
    admin.post(f"{PAGE}sales/", {"name": "Field sales", "description": ""})
    assert Compartment.objects.get(slug="sales").name == "Field sales"
    admin.post(f"{PAGE}sales/delete/")
    assert not Compartment.objects.filter(slug="sales").exists()


@pytest.mark.parametrize("name", ["", "Finance", "!!!", "x" * 121])
def test_a_wrong_name_stays_in_the_form(admin, name):
    answer = admin.post(f"{PAGE}new/", {"name": name, "description": "Kept"})
    assert answer.status_code == 422
    assert "Kept" in answer.content.decode()


def test_one_with_connections_cannot_be_deleted_and_says_which(admin):
    assert "Runbooks, Vault" in admin.get(f"{PAGE}engineering/delete/").content.decode()
    admin.post(f"{PAGE}engineering/delete/")
    assert Compartment.objects.filter(slug="engineering").exists()


def test_it_says_how_many_keys_stop(admin, world):
    made = Compartment.objects.create(slug="old", name="Old")
    key, _ = ApiKey.issue(user=world.bob, name="robot")
    key.compartments.add(made)
    assert "1 API key limited to it is revoked" in admin.get(f"{PAGE}old/delete/").content.decode()
    done = admin.post(f"{PAGE}old/delete/", follow=True).content.decode()
    assert "Revoked API keys limited to it: 1." in done
    key.refresh_from_db()
    assert key.revoked_at
