"""A program with a key, and a real server for clients that need one."""

import threading
import time

import pytest
import uvicorn


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


@pytest.fixture
def server(transactional_db, settings):
    """Return the address of an ASGI server on the test's database."""
    from corecube.asgi import application

    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    config = uvicorn.Config(application, port=0, lifespan="off", log_level="warning")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    running.should_exit = True
    thread.join(timeout=10)
