"""What does not sign anybody in: tokens that are not ours, states of others, a provider that is down or lies."""

import json
import time

import jwt
import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from django.test import Client

from corecube.models import AuditEvent, User
from corecube.oidc import provider as provider_module
from tests.corecube.oidc.conftest import CALLBACK, CLIENT, SECRET, START, Browser

pytestmark = pytest.mark.filterwarnings("ignore")

ADA = "sub-ada"


def assert_refused(browser, response, status, words):
    assert response.status_code == status
    assert words in response.content.decode()
    assert browser.user_id is None
    assert not User.objects.exists()
    assert [it.action for it in AuditEvent.objects.all()] == ["session.refused"]


class TestTokens:
    @pytest.mark.parametrize(
        "change",
        [
            {"nonce": "another"},
            {"nonce": None},
            {"aud": "another-client"},
            {"aud": [CLIENT, "another-client"]},
            {"aud": [CLIENT], "azp": "another-client"},
            {"iss": "https://evil.example"},
            {"exp": int(time.time()) - 120},
            {"iat": int(time.time()) + 3600},
            {"nbf": int(time.time()) + 3600},
            {"sub": ""},
            {"sub": "a" * 256},
            {"sub": "sub-\0"},
            {"sub": "somebody-else"},
        ],
        ids=" ".join,
    )
    def test_one_that_is_not_for_this_sign_in(self, browser, provider, change):
        provider.change_token(lambda claims: {k: v for k, v in {**claims, **change}.items() if v is not None})
        assert_refused(browser, browser.sign_in(ADA), 403, "could not be verified")

    @pytest.mark.parametrize("missing", ["sub", "aud", "iss", "exp", "iat", "nonce"])
    def test_one_that_lacks_what_it_must_say(self, browser, provider, missing):
        provider.change_token(lambda claims: {k: v for k, v in claims.items() if k != missing})
        assert_refused(browser, browser.sign_in(ADA), 403, "could not be verified")

    def test_one_that_is_not_signed(self, browser, provider):
        provider.change_token(dict, algorithm="none", key="")
        assert_refused(browser, browser.sign_in(ADA), 403, "could not be verified")

    def test_one_that_is_signed_with_the_clients_secret(self, browser, provider):
        provider.change_token(dict, algorithm="HS256", key=SECRET)
        assert_refused(browser, browser.sign_in(ADA), 403, "could not be verified")

    @pytest.mark.parametrize("kid", ["own", "unknown", None])
    def test_one_that_is_signed_with_another_key(self, browser, provider, kid):
        provider.change_token(dict, key=rsa.generate_private_key(65537, 2048), kid=kid)
        assert_refused(browser, browser.sign_in(ADA), 403, "could not be verified")

    def test_one_with_another_algorithm_of_the_same_key(self, browser, provider):
        provider.change_token(dict, algorithm="RS512")
        assert_refused(browser, browser.sign_in(ADA), 403, "could not be verified")

    @pytest.mark.parametrize("token", [None, "", "a.b.c", "a", 7, "e30.e30."])
    def test_no_token(self, browser, provider, token):
        provider.answers["/oauth2/token"] = lambda status, headers, _: (
            status,
            headers,
            json.dumps({"access_token": "x", "id_token": token}).encode(),
        )
        assert_refused(browser, browser.sign_in(ADA), 403, "could not be verified")

    def test_one_signed_with_an_elliptic_key_that_is_published_is_good(self, browser, provider):
        key = ec.generate_private_key(ec.SECP256R1())
        public = {**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key())), "kid": "ec", "use": "sig"}
        provider.change_token(dict, algorithm="ES256", key=key, kid="ec")
        provider.answers["/jwks"] = lambda status, headers, body: (
            status,
            headers,
            json.dumps({"keys": [*json.loads(body)["keys"], public, "junk"]}).encode(),
        )
        assert browser.sign_in(ADA).headers["Location"] == "/"
        assert browser.user_id

    def test_what_is_told_of_another_person(self, browser, provider):
        provider.answers["/userinfo"] = lambda status, headers, _: (status, headers, b'{"sub": "another"}')
        assert_refused(browser, browser.sign_in(ADA), 403, "could not be verified")


