"""Signing in, and the pages for when something is wrong."""

import pytest
from django.template.loader import render_to_string
from django.test import RequestFactory


def test_signing_in_leads_to_the_explorer(client, people):
    page = client.get("/login/").content.decode()
    assert 'autocomplete="current-password"' in page
    response = client.post("/login/", {"username": "bob", "password": "b"})
    assert response.headers["Location"] == "/"


def test_a_wrong_password_is_told_without_saying_which(client, people):
    wrong, unknown = (
        client.post("/login/", {"username": name, "password": "x"}).content.decode() for name in ("bob", "nobody")
    )
    assert 'role="alert"' in wrong
    assert "Wrong username or password." in wrong
    assert "Wrong username or password." in unknown


def test_signing_out_leads_to_the_sign_in_page(browse):
    response = browse("bob").post("/logout/")
    assert response.headers["Location"] == "/login/"


def test_an_unknown_address_has_a_page(client, db):
    response = client.get("/no/such/page")
    assert response.status_code == 404
    assert "Not found" in response.content.decode()


@pytest.mark.parametrize("name", ["403.html", "403_csrf.html", "404.html", "500.html"])
def test_error_pages_need_no_context(name):
    assert "CoreCube" in render_to_string(name)


@pytest.mark.parametrize("fragment", [True, False])
def test_the_outage_page_asks_nothing_of_the_database(fragment):
    request = RequestFactory().get("/")
    request.htmx = fragment
    # No database fixture: touching one would fail the test.
    page = render_to_string("error.html", {"title": "Database unavailable", "message": "It does not answer."}, request)
    assert "It does not answer." in page
    assert ("<html" in page) is not fragment


def test_a_fragment_that_does_not_exist_is_a_notice_alone(browse, htmx):
    missing = "/log/01900000-0000-7000-8000-000000000000/"
    whole, fragment = browse("bob").get(missing), browse("bob").get(missing, headers=htmx)
    assert whole.status_code == fragment.status_code == 404
    assert "<html" in whole.content.decode()
    assert "<html" not in fragment.content.decode()
    assert "Not found" in fragment.content.decode()
