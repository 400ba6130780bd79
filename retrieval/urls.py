"""Addresses of the engine's APIs."""

from typing import Final

from django.urls import URLPattern, URLResolver, path
from ninja import NinjaAPI

from corecube.api import BrowserAuth, KeyAuth, make_api
from retrieval.agents.view import mcp
from retrieval.api.dify import dify_api
from retrieval.operations.health import healthz, readyz
from retrieval.operations.metrics import metrics

#: The modules of CoreCube's own API, in the order of its documentation.
_ROUTERS: Final = (
    *("access", "search", "evidence", "context_pack", "lifeline", "documents", "connections", "quality"),
    *("presets", "jobs", "indexes", "judgments", "language_models", "memory", "keys"),
)
_PARAMETERS: Final = {
    "empty_query": "query",
    "query_too_long": "query",
    "unknown_preset": "preset",
    "unknown_connection": "scope",
    "unknown_section": "section",
    "unknown_section_set": "section_set",
    "invalid_overrides": "overrides",
    "invalid_values": "values",
}
_CHAT_PARAMETERS: Final = {
    "empty_query": "messages",
    "query_too_long": "messages",
    "missing_message": "messages",
    "unknown_connection": "corecube.scope",
    "invalid_overrides": "corecube.overrides",
}


def corecube_api() -> NinjaAPI:
    """Return CoreCube's own API, for programs with a key and for the signed-in browser."""
    api = make_api(
        title="CoreCube API",
        description="Governed retrieval. The OpenAI-compatible API is described at [/v1/docs](/v1/docs).",
        name="api",
        auth=[KeyAuth(), BrowserAuth()],
        parameters=_PARAMETERS,
    )
    for name in _ROUTERS:
        api.add_router("/v1", f"retrieval.api.{name}.router")
    return api


def openai_api() -> NinjaAPI:
    """Return the API that OpenAI's clients speak, for programs with a key."""
    api = make_api(
        title="CoreCube's OpenAI-compatible API",
        description="Chat completions over your documents. CoreCube's own API is described at [/api/docs](/api/docs).",
        name="openai",
        auth=[KeyAuth()],
        parameters=_CHAT_PARAMETERS,
    )
    api.add_router("", "retrieval.api.chat.router")
    return api


urlpatterns: list[URLPattern | URLResolver] = [
    path("api/dify/", dify_api().urls),
    path("api/", corecube_api().urls),
    path("v1/", openai_api().urls),
    path("mcp", mcp),
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", metrics, name="metrics"),
]
