"""A program with a key."""

import pytest


@pytest.fixture
def post(client):
    """Return a function that posts JSON with a key's secret; without a secret nobody is signed in."""

    def send(path, body, secret="", **headers):
        if secret:
            headers["Authorization"] = f"Bearer {secret}"
        return client.post(path, body, content_type="application/json", headers=headers)

    return send


@pytest.fixture
def get(client):
    """Return a function that gets an address with a key's secret."""

    def send(path, secret=""):
        return client.get(path, headers={"Authorization": f"Bearer {secret}"} if secret else {})

    return send


@pytest.fixture
def ask(post):
    """Return a function that asks the chat endpoint one question."""

    def send(question, secret, **more):
        body = {"model": "corecube", "messages": [{"role": "user", "content": question}], **more}
        return post("/v1/chat/completions", body, secret)

    return send
