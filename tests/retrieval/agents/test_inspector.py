"""The protocol's Inspector, with a token of OAuth, where it is installed (npm: @modelcontextprotocol/inspector)."""

import json
import shutil
import subprocess

import pytest
from django.conf import settings
from django.test import Client

from retrieval.models import Document
from tests.corecube.oauth.conftest import Agent

INSPECTOR = shutil.which("mcp-inspector", path=settings.BASE_DIR / "build/clients/node_modules/.bin")


@pytest.fixture
def inspect(server, world):
    """Return a function that runs the Inspector's command line as Bob, and returns what it prints."""
    agent = Agent(Client(HTTP_HOST=server.removeprefix("http://")))
    agent.register()
    token = agent.exchange(agent.code(world.bob, resource=f"{server}/mcp")).json()["access_token"]

    def run(*arguments):
        call = [INSPECTOR, "--cli", f"{server}/mcp", "--transport", "http"]
        header = ["--header", f"Authorization: Bearer {token}"]
        done = subprocess.run([*call, *header, *arguments], capture_output=True, check=False, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.skipif(INSPECTOR is None, reason="needs the Inspector in build/clients")
def test_the_inspector_exits_without_an_error(inspect):
    tools = inspect("--method", "tools/list")["tools"]
    assert [it["name"] for it in tools] == ["search", "fetch", "recall", "remember", "evidence"]
    found = inspect("--method", "tools/call", "--tool-name", "search", "--tool-arg", "query=rollback staging")
    assert {it["source"] for it in found["structuredContent"]["results"]} == {"Runbooks"}
    listed = {it["uri"] for it in inspect("--method", "resources/list")["resources"]}
    assert listed == {
        f"corecube://documents/{it}"
        for it in Document.objects.filter(connection__slug="runbooks").values_list("pk", flat=True)
    }
    (content,) = inspect("--method", "resources/read", "--uri", min(listed))["contents"]
    assert content["text"]
    assert inspect("--method", "resources/templates/list")["resourceTemplates"]
    assert len(inspect("--method", "prompts/list")["prompts"]) == 3
    asked = inspect("--method", "prompts/get", "--prompt-name", "ask", "--prompt-args", "question=Who calls?")
    assert "Who calls?" in asked["messages"][0]["content"]["text"]
