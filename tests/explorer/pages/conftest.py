"""Browsers of the cast."""

import pytest
from django.test import Client


@pytest.fixture
def browse(world):
    """Return a client that one of the cast has signed in with."""

    def client(name):
        signed_in = Client()
        signed_in.force_login(getattr(world, name))
        return signed_in

    return client


@pytest.fixture
def htmx():
    """Return the headers of a request for a fragment."""
    return {"HX-Request": "true", "HX-Current-URL": "http://testserver/?q=rollback"}
