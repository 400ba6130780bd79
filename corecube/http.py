"""What every HTTP answer carries: an id, a content security policy, a clear word when the database is down."""

import logging
import uuid
from collections.abc import Callable
from typing import Final

from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django_htmx.middleware import HtmxDetails

from corecube.errors import DatabaseUnavailableError
from corecube.process import with_frame_memory

logger = logging.getLogger(__name__)

GetResponse = Callable[[HttpRequest], HttpResponseBase]
_API_PREFIXES: Final = ("/api/", "/v1/", "/mcp")
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
    """A request as django-htmx's middleware leaves it."""

    htmx: HtmxDetails


def wants_json(request: HttpRequest) -> bool:
    """Return whether a program sent the request, so that errors are JSON."""
    return request.path.startswith(_API_PREFIXES)


def request_id(request: HttpRequest) -> str:
    """Return the id that `RequestIdMiddleware` gave the request; "-" where it did not see it."""
    given: str = getattr(request, "request_id", "-")
    return given


class RequestIdMiddleware:
    """Gives every request an id of its own, names it in the log of a failure and sends it back as `x-request-id`.

    An id that the client sends is not taken, so that nobody writes into the log.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request with its id in a header."""
        drawn = uuid.uuid4().hex
        request.request_id = drawn  # type: ignore[attr-defined]  # Django's requests take attributes
        response = with_frame_memory(self.get_response, request)
        response.headers["x-request-id"] = drawn
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Name the request that failed; Django logs the traceback next."""
        if not isinstance(exception, _REFUSALS):
            logger.error("request.failed id=%s path=%s", request_id(request), request.path)


class ContentSecurityPolicyMiddleware:
    """Allows only what this server itself serves: no inline script or style, no framing."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request under the policy."""
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", _POLICY)
        return response


class DatabaseOutageMiddleware:
    """Turns a database that does not answer into a 503 that says so."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the 503 for an outage, None for any other exception."""
        if not isinstance(exception, OperationalError | InterfaceError | DatabaseUnavailableError):
            return None
        logger.error("database.unavailable id=%s path=%s error=%s", request_id(request), request.path, exception)
        return outage_response(request)


def outage_response(request: HttpRequest) -> HttpResponse:
    """Return the answer to a request that the database could not serve."""
    error = DatabaseUnavailableError("The database does not answer. The request can be sent again in a moment.")
    if wants_json(request):
        body = {"error": {"message": str(error), "type": "server_error", "param": None, "code": error.code}}
        response: HttpResponse = JsonResponse(body, status=error.status)
    else:
        context = {"title": "Database unavailable", "message": str(error)}
        response = render(request, "error.html", context, status=error.status)
    response.headers["Retry-After"] = "5"
    return response