class TestStates:
    def test_one_that_was_never_given_out(self, browser):
        browser.leave()
        assert_refused(browser, browser.client.get(f"{CALLBACK}?code=x&state=made-up"), 400, "another browser")

    def test_none(self, browser):
        assert_refused(browser, browser.client.get(CALLBACK), 400, "another browser")

    def test_that_of_another_browser(self, browser, provider):
        back = browser.come_back(browser.leave(), ADA)
        other = Browser(Client(), provider)
        other.leave()
        assert_refused(other, other.client.get(back), 400, "another browser")

    def test_it_works_once(self, browser):
        back = browser.come_back(browser.leave(), ADA)
        browser.client.get(back)
        browser.client.post("/logout/")
        assert browser.client.get(back).status_code == 400
        assert browser.user_id is None

    def test_a_second_code_with_the_state_of_the_first_fails(self, browser):
        address = browser.leave()
        first, second = browser.come_back(address, ADA), browser.come_back(address, ADA)
        browser.client.get(first)
        browser.client.post("/logout/")
        assert browser.client.get(second).status_code == 400
        assert browser.user_id is None

    def test_its_time_is_limited(self, browser):
        back = browser.come_back(browser.leave(), ADA)
        session = browser.client.session
        for entry in session["oidc_states"].values():
            entry["added_on"] -= 901
        session.save()
        assert_refused(browser, browser.client.get(back), 400, "has expired")

    def test_the_code_of_another_sign_in_brings_another_nonce(self, browser, provider):
        mine = browser.come_back(browser.leave(), ADA)
        other = Browser(Client(), provider)
        theirs = other.come_back(other.leave(), "sub-eve")
        mixed = (
            f"{CALLBACK}?code={theirs.split('code=')[1].split('&')[0]}&state={mine.split('state=')[1].split('&')[0]}"
        )
        assert_refused(browser, browser.client.get(mixed), 403, "could not be verified")

    def test_an_answer_in_another_issuers_name(self, browser):
        back = browser.come_back(browser.leave(), ADA)
        assert_refused(browser, browser.client.get(f"{back}&iss=https%3A%2F%2Fevil.example"), 400, "Try again")

    def test_who_declines_is_told_so_and_stays_out(self, browser):
        response = requests.post(browser.leave(), data={"action": "deny"}, allow_redirects=False, timeout=5)
        query = response.headers["Location"].partition("?")[2]
        state = browser.client.session["oidc_states"].copy().popitem()[0]
        query = query if "state=" in query else f"{query}&state={state}"
        assert_refused(browser, browser.client.get(f"{CALLBACK}?{query}"), 403, "declined the sign-in")
        assert browser.client.session["oidc_states"] == {}

    @pytest.mark.usefixtures("provider")
    def test_a_page_elsewhere_cannot_sign_anybody_out(self, client, people):
        client.post("/login/", {"username": "bob", "password": "b"})
        assert client.get(f"{CALLBACK}?error=access_denied").status_code == 400
        assert client.session["_auth_user_id"] == str(people["bob"].pk)

    @pytest.mark.parametrize("path", [START, CALLBACK])
    def test_only_get(self, browser, path):
        assert browser.client.post(path).status_code == 405


