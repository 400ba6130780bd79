"""The ASGI entry point: `uvicorn corecube.asgi:application`."""

import os
from asyncio import to_thread
from collections.abc import Mapping
from typing import Any

import django
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import HttpResponseBase
from django.urls import get_resolver
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from corecube import logs, process, tracing
from corecube.health import check_database, serving, stopping
from corecube.overload import overload_guard, waiting_requests

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "corecube.settings")


class Handler(ASGIHandler):
    """Django's handler, which also handles an invalid Content-Type, and the end of the process."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 -- Django's signature
        """Answer a request, or tell the receivers of `stopping` when the web server ends.

        A web server that gets SIGTERM may end by it, without what Python does at exit.
        """
        if scope["type"] != "lifespan":
            await super().__call__(scope, receive, send)
            return
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await to_thread(stopping.send, sender=None)
        await to_thread(tracing.end)
        await send({"type": "lifespan.shutdown.complete"})

    def create_request(
        self,
        scope: Mapping[str, Any],
        body_file: Any,  # noqa: ANN401 -- Django's signature
    ) -> tuple[ASGIRequest, None] | tuple[None, HttpResponseBase]:
        """Return the request, or an error response."""
        from corecube.api import error_response  # noqa: PLC0415 -- Django must be ready

        try:
            return super().create_request(scope, body_file)
        except ValueError:
            return None, error_response("The Content-Type header is not valid.", status=400, code="bad_request")


class TrustedProxies(ProxyHeadersMiddleware):
    """Takes the client's address, the scheme and the id of a request from trusted proxies, and nothing from others."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 -- uvicorn's types are private
        """Give the request its id, which all lines of the log have, and pass it on."""
        if scope["type"] == "http":
            is_trusted = bool(scope["client"]) and scope["client"][0] in self.trusted_hosts
            proposed = dict(scope["headers"]).get(b"x-request-id", b"") if is_trusted else b""
            scope["request_id"] = logs.request_id(proposed.decode("latin-1"))
            logs.origin.set({"request_id": scope["request_id"]})
            parent = scope["headers"] if is_trusted else ()
            with tracing.span(scope["method"], parent=parent, corecube__request_id=scope["request_id"]) as traced:
                scope["traced"] = traced
                await super().__call__(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


django.setup(set_prefix=False)
_guarded = overload_guard.wrap(Handler(), connections=settings.CORECUBE_POOL_CONNECTIONS)
application = TrustedProxies(
    waiting_requests.wrap(_guarded),  # type: ignore[arg-type]  # uvicorn has a type for each message
    trusted_hosts=settings.CORECUBE_TRUSTED_PROXIES,
)
check_database()
# Load the code of all pages and APIs before the first request.
_ = get_resolver().url_patterns
process.exclude_loaded_from_collection()
serving.send(sender=None)
