"""Who gets which token, and where it opens."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, Grant, RefreshToken

from corecube.models import User
from corecube.oauth.clients import forget_ended
from retrieval.models import SearchRecord
from tests.corecube.oauth.conftest import RESOURCE, Agent
from tests.race import race

SEARCH = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "search", "arguments": {"query": "rollback passphrase codeword march", "top_k": 50}},
}


def test_a_token_searches_as_its_user_and_no_further(agent, world):
    for user, seen in (
        (world.bob, {"Runbooks"}),
        (world.alice, {"Runbooks", "Vault", "Ledger"}),
        (world.charlie, set()),
    ):
        tokens = agent.tokens(user)
        assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 3600, "mcp")
        found = agent.call(tokens["access_token"], SEARCH).json()["result"]["structuredContent"]
        assert {it["source"] for it in found["results"]} == seen
        record = SearchRecord.objects.get(pk=found["trace_id"])
        assert (record.user, record.surface) == (user, "agent")


def test_nothing_that_opens_anything_is_stored(agent, world):
    """Codes and tokens are in no column of any table of OAuth, nor in the audit log."""
    code = agent.code(world.bob)

    def stored():
        tables = [it for it in connection.introspection.table_names() if it.startswith(("oauth2_", "corecube_audit"))]
        with connection.cursor() as cursor:
            return "".join(str(cursor.execute(f'SELECT * FROM "{it}"').fetchall()) for it in tables)

    assert Grant.objects.count() == 1
    assert code not in stored()
    tokens = agent.exchange(code).json()
    assert tokens["access_token"] not in stored()
    assert tokens["refresh_token"] not in stored()


def test_an_inactive_user_is_out_at_once(agent, world):
    tokens, code = agent.tokens(world.bob), agent.code(world.bob)
    assert agent.status(tokens["access_token"]) == 200
    User.objects.filter(pk=world.bob.pk).update(is_active=False)
    assert agent.status(tokens["access_token"]) == 401
    assert agent.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert agent.exchange(code).json()["error"] == "invalid_grant"


def test_a_token_of_another_resource_is_refused(agent, world, settings):
    settings.ALLOWED_HOSTS = ["testserver", "other.example"]
    token = agent.tokens(world.bob)["access_token"]
    assert agent.status(token, Host="other.example") == 401
    assert agent.status(token) == 200
    AccessToken.objects.update(resource=[RESOURCE, "http://other.example/mcp"])
    assert agent.status(token) == 401
    AccessToken.objects.update(resource=[])
    assert agent.status(token) == 401


@pytest.mark.parametrize("address", ["/api/v1/connections", "/v1/models", "/metrics", "/keys/"])
def test_a_token_opens_nothing_but_mcp(agent, world, client, address):
    token = agent.tokens(world.alice)["access_token"]
    client.logout()
    answer = client.get(address, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code in {302, 401, 403, 404}


def test_a_token_acts_for_nobody_else(agent, world):
    token = agent.tokens(world.alice)["access_token"]
    answer = agent.call(token, **{"X-CoreCube-User": "bob"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_permitted")


def test_a_request_without_a_token_is_told_where_to_sign_in(client, world):
    metadata = "http://testserver/.well-known/oauth-protected-resource/mcp"
    answer = client.post("/mcp", "{}", content_type="application/json")
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == f'Bearer resource_metadata="{metadata}", scope="mcp"'
    answer = client.post("/mcp", "{}", content_type="application/json", headers={"Authorization": "Bearer nonsense"})
    assert answer.headers["WWW-Authenticate"].startswith('Bearer error="invalid_token", resource_metadata=')


def test_a_code_is_used_once_and_again_ends_its_tokens(agent, world):
    code, others = agent.code(world.bob), agent.tokens(world.bob)
    tokens = agent.exchange(code).json()
    newer = agent.refresh(tokens["refresh_token"]).json()
    assert agent.status(newer["access_token"]) == 200
    again = agent.exchange(code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert agent.status(newer["access_token"]) == 401
    assert agent.refresh(newer["refresh_token"]).json()["error"] == "invalid_grant"
    assert agent.status(others["access_token"]) == 200


@pytest.mark.parametrize("changed", [{"code_verifier": None}, {"code_verifier": "w" * 50}, {"code_verifier": "v" * 49}])
def test_a_code_needs_its_verifier(agent, world, changed):
    code = agent.code(world.bob)
    assert agent.exchange(code, **changed).status_code == 400
    assert not AccessToken.objects.exists()


def test_a_code_belongs_to_its_client_redirect_and_resource(agent, world, client):
    other = Agent(client)
    other.register(client_name="Other", redirect_uris=["http://127.0.0.1:7777/callback", "http://127.0.0.1:7777/b"])
    refused = [
        other.exchange(agent.code(world.bob)),
        agent.exchange(agent.code(world.bob), redirect_uri="http://127.0.0.1:7777/b"),
        agent.exchange(agent.code(world.bob), resource="http://testserver/api"),
        agent.exchange(agent.code(world.bob), grant_type="password", username="bob", password="b"),
        agent.exchange(agent.code(world.bob), grant_type="client_credentials"),
        agent.exchange(agent.code(world.bob), grant_type="urn:ietf:params:oauth:grant-type:device_code"),
    ]
    assert {it.status_code for it in refused} <= {400, 401}
    assert not AccessToken.objects.exists()


def test_a_code_lasts_for_a_minute(agent, world):
    code = agent.code(world.bob)
    assert timedelta(seconds=50) < Grant.objects.get().expires - timezone.now() <= timedelta(seconds=60)
    Grant.objects.update(expires=timezone.now())
    assert agent.exchange(code).json()["error"] == "invalid_grant"


def test_refresh_tokens_rotate_and_a_reused_one_ends_all(agent, world):
    first = agent.tokens(world.bob)
    second = agent.refresh(first["refresh_token"], resource=RESOURCE).json()
    assert (agent.status(first["access_token"]), agent.status(second["access_token"])) == (401, 200)
    assert agent.refresh(first["refresh_token"]).json()["error"] == "invalid_grant"
    assert agent.status(second["access_token"]) == 401
    assert agent.refresh(second["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_refresh_token_opens_neither_another_client_nor_resource_nor_scope(agent, world, client):
    token = agent.tokens(world.bob)["refresh_token"]
    other = Agent(client)
    other.register(client_name="Other")
    assert other.refresh(token).json()["error"] == "invalid_grant"
    assert agent.refresh(token, resource="http://other.example/mcp").json()["error"] == "invalid_target"
    assert agent.refresh(token, scope="mcp admin").json()["error"] == "invalid_scope"
    assert agent.status(token) == 401


def test_a_refresh_token_ends_after_30_days_without_use(agent, world):
    token = agent.tokens(world.bob)["refresh_token"]
    AccessToken.objects.update(expires=timezone.now() - timedelta(days=30))
    assert agent.refresh(token).json()["error"] == "invalid_grant"
    forget_ended()
    assert not RefreshToken.objects.exists()


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_a_client_revokes_its_own_tokens(agent, world, client, kind):
    tokens = agent.tokens(world.bob)
    other = Agent(client)
    other.register(client_name="Other")
    assert other.revoke(tokens[kind]).status_code == 200
    assert agent.status(tokens["access_token"]) == 200
    assert agent.revoke(tokens[kind]).status_code == 200
    assert agent.status(tokens["access_token"]) == 401
    assert agent.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_clients_that_nobody_connects_are_forgotten(agent, world, client):
    used, unused = agent, Agent(client)
    unused.register()
    used.tokens(world.bob)
    forget_ended()
    assert Application.objects.count() == 2
    Application.objects.update(created=timezone.now() - timedelta(days=31))
    by_hand = Application.objects.create(client_type="public", authorization_grant_type="authorization-code")
    Application.objects.filter(pk=by_hand.pk).update(created=timezone.now() - timedelta(days=31))
    forget_ended()
    assert set(Application.objects.values_list("client_id", flat=True)) == {used.client_id, by_hand.client_id}


@pytest.mark.parametrize(
    "body", ["", "a=%00", "client_id=%00", "grant_type=authorization_code&code=%00&client_id=x", "%"]
)
@pytest.mark.parametrize("address", ["token", "revoke"])
def test_nonsense_is_refused(client, world, address, body):
    answer = client.post(f"/oauth/{address}", body, content_type="application/x-www-form-urlencoded")
    assert 400 <= answer.status_code < 500


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["code", "refresh token"])
def test_of_two_uses_at_once_one_gets_tokens_and_both_end(agent, world, kind):
    use = agent.exchange if kind == "code" else agent.refresh
    secret = agent.code(world.bob) if kind == "code" else agent.tokens(world.bob)["refresh_token"]
    answers = []
    refused = race(lambda: answers.append(use(secret)), lambda: use(secret))
    assert (answers[0].status_code, refused.status_code, refused.json()["error"]) == (200, 400, "invalid_grant")
    assert agent.status(answers[0].json()["access_token"]) == 401
