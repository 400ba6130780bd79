"""Requests that are refused for what they hold: answered with 4xx and a sentence, never with a traceback.

Forms and schemas check field by field and name the one that is wrong. Here is what no view has to think of: addresses,
encodings and cookies that cannot be read, and values that got as far as the database, which cannot take them.
"""

import codecs
import logging
from typing import ClassVar, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from corecube.api import refused
from corecube.database import is_unstorable
from corecube.errors import CoreCubeError, InvalidRequestError, RefusedForNowError, UnstorableValueError
from corecube.http import GetResponse, request_id, wants_json

logger = logging.getLogger(__name__)

_TITLES: Final = {403: "Not allowed", 409: "Changed meanwhile", 429: "Try again later"}
_ENCODINGS: Final = frozenset({"utf-8", "ascii"})


class UnsupportedEncodingError(InvalidRequestError):
    """The request is not in UTF-8. Send UTF-8, and no other charset in Content-Type."""

    status: ClassVar[int] = 415
    code: ClassVar[str] = "unsupported_encoding"


class RefusalMiddleware:
    """Refuses text that cannot be read, and turns the errors of views that are the request's own into answers."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        if not _is_readable(request.encoding):
            return refusal(request, UnsupportedEncodingError())
        if "\0" in request.path_info and not wants_json(request):
            raise Http404
        _forget_unreadable_cookies(request)
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the answer to an error that the request itself is the cause of, None for any other."""
        if isinstance(exception, CoreCubeError) and exception.status < 500:  # noqa: PLR2004 -- HTTP
            return refusal(request, exception)
        if is_unstorable(exception):
            logger.warning("request.unstorable id=%s cause=%s", request_id(request), type(exception).__name__)
            return refusal(request, UnstorableValueError())
        return None


def refusal(request: HttpRequest, error: CoreCubeError) -> HttpResponse:
    """Return a refusal: JSON for programs, a page or a part of one for people."""
    if wants_json(request):
        return refused(request, error)
    context = {"title": _TITLES.get(error.status, "Not accepted"), "message": str(error)}
    response = render(request, "error.html", context, status=error.status)
    if isinstance(error, RefusedForNowError):
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response


def _is_readable(encoding: str | None) -> bool:
    return encoding is None or codecs.lookup(encoding).name in _ENCODINGS


def _forget_unreadable_cookies(request: HttpRequest) -> None:
    """Leave out cookies with a NUL, which can be written as an escape: they are none of ours."""
    for name in [name for name, value in request.COOKIES.items() if "\0" in f"{name}{value}"]:
        del request.COOKIES[name]
