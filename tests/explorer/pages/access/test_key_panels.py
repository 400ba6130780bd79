"""API keys in lists."""

from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.keys import KeyTerms, issue_key
from corecube.models import Compartment, Connection
from explorer.pages.access.keys import Visible, key_row

NOW = timezone.now()


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


@pytest.fixture
def key(world):
    """A key of Bob's that an admin narrowed to a compartment which Bob does not see, and lets push into it."""
    engineering, finance = (Compartment.objects.get(slug=slug) for slug in ("engineering", "finance"))
    till = Connection.objects.create(slug="till", name="Till", kind="push", compartment=finance)
    terms = KeyTerms(
        name="robot",
        expires_at=NOW + timedelta(days=3),
        max_sensitivity=1,
        compartments=(engineering, finance),
        presets=("corecube",),
        push_connections=(till,),
        requests_per_minute=1200,
    )
    return issue_key(user=world.bob, terms=terms, actor=world.alice)[0]


def test_an_admin_reads_all_of_it(key):
    row = key_row(key, NOW, None)
    assert row["limits"] == "only Engineering, Finance; up to internal; presets corecube; can push to Till"
    assert (row["rate"], row["state"], row["is_open"], row["used"]) == ("1,200 per minute", "active", True, "never")


def test_its_owner_is_told_no_name_beyond_their_scope(world, key):
    known = Visible({Compartment.objects.get(slug="engineering").pk}, {world.runbooks.pk})
    row = key_row(key, NOW, known)
    assert row["limits"] == (
        "only Engineering, other compartments; up to internal; presets corecube; can push to other connections"
    )


def test_an_open_key(world):
    row = key_row(issue_key(user=world.bob, terms=KeyTerms(name="robot"), actor=world.bob)[0], NOW, None)
    assert (row["limits"], row["rate"], row["expires"]) == ("everything its user can see", "unlimited", "never")


def test_an_expired_key_is_not_open(key):
    row = key_row(key, NOW + timedelta(days=4), None)
    assert (row["state"], row["is_open"]) == ("expired", False)
