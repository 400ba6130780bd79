"""The stock client."""

import openai
import pytest


@pytest.fixture
def connect(world, server):
    """Return a function that makes a client with a key; all are closed in the end."""
    clients = []

    def make(secret):
        clients.append(openai.OpenAI(base_url=f"{server}/v1", api_key=secret, max_retries=0))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
