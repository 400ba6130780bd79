"""The consent page: what it says, whom it sends where, and what it refuses."""

import pytest
from django.test import Client
from lxml import html
from oauth2_provider.models import AccessToken, Application, Grant

from corecube.models import AuditEvent
from tests.corecube.oauth.conftest import REDIRECT, challenge_of, sent_to_client


@pytest.fixture
def signed_in(agent, world):
    agent.browser.force_login(world.bob)
    return agent


def text_of(response):
    return " ".join(html.fromstring(response.content).text_content().split())


def test_it_says_who_asks_for_what_and_where_the_answer_goes(signed_in):
    page = signed_in.ask()
    text = text_of(page)
    assert (page.status_code, page.headers["Cache-Control"].count("no-store")) == (200, 1)
    for part in ("“Agent”", "act as bob", "Search and read all documents", "your own computer (127.0.0.1:7777)"):
        assert part in text
    assert html.fromstring(page.content).xpath("//script[not(@src)] | //*[@style] | //style") == []
    assert "form-action 'self'" in page.headers["Content-Security-Policy"]
    assert page.headers["X-Frame-Options"] == "DENY"


def test_the_name_of_a_client_is_text(agent, world):
    agent.register(client_name="<b>Claude</b>\n\0\u202e")
    agent.browser.force_login(world.bob)
    page = agent.ask()
    assert b"<b>" not in page.content
    assert "“<b>Claude</b>" in text_of(page)


def test_whoever_has_not_signed_in_does_so_first(agent, world):
    page = agent.ask()
    assert page.status_code == 302
    assert page.headers["Location"].startswith("/login/?next=/oauth/authorize%3F")
    signed_in = agent.browser.post(page.headers["Location"], {"username": "bob", "password": "b"})
    assert signed_in.headers["Location"] == agent.address()


def test_allowing_sends_a_code_and_denying_does_not(signed_in, world):
    given = sent_to_client(signed_in.ask(answer="allow"))
    assert (set(given), given["state"], given["iss"]) == ({"code", "state", "iss"}, "xyz", "http://testserver")
    event = AuditEvent.objects.get(action="client.connected")
    assert (event.actor, event.subject, event.details) == (world.bob, "Agent", {"host": "127.0.0.1:7777"})
    for answer in ("deny", ""):
        refused = sent_to_client(signed_in.ask(answer=answer))
        assert (refused["error"], refused["state"]) == ("access_denied", "xyz")
    assert Grant.objects.count() == 1


def test_another_site_cannot_allow(signed_in, world):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(world.bob)
    signed_in.browser = browser
    assert signed_in.ask(answer="allow").status_code == 403
    assert not Grant.objects.exists()


@pytest.mark.parametrize("more", ["approval_prompt=auto", "prompt=none", "allow=true", "answer=allow"])
def test_a_client_that_is_connected_is_asked_about_again(signed_in, world, more):
    signed_in.tokens(world.bob)
    page = signed_in.browser.get(f"{signed_in.address()}&{more}")
    assert "act as bob" in text_of(page)
    assert not Grant.objects.exists()


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": challenge_of("v") + "=" * 200}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"scope": "mcp admin"}, "invalid_scope"),
        ({"resource": "http://other.example/mcp"}, "invalid_target"),
        ({"resource": "http://testserver/api"}, "invalid_target"),
        ({"resource": ["http://testserver/mcp", "http://other.example/mcp"]}, "invalid_target"),
    ],
)
def test_an_invalid_request_is_told_to_the_client(signed_in, changed, error):
    for answer in (None, "allow"):
        told = sent_to_client(signed_in.ask(answer=answer, **changed))
        assert (told["error"], told["state"]) == (error, "xyz")
    assert not Grant.objects.exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"redirect_uri": "https://evil.example/callback"},
        {"redirect_uri": "http://127.0.0.1:7777/callback/../other"},
        {"redirect_uri": "http://127.0.0.1:7777@evil.example/callback"},
        {"redirect_uri": "http://127.0.0.1.evil.example/callback"},
        {"redirect_uri": "http://127.0.0.1:7777/callback#fragment"},
        {"redirect_uri": "http://127.0.0.1:7777/callback?next=//evil.example"},
        {"redirect_uri": "http://127.0.0.1:7777\\@evil.example/callback"},
        {"redirect_uri": "//evil.example/callback"},
        {"redirect_uri": "javascript:alert(1)"},
        {"redirect_uri": ["http://127.0.0.1:7777/callback", "https://evil.example/callback"]},
        {"client_id": "unknown"},
        {"client_id": None},
        {"client_id": "\0"},
    ],
)
def test_an_unknown_client_or_redirect_is_sent_nowhere(signed_in, changed):
    """There is no open redirect: also not with an error that would be told to the client."""
    for more in ({}, {"scope": "nonsense"}, {"code_challenge": None}):
        for answer in (None, "allow", "deny"):
            page = signed_in.ask(answer=answer, **{**changed, **more})
            assert 400 <= page.status_code < 500
            assert "Location" not in page.headers
            assert b"evil.example" not in page.content
            assert b"http-equiv" not in page.content
    assert not Grant.objects.exists()


