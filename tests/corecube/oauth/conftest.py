"""A client of the authorization server, as tests drive it by hand."""

import base64
import hashlib
import json
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from lxml import html

VERIFIER = "v" * 50
REDIRECT = "http://127.0.0.1:7777/callback"
RESOURCE = "http://testserver/mcp"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def challenge_of(verifier):
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


@dataclass
class Agent:
    """A registered client, whose user's browser is `browser`."""

    browser: object
    client_id: str = ""

    def register(self, **metadata):
        asked = {"client_name": "Agent", "redirect_uris": [REDIRECT], **metadata}
        response = self.browser.post("/oauth/register", json.dumps(asked), content_type="application/json")
        self.client_id = response.json().get("client_id", self.client_id)
        return response

    def address(self, **changed):
        """Return the address of the consent page; None leaves a parameter out."""
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT,
            "state": "xyz",
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "resource": RESOURCE,
            **changed,
        }
        return "/oauth/authorize?" + urlencode({name: it for name, it in asked.items() if it is not None}, doseq=True)

    def ask(self, *, answer=None, **changed):
        """Open the consent page, or send an answer of its form."""
        address = self.address(**changed)
        return self.browser.get(address) if answer is None else self.browser.post(address, {"answer": answer})

    def code(self, user, **changed):
        self.browser.force_login(user)
        return sent_to_client(self.ask(answer="allow", **changed))["code"]

    def exchange(self, code, **changed):
        asked = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.client_id,
            "redirect_uri": REDIRECT,
            "code_verifier": VERIFIER,
            **changed,
        }
        return self.browser.post("/oauth/token", {name: it for name, it in asked.items() if it is not None})

    def tokens(self, user):
        return self.exchange(self.code(user)).json()

    def refresh(self, token, **changed):
        asked = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.client_id, **changed}
        return self.browser.post("/oauth/token", asked)

    def revoke(self, token):
        return self.browser.post("/oauth/revoke", {"token": token, "client_id": self.client_id})

    def call(self, token, message=LIST, **headers):
        sent = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream", **headers}
        return self.browser.post("/mcp", json.dumps(message), content_type="application/json", headers=sent)

    def status(self, token, **headers):
        return self.call(token, **headers).status_code


def sent_to_client(response):
    """Return the parameters with which a page sends the browser back to the client."""
    page = html.fromstring(response.content)
    (address,) = page.xpath("//a[normalize-space() = 'Continue']/@href")
    (refresh,) = page.xpath("//meta[@http-equiv = 'refresh']/@content")
    assert refresh == f"0; url={address}"
    assert address.startswith(REDIRECT), address
    return {name: value for name, (value,) in parse_qs(urlsplit(address).query).items()}


@pytest.fixture
def agent(client, world):
    """Return a client that has registered."""
    registered = Agent(client)
    assert registered.register().status_code == 201
    return registered