class TestTheProvider:
    def test_it_is_down(self, browser, provider):
        provider.stop()
        assert_refused(browser, browser.client.get(START), 503, "does not respond")

    def test_it_goes_down_on_the_way(self, browser, provider):
        back = browser.come_back(browser.leave(), ADA)
        provider.stop()
        assert_refused(browser, browser.client.get(back), 503, "does not respond")

    def test_signing_out_works_all_the_same(self, browser, provider):
        browser.sign_in(ADA)
        provider.stop()
        provider_module._cache.clear()
        assert browser.client.post("/logout/").headers["Location"] == "/logout/done/"
        page = browser.client.get("/logout/done/")
        assert page.status_code == 200
        assert "/logout/provider/" not in page.content.decode()

    @pytest.mark.usefixtures("people")
    def test_a_password_works_all_the_same(self, client, provider):
        provider.stop()
        client.post("/login/", {"username": "bob", "password": "b"})
        assert client.get("/explorer/").status_code == 200

    @pytest.mark.parametrize("path", ["/oauth2/token", "/jwks", "/userinfo"])
    @pytest.mark.parametrize(
        ("answer", "status"),
        [
            ((500, {}, b"{}"), 503),
            ((404, {}, b"{}"), 403),
            ((200, {}, b"<html>"), 403),
            ((200, {}, b"[]"), 403),
            ((200, {}, b"[" * 100_000), 403),
            ((200, {}, b'{"a": "' + b"x" * 1_000_001 + b'"}'), 403),
        ],
        ids=["fails", "misses", "garbage", "list", "deep", "large"],
    )
    def test_it_answers_nonsense(self, browser, provider, path, answer, status):
        provider.answers[path] = lambda *_: answer
        assert_refused(browser, browser.sign_in(ADA), status, "You are not signed in")

    @pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/oauth2/token", "/jwks", "/userinfo"])
    def test_its_redirects_are_not_followed(self, browser, provider, path):
        provider.answers[path] = lambda *_: (302, {"Location": f"{provider.issuer}/trap"}, b"")
        response = browser.client.get(START)
        if response.status_code == 302:
            response = browser.client.get(browser.come_back(response.headers["Location"], ADA))
        assert_refused(browser, response, 403, "could not be verified")
        assert "/trap" not in [it[0] for it in provider.seen]

    def test_it_is_slow(self, browser, provider, monkeypatch):
        monkeypatch.setattr("corecube.oidc.provider.REQUEST_SECONDS", 0.2)

        def wait(*answer):
            time.sleep(0.5)
            return answer

        back = browser.come_back(browser.leave(), ADA)
        provider.answers["/oauth2/token"] = wait
        assert_refused(browser, browser.client.get(back), 503, "does not respond")

    def publish(self, provider, **changes):
        provider.answers["/.well-known/openid-configuration"] = lambda status, headers, body: (
            status,
            headers,
            json.dumps({**json.loads(body), **changes}).encode(),
        )

    def test_it_calls_itself_by_another_name(self, browser, provider):
        self.publish(provider, issuer="https://evil.example")
        assert_refused(browser, browser.client.get(START), 403, "differs from CORECUBE_OIDC_ISSUER")

    @pytest.mark.parametrize("name", ["token_endpoint", "jwks_uri", "userinfo_endpoint"])
    def test_it_sends_us_into_our_own_network(self, browser, provider, name):
        self.publish(provider, **{name: f"http://127.0.0.1:{provider.server.server_port}/oauth2/token"})
        before = len(provider.seen)
        assert_refused(browser, browser.sign_in(ADA), 403, "could not be verified")
        assert all(it[3]["Host"].startswith("localhost") for it in provider.seen[before:])

    @pytest.mark.parametrize("address", ["file:///etc/passwd", 7, "", None])
    def test_an_address_that_is_none(self, browser, provider, address):
        self.publish(provider, token_endpoint=address)
        assert_refused(browser, browser.client.get(START), 403, "could not be verified")

    def test_what_it_publishes_is_read_once_in_a_while(self, browser, provider):
        browser.leave()
        browser.leave()
        assert [it[0] for it in provider.seen].count("/.well-known/openid-configuration") == 1

    def test_its_addresses_can_be_set(self, browser, provider, settings):
        settings.CORECUBE_OIDC_AUTHORIZATION_URL = f"{provider.issuer}/oauth2/authorize?tenant=a"
        settings.CORECUBE_OIDC_TOKEN_URL = f"{provider.issuer}/oauth2/token"
        settings.CORECUBE_OIDC_JWKS_URL = f"{provider.issuer}/jwks"
        address = browser.leave()
        assert "?tenant=a&response_type=code" in address
        browser.client.get(browser.come_back(address, ADA))
        assert browser.user_id
        assert not [it for it in provider.seen if it[0] in {"/.well-known/openid-configuration", "/userinfo"}]


def test_nothing_secret_is_logged(browser, provider, caplog):
    provider.change_token(lambda claims: {**claims, "nonce": "another"})
    browser.sign_in(ADA)
    assert "sign_in_untrusted" in caplog.text
    assert not [word for word in (SECRET, "eyJ", "code=", ADA) if word in caplog.text.replace("code=sign_in", "")]


def test_a_wrong_secret_is_named_in_the_log(browser, provider, caplog):
    provider.answers["/oauth2/token"] = lambda *_: (401, {}, b'{"error": "invalid_client", "error_description": "x y"}')
    assert_refused(browser, browser.sign_in(ADA), 403, "could not be verified")
    assert "oidc.request_failed status=401 error=invalid_client" in caplog.text
    assert "x y" not in caplog.text
