"""Invalid requests, 4xx responses with a message, and database outages.

Forms and schemas validate fields. This handles the rest for all views: unreadable URLs, encodings and cookies, and
values that the database cannot store.
"""

import codecs
import logging
from typing import Final

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from corecube.api import OUTAGES, failure_response
from corecube.database import is_unstorable
from corecube.errors import CoreCubeError, InvalidRequestError, RefusedForNowError, UnstorableValueError
from corecube.http import Middleware, outage_response, request_id, wants_json

logger = logging.getLogger(__name__)

_TITLES: Final = {403: "Not allowed", 409: "Conflict", 429: "Try again later"}
_ENCODINGS: Final = frozenset({"utf-8", "ascii"})


class UnsupportedEncodingError(InvalidRequestError, status=415, code="unsupported_encoding"):
    """The request must be in UTF-8, with no other charset in Content-Type."""


class RefusalMiddleware(Middleware):
    """Rejects unreadable requests, and turns database outages and errors that a request caused into responses."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response."""
        if request.encoding is not None and codecs.lookup(request.encoding).name not in _ENCODINGS:
            return refusal(request, UnsupportedEncodingError())
        if "\0" in request.path_info and not wants_json(request):
            raise Http404
        # No cookie of ours contains NUL, which can be sent as an escape.
        for name in [name for name, value in request.COOKIES.items() if "\0" in f"{name}{value}"]:
            del request.COOKIES[name]
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the response to an outage or to an error that the request caused, None for any other."""
        if isinstance(exception, OUTAGES):
            logger.error("database.unavailable id=%s path=%s error=%s", request_id(request), request.path, exception)
            return outage_response(request)
        if isinstance(exception, CoreCubeError) and exception.status < 500:  # noqa: PLR2004 -- HTTP
            return refusal(request, exception)
        if is_unstorable(exception):
            logger.warning("request.unstorable id=%s cause=%s", request_id(request), type(exception).__name__)
            return refusal(request, UnstorableValueError())
        return None


def refusal(request: HttpRequest, error: CoreCubeError) -> HttpResponse:
    """Return an error response: JSON for an API, else a page or a fragment."""
    if wants_json(request):
        return failure_response(request, error)
    context = {"title": _TITLES.get(error.status, "Not accepted"), "message": str(error)}
    response = render(request, "error.html", context, status=error.status)
    if isinstance(error, RefusedForNowError):
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response
