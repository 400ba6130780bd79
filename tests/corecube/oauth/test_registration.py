"""Clients that register themselves, and what a client finds out before it does."""

import pytest
from oauth2_provider.models import Application

from tests.corecube.oauth.conftest import REDIRECT, Agent


@pytest.fixture
def stranger(client, db):
    return Agent(client)


def test_a_client_finds_the_server_of_the_resource(client, db):
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
        assert client.get(path).json() == {
            "resource": "http://testserver/mcp",
            "authorization_servers": ["http://testserver"],
            "scopes_supported": ["mcp"],
            "bearer_methods_supported": ["header"],
            "resource_name": "CoreCube",
        }
    assert client.get("/.well-known/oauth-authorization-server").json() == {
        "issuer": "http://testserver",
        "authorization_endpoint": "http://testserver/oauth/authorize",
        "token_endpoint": "http://testserver/oauth/token",
        "registration_endpoint": "http://testserver/oauth/register",
        "revocation_endpoint": "http://testserver/oauth/revoke",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "scopes_supported": ["mcp"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "client_id_metadata_document_supported": False,
        "authorization_response_iss_parameter_supported": True,
    }


def test_a_client_is_public_and_keeps_only_permitted_redirects(stranger):
    answer = stranger.register(
        client_name="Visual Studio Code",
        redirect_uris=["https://vscode.dev/redirect", REDIRECT, "cursor://callback", "http://localhost:33418/"],
        grant_types=["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
        token_endpoint_auth_method="client_secret_basic",
        scope="admin",
    )
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    client = Application.objects.get()
    assert answer.json() == {
        "client_id": client.client_id,
        "client_id_issued_at": int(client.created.timestamp()),
        "client_name": "Visual Studio Code",
        "redirect_uris": [REDIRECT, "http://localhost:33418/"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": "mcp",
    }
    assert (client.client_type, client.user, client.skip_authorization) == ("public", None, False)


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/callback",
        "https://claude.ai.evil.example/callback",
        "https://claude.ai@evil.example/callback",
        "https://evil.example\\@claude.ai/callback",
        "http://claude.ai/callback",
        "http://localhost.evil.example/callback",
        "http://user@localhost/callback",
        "http://localhost/callback#fragment",
        "https://*.ai/callback",
        "https://claude.ai:99999/callback",
        "http://[::1/callback",
        "javascript://localhost/%0aalert(1)",
        "data:text/html,x",
        "localhost",
        "",
        "http://localhost/a\nb",
        "http://local\u200bhost/",
        "http://localhost/ https://evil.example/",
    ],
)
def test_a_redirect_elsewhere_is_refused(stranger, settings, uri):
    settings.CORECUBE_MCP_REDIRECT_HOSTS = ["claude.ai"]
    answer = stranger.register(redirect_uris=[uri])
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")
    assert "claude.ai" in answer.json()["error_description"]
    assert not Application.objects.exists()


def test_a_host_that_an_admin_permits_is_registered(stranger, settings):
    settings.CORECUBE_MCP_REDIRECT_HOSTS = ["claude.ai"]
    assert stranger.register(redirect_uris=["https://claude.ai/api/mcp/auth_callback"]).status_code == 201


@pytest.mark.parametrize(
    "metadata",
    [
        {"redirect_uris": []},
        {"redirect_uris": REDIRECT},
        {"redirect_uris": [REDIRECT] * 21},
        {"redirect_uris": [7]},
        {"client_name": "x" * 101},
        {"client_name": ["x"]},
        {"grant_types": ["client_credentials"]},
    ],
)
def test_invalid_metadata_is_refused(stranger, metadata):
    answer = stranger.register(**metadata)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'"x"', b"[" * 5000])
def test_nonsense_is_refused(client, db, body):
    assert client.post("/oauth/register", body, content_type="application/json").status_code == 400


def test_an_address_registers_20_clients_in_15_minutes(stranger, client):
    assert {stranger.register().status_code for _ in range(20)} == {201}
    refused = stranger.register()
    assert (refused.status_code, refused.json()["error"]) == (429, "temporarily_unavailable")
    assert 1 <= int(refused.headers["Retry-After"]) <= 45
    assert Application.objects.count() == 20
    client.defaults["REMOTE_ADDR"] = "192.0.2.7"
    assert stranger.register().status_code == 201


def test_registration_can_be_switched_off(stranger, client, settings):
    settings.OAUTH2_PROVIDER = {**settings.OAUTH2_PROVIDER, "DCR_ENABLED": False}
    assert stranger.register().status_code == 403
    assert "registration_endpoint" not in client.get("/.well-known/oauth-authorization-server").json()
