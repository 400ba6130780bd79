"""A real language model behind an OpenAI-compatible server writes the answer, where its weights are on this machine."""

import importlib.util
import os
import socket
import subprocess
import sys
import time

import httpx2
import openai
import pytest
from django.conf import settings

from retrieval.models import LanguageModel

START_SECONDS = 120


def weights():
    """Return the weights to try: the file that CORECUBE_TEST_GGUF names, or one in a folder of the models."""
    named = os.environ.get("CORECUBE_TEST_GGUF")
    found = sorted(settings.CORECUBE_MODELS_DIR.glob("*/*.gguf"))
    return named or (str(found[0]) if found else "")


def missing():
    """Return what is missing, in words; empty when nothing is."""
    if not all(importlib.util.find_spec(name) for name in ("llama_cpp", "starlette_context")):
        return "llama-cpp-python with its server is not installed"
    return "" if weights() else "no .gguf file is among the models, and CORECUBE_TEST_GGUF names none"


pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "all is there")


@pytest.fixture
def local_model(world):
    """Return a language model that a local server runs."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    options = ("--model", weights(), "--host", "127.0.0.1", "--port", str(port), "--n_ctx", "2048")
    process = subprocess.Popen(
        [sys.executable, "-m", "llama_cpp.server", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        url = f"http://127.0.0.1:{port}/v1"
        wait_for(f"{url}/models", process)
        yield LanguageModel.objects.create(
            slug="local",
            name="Local",
            base_url=url,
            model="local",
            context_tokens=2048,
            max_answer_tokens=48,
            timeout_seconds=120,
            silence_seconds=120,
            is_default=True,
        )
    finally:
        process.kill()
        process.wait()


def wait_for(url, process):
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx2.get(url, trust_env=False).status_code == httpx2.codes.OK:
                return
        except httpx2.HTTPError:
            time.sleep(0.2)
    raise AssertionError("The local model's server did not start.")


def test_it_answers_through_the_stock_client(world, server, local_model):
    question = {"model": "corecube", "messages": [{"role": "user", "content": "rollback staging database"}]}
    with openai.OpenAI(base_url=f"{server}/v1", api_key=world.key("bob"), max_retries=0, timeout=180) as client:
        chunks = list(client.chat.completions.create(**question, stream=True))
        whole = client.chat.completions.create(**question)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks).strip()
    assert chunks[-1].corecube["provider"] == whole.corecube["provider"] == local_model.slug
    assert whole.choices[0].message.content.strip()
    assert whole.usage.completion_tokens > 0