def test_a_program_on_the_users_computer_may_take_any_port(signed_in):
    assert signed_in.ask(redirect_uri=REDIRECT.replace("7777", "50123")).status_code == 200


def test_a_host_that_is_no_longer_permitted_gets_nothing(signed_in, settings):
    settings.CORECUBE_MCP_REDIRECT_HOSTS = ["claude.ai"]
    cloud = {"redirect_uri": "https://claude.ai/api/mcp/auth_callback"}
    signed_in.register(redirect_uris=[cloud["redirect_uri"]])
    page = signed_in.ask(**cloud)
    assert "receives your documents at claude.ai" in text_of(page)
    settings.CORECUBE_MCP_REDIRECT_HOSTS = []
    refused = signed_in.ask(answer="allow", **cloud)
    assert (refused.status_code, b"http-equiv" in refused.content) == (400, False)
    # An admin has added this client by hand.
    Application.objects.update(registration_source="manual")
    assert signed_in.ask(**cloud).status_code == 200


def test_users_see_and_disconnect_their_own_clients(signed_in, world, client):
    tokens = signed_in.tokens(world.bob)
    application = Application.objects.get()
    page = html.fromstring(client.get("/keys/").content)
    (form,) = page.xpath("//section[@aria-labelledby='clients']//form")
    assert "Agent" in text_of(client.get("/keys/"))

    client.force_login(world.charlie)
    assert b"Connected applications" not in client.get("/keys/").content
    assert client.post(form.get("action")).status_code == 404
    assert signed_in.status(tokens["access_token"]) == 200

    client.force_login(world.bob)
    assert client.get(form.get("action")).status_code == 405
    assert client.post(form.get("action")).headers["Location"] == "/keys/"
    assert signed_in.status(tokens["access_token"]) == 401
    assert signed_in.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert b"Connected applications" not in client.get("/keys/").content
    event = AuditEvent.objects.get(action="client.disconnected")
    assert (event.actor, event.subject, event.details) == (world.bob, "Agent", {"user": "bob"})
    assert Application.objects.get() == application


def test_an_admin_sees_and_disconnects_every_client(signed_in, world, client):
    tokens = signed_in.tokens(world.bob)
    client.force_login(world.alice)
    assert b"Connected applications" not in client.get("/keys/").content
    (form,) = html.fromstring(client.get("/access/keys/").content).xpath("//section[@aria-labelledby='clients']//form")
    assert client.post(form.get("action")).headers["Location"] == "/access/keys/"
    assert signed_in.status(tokens["access_token"]) == 401
    assert not AccessToken.objects.exists()


def test_an_admin_adds_clients_but_no_tokens_by_hand(agent, world, client):
    client.force_login(world.alice)
    add, service = "/admin/oauth2_provider/application/add/", "https://service.example/callback"
    for wrong in ("", "http://service.example/callback", f"{service} ftp://localhost/", "javascript:alert(1)"):
        assert client.post(add, {"name": "Service", "redirect_uris": wrong}).status_code == 200
    given = {"name": "Service", "redirect_uris": service, "skip_authorization": "on", "client_type": "confidential"}
    assert client.post(add, given).status_code == 302
    made = Application.objects.get(name="Service")
    assert (made.client_type, made.client_secret, made.skip_authorization) == ("public", "", False)
    assert AuditEvent.objects.get(action="client.created").actor == world.alice

    agent.client_id = made.client_id
    page = agent.ask(redirect_uri=service)
    assert "receives your documents at service.example" in text_of(page)
    for model in ("accesstoken", "refreshtoken", "grant", "idtoken"):
        assert client.get(f"/admin/oauth2_provider/{model}/").status_code == 404


def test_deleting_a_client_ends_its_access(signed_in, world, client):
    tokens = signed_in.tokens(world.bob)
    client.force_login(world.alice)
    pk = Application.objects.get().pk
    assert client.post(f"/admin/oauth2_provider/application/{pk}/delete/", {"post": "yes"}).status_code == 302
    assert signed_in.status(tokens["access_token"]) == 401
    assert signed_in.refresh(tokens["refresh_token"]).status_code == 401
