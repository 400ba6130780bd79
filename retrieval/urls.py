"""Addresses of the engine's APIs."""

from typing import Final

from django.urls import URLPattern, URLResolver, path
from ninja import NinjaAPI

from corecube.api import BrowserAuth, KeyAuth, make_api
from corecube.data import read_toml
from retrieval.agents.view import mcp
from retrieval.api.dify import dify_api
from retrieval.api.schemas import ErrorOut
from retrieval.operations.health import healthz, readyz
from retrieval.operations.metrics import metrics

#: The modules of CoreCube's own API, in the order of its documentation.
_ROUTERS: Final = (
    *("access", "search", "evidence", "context_pack", "lifeline", "documents", "connections", "quality"),
    *(
        "presets",
        "jobs",
        "indexes",
        "judgments",
        "evaluation",
        "experiments",
        "sweeps",
        "question_sets",
        "language_models",
        "memory",
        "keys",
    ),
)
_OPENAI_ROUTERS: Final = ("chat.router", "responses.router", "embeddings.router", "rerank.first_router")
#: Title and description of each API, and the parameter of its requests that causes an error, by the error's code.
_APIS: Final = read_toml("retrieval", "apis.toml")


def corecube_api() -> NinjaAPI:
    """Return CoreCube's own API, for programs with a key and for the signed-in browser."""
    api = make_api(name="api", auth=[KeyAuth(), BrowserAuth()], error=ErrorOut, **_APIS["api"])
    for name in _ROUTERS:
        api.add_router("/v1", f"retrieval.api.{name}.router")
    return api


def openai_api() -> NinjaAPI:
    """Return the API that OpenAI's clients speak, for programs with a key."""
    api = make_api(name="openai", auth=[KeyAuth()], error=ErrorOut, **_APIS["openai"])
    for name in _OPENAI_ROUTERS:
        api.add_router("", f"retrieval.api.openai.{name}")
    return api


def rerank_api() -> NinjaAPI:
    """Return the API that Cohere's clients speak at /v2, for programs with a key."""
    api = make_api(name="rerank", auth=[KeyAuth()], error=ErrorOut, **_APIS["rerank"])
    api.add_router("", "retrieval.api.openai.rerank.second_router")
    return api


urlpatterns: list[URLPattern | URLResolver] = [
    path("api/dify/", dify_api().urls),
    path("api/", corecube_api().urls),
    path("v1/", openai_api().urls),
    path("v2/", rerank_api().urls),
    path("mcp", mcp),
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", metrics, name="metrics"),
]
