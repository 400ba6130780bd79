"""Signing in as a user with the protocol's own client: discovery, registration, consent, tokens, their end."""

import asyncio
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from django.test import Client as Browser
from lxml import html
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from oauth2_provider.models import AccessToken, Application, RefreshToken

from corecube.models import User

REDIRECT = "http://127.0.0.1:3999/callback"
CALL = ("search", {"query": "rollback passphrase"})


class Memory:
    """Where the client keeps its tokens."""

    tokens = client_info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client_info

    async def set_client_info(self, client_info):
        self.client_info = client_info


class Person:
    """A user in a browser, who follows the client's link and answers the page."""

    def __init__(self, user, answer="allow"):
        self.answer, self.asked = answer, 0
        browser = Browser()
        browser.force_login(user)
        self._cookies = {name: it.value for name, it in browser.cookies.items()}

    async def open(self, address):
        self.asked += 1
        async with httpx2.AsyncClient(cookies=self._cookies, timeout=20) as http:
            page = html.fromstring((await http.get(address)).content)
            (token,) = page.xpath("//input[@name='csrfmiddlewaretoken']/@value")
            sent = {"csrfmiddlewaretoken": token, "answer": self.answer}
            left = await http.post(address, data=sent, headers={"Referer": address})
        (target,) = html.fromstring(left.content).xpath("//a[normalize-space() = 'Continue']/@href")
        assert target.startswith(REDIRECT)
        self._given = {name: value for name, (value,) in parse_qs(urlsplit(target).query).items()}

    async def come_back(self):
        given = self._given
        return AuthorizationCodeResult(code=given.get("code", ""), state=given.get("state"), iss=given.get("iss"))


@asynccontextmanager
async def signed_in(server, person, memory):
    """Yield a client of the server that signs in when it must, and its provider."""
    metadata = OAuthClientMetadata(client_name="Test client", redirect_uris=[REDIRECT])
    provider = OAuthClientProvider(f"{server}/mcp", metadata, memory, person.open, person.come_back)
    async with (
        httpx2.AsyncClient(auth=provider, timeout=20) as http,
        Client(streamable_http_client(f"{server}/mcp", http_client=http)) as client,
    ):
        yield client, provider


@pytest.fixture
def person(transactional_db, world):
    return Person(world.bob)


async def sources(client):
    found = await client.call_tool(*CALL)
    return {it["source"] for it in found.structured_content["results"]}


def test_a_user_signs_in_and_the_client_goes_on_until_it_is_revoked(server, world, person):
    memory = Memory()

    async def session():
        async with signed_in(server, person, memory) as (client, provider):
            assert await sources(client) == {"Runbooks"}
            first = memory.tokens
            # The access token has expired: the client refreshes it, and asks nobody.
            provider.context.token_expiry_time = 1
            assert await sources(client) == {"Runbooks"}
            assert memory.tokens.access_token != first.access_token
            assert memory.tokens.refresh_token != first.refresh_token
            assert person.asked == 1

            address = str(provider.context.oauth_metadata.revocation_endpoint)
            sent = {"token": memory.tokens.refresh_token, "client_id": memory.client_info.client_id}
            async with httpx2.AsyncClient() as http:
                assert (await http.post(address, data=sent)).status_code == 200
            # Neither token is of use, so the client must ask again.
            assert await sources(client) == {"Runbooks"}
            assert person.asked == 2

    asyncio.run(session())
    assert [it.name for it in Application.objects.all()] == ["Test client"]
    assert {it.user for it in RefreshToken.objects.all()} == {world.bob}


def test_a_user_who_denies_lets_nothing_in(server, world, person):
    person.answer = "deny"

    async def session():
        async with signed_in(server, person, Memory()) as (client, _):
            await sources(client)

    with pytest.raises((OAuthFlowError, BaseExceptionGroup)):
        asyncio.run(session())
    assert not AccessToken.objects.exists()


def test_tokens_of_an_inactive_user_open_no_session(server, world, person):
    memory = Memory()

    async def session():
        async with signed_in(server, person, memory) as (client, _):
            await sources(client)

    asyncio.run(session())
    User.objects.filter(pk=world.bob.pk).update(is_active=False)
    headers = {"Authorization": f"Bearer {memory.tokens.access_token}", "Accept": "application/json, text/event-stream"}
    answer = httpx2.post(f"{server}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers)
    assert answer.status_code == 401
