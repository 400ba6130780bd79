"""Connecting an application in a real browser: it arrives there with a code, in spite of the policy."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from oauth2_provider.models import Application
from playwright.sync_api import expect

from tests.corecube.oauth.conftest import Agent


@pytest.fixture
def application():
    """Return a program that waits for the browser on its own port, and the queries with which it came."""
    came = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.startswith("/callback"):
                came.append({name: value for name, (value,) in parse_qs(urlsplit(self.path).query).items()})
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><html lang=en><title>Done</title><link rel=icon href='data:,'>Signed in.")

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/callback", came
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(("button", "given"), [("Allow", {"code", "state", "iss"}), ("Deny", {"error", "state"})])
def test_the_browser_goes_back_to_the_application(browser, application, client, button, given):
    redirect, came = application
    agent = Agent(client)
    agent.register(client_name="Desk assistant", redirect_uris=[redirect])
    browser.open(agent.address(redirect_uri=redirect, resource=None))
    page = browser.page
    page.get_by_label("Username").fill("bob")
    page.get_by_label("Password").fill("b")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading")).to_have_text("Connect “Desk assistant”?")
    page.get_by_role("button", name=button).click()
    expect(page).to_have_title("Done")
    (query,) = came
    assert given <= set(query)
    assert query["state"] == "xyz"


def test_a_connected_application_is_disconnected(start, world, client):
    agent = Agent(client)
    agent.register(client_name="Desk assistant")
    tokens = agent.tokens(world.bob)
    bob = start(user="bob")
    bob.open("/keys/")
    bob.page.get_by_role("button", name="Disconnect Desk assistant").click()
    expect(bob.page.get_by_role("status")).to_contain_text("Desk assistant was disconnected")
    assert agent.status(tokens["access_token"]) == 401
    assert Application.objects.count() == 1
