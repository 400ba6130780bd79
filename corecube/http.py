"""Middleware for all responses: request id and content security policy; and the response to a database outage."""

import logging
from collections.abc import Callable
from typing import Final

from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django_htmx.middleware import HtmxDetails

from corecube import logs
from corecube.errors import DatabaseUnavailableError
from corecube.overload import API_PREFIXES
from corecube.process import with_frame_memory

logger = logging.getLogger(__name__)

GetResponse = Callable[[HttpRequest], HttpResponseBase]
CSV_ENCODING: Final = "utf-8-sig"  #: Of downloads: without its byte order mark, Excel does not read UTF-8.
_REFUSALS: Final = (Http404, PermissionDenied, SuspiciousOperation, BadRequest, MultiPartParserError)
_POLICY: Final = (
    "default-src 'none'; "
    "script-src 'self'; "
    "style-src 'self'; "
    "img-src 'self' data:; "
    "font-src 'self'; "
    "connect-src 'self'; "
    "form-action 'self'; "
    "base-uri 'none'; "
    "frame-ancestors 'none'"
)


class HtmxHttpRequest(HttpRequest):
    """A request with the attribute of django-htmx's middleware."""

    htmx: HtmxDetails


def wants_json(request: HttpRequest) -> bool:
    """Return whether the request is for an API, so that errors are JSON."""
    return request.path.startswith(API_PREFIXES)


def request_id(request: HttpRequest) -> str:
    """Return the id of the request; "-" without `RequestIdMiddleware`."""
    return str(getattr(request, "request_id", "-"))


class Middleware:
    """A middleware that passes requests on."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response."""
        return self.get_response(request)


class RequestIdMiddleware(Middleware):
    """Gives every request an id, logs it for failures and returns it as `x-request-id`.

    A trusted proxy may have set it (`corecube.asgi`). One sent by a client is ignored, so that clients cannot write to
    the log.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response with the id in a header."""
        new_id = getattr(request, "scope", {}).get("request_id") or logs.request_id()
        request.request_id = new_id  # type: ignore[attr-defined]  # a dynamic attribute
        response = with_frame_memory(self.get_response, request)
        response.headers["x-request-id"] = new_id
        _trace(request, response.status_code)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Log the failed request; Django then logs the traceback."""
        if not isinstance(exception, _REFUSALS):
            logger.error("request.failed id=%s path=%s", request_id(request), request.path)


def _trace(request: HttpRequest, status: int) -> None:
    """Name the request's span by its route; a path may contain ids."""
    traced = getattr(request, "scope", {}).get("traced")
    if traced is not None:
        route = request.resolver_match.route if request.resolver_match else ""
        traced.rename(f"{request.method} {route}".strip())
        traced.set(http__request__method=request.method or "", http__route=route, http__response__status_code=status)


class ContentSecurityPolicyMiddleware(Middleware):
    """Allows only resources of this server: no inline scripts or styles, no framing."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response with the policy."""
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", _POLICY)
        return response


def outage_response(request: HttpRequest) -> HttpResponse:
    """Return the response during a database outage."""
    error = DatabaseUnavailableError("The database is not available. Try again in a moment.")
    if wants_json(request):
        body = {"error": {"message": str(error), "type": "server_error", "param": None, "code": error.code}}
        response: HttpResponse = JsonResponse(body, status=error.status)
    else:
        context = {"title": "Database unavailable", "message": str(error)}
        response = render(request, "error.html", context, status=error.status)
    response.headers["Retry-After"] = "5"
    return response
