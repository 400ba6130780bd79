"""What every API shares: how a program signs in, how an error looks, how an API is made.

Every refusal has the shape `{"error": {"message", "type", "param", "code"}}` that OpenAI's clients read.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Final

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase
from django.utils import timezone
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.openapi.docs import Swagger
from ninja.security.apikey import APIKeyCookie
from ninja.security.http import HttpAuthBase
from ninja.security.session import SessionAuth
from ninja.utils import check_csrf
from psycopg.errors import QueryCanceled

from corecube import rate_limit
from corecube.access import Principal
from corecube.database import is_unstorable
from corecube.errors import (
    CoreCubeError,
    DatabaseUnavailableError,
    NotAuthenticatedError,
    NotPermittedError,
    RefusedForNowError,
    UnstorableValueError,
)
from corecube.forwarding import USER_HEADER, forwarded_user
from corecube.http import GetResponse, outage_response, request_id, wants_json
from corecube.models import ApiKey, User

logger = logging.getLogger(__name__)

_NOTE_USE_EVERY: Final = timedelta(minutes=1)
_OUTAGES: Final = (OperationalError, InterfaceError, DatabaseUnavailableError)
#: Refusals that may end differently when the same request is sent again.
_PASSING: Final = frozenset({408, 409, 429})
_KEPT_HEADERS: Final = ("Allow", "Retry-After")
_PLAIN_REFUSALS: Final = {
    404: ("There is nothing at this address.", "not_found"),
    405: ("This address does not take that method.", "method_not_allowed"),
    413: ("The request is larger than this server takes.", "request_too_large"),
}


class CsrfError(NotPermittedError):
    """A request with a session cookie needs its CSRF token in the header X-CSRFToken."""

    code: ClassVar[str] = "csrf_failed"


class KeyAuth(HttpAuthBase):
    """Signs a program in by `Authorization: Bearer cc_...`, for the user whom a signed X-CoreCube-User names if any.

    A key, or a token, that is sent and wrong ends the request.
    """

    openapi_scheme = "bearer"

    def __call__(self, request: HttpRequest) -> Principal | None:
        """Return who the key acts for, None without the header.

        Raises what `principal_of_key` does.
        """
        given = request.headers.get("Authorization")
        return None if given is None else principal_of_key(given, request.headers.get(USER_HEADER))


class BrowserAuth(APIKeyCookie):
    """Signs a person in by the console's session; a request that changes something needs the CSRF token too."""

    param_name = SessionAuth.param_name

    def __call__(self, request: HttpRequest) -> Principal | None:
        """Return the signed-in user, None for a stranger; raise CsrfError."""
        principal = self.authenticate(request, None)
        if principal is not None and check_csrf(request) is not None:
            raise CsrfError
        return principal

    def authenticate(self, request: HttpRequest, key: str | None) -> Principal | None:  # noqa: ARG002 -- ninja's signature
        """Return the session's user."""
        return Principal(request.user) if isinstance(request.user, User) else None


def principal_of_key(authorization: str, user_token: str | None) -> Principal:
    """Return who a program acts for, by its Authorization and, where it was sent, its X-CoreCube-User header.

    Raises NotAuthenticatedError for a wrong key, RateLimitedError for one that sends more than it may,
    UserTokenError for a wrong token, and ForwardingNotAllowedError for one with a key that may act for nobody.
    """
    scheme, _, secret = authorization.partition(" ")
    key = ApiKey.objects.for_secret(secret.strip()) if scheme.lower() == "bearer" else None
    if key is None:
        raise NotAuthenticatedError("The API key is unknown, expired or revoked.")
    _note_use(key)
    # A wrong token counts as a request too, so that nobody tries many.
    rate_limit.take(key)
    return Principal(key.user if user_token is None else forwarded_user(key, user_token), key)


def _note_use(key: ApiKey) -> None:
    """Remember when a key was last used, to the minute, so that a busy key does not write on each request."""
    now = timezone.now()
    due = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - _NOTE_USE_EVERY)
    if key.last_used_at is None or key.last_used_at < now - _NOTE_USE_EVERY:
        ApiKey.objects.filter(due, pk=key.pk).update(last_used_at=now)


def principal_of(request: HttpRequest) -> Principal:
    """Return who an authenticated request acts for; raise NotAuthenticatedError."""
    principal = getattr(request, "auth", None)
    if not isinstance(principal, Principal):
        raise NotAuthenticatedError
    return principal


def make_api(
    *,
    title: str,
    description: str,
    name: str,
    auth: Sequence[Callable[[HttpRequest], Principal | None]],
    parameters: Mapping[str, str],
) -> NinjaAPI:
    """Return an API without routes, with the errors' one shape.

    `parameters` tell which parameter of a request an error's code speaks of.
    """
    docs = Swagger(settings={"validatorUrl": None, "tryItOutEnabled": True, "defaultModelsExpandDepth": 0})
    api = NinjaAPI(
        title=title,
        description=description,
        version="1",
        urls_namespace=name,
        auth=auth,
        docs=docs,
        docs_url="/docs",
    )
    for kind, handler in _handlers(parameters).items():
        api.add_exception_handler(kind, handler)
    return api


def _handlers(parameters: Mapping[str, str]) -> dict[type[Exception], Callable[..., HttpResponse]]:
    """Return what answers to each kind of error; the nearest base class is taken."""
    return {
        CoreCubeError: partial(_corecube_error, parameters=parameters),
        ValidationError: _validation_error,
        AuthenticationError: _no_credentials,
        HttpError: _not_json,
        RequestDataTooBig: partial(_plain_refusal, status=413),
        SuspiciousOperation: partial(_plain_refusal, status=400),
        MultiPartParserError: partial(_plain_refusal, status=400),
        Http404: partial(_plain_refusal, status=404),
        Exception: _unexpected,
    }


def error_type(status: int) -> str:
    """Return the error type that OpenAI's clients know for a status."""
    if status >= 500:  # noqa: PLR2004 -- HTTP
        return "server_error"
    special = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    return special.get(status, "invalid_request_error")


def error_body(message: str, *, status: int, code: str, param: str | None = None) -> dict[str, Any]:
    """Return an error as every API writes it."""
    return {"error": {"message": message, "type": error_type(status), "param": param, "code": code}}


def error_response(message: str, *, status: int, code: str, param: str | None = None) -> JsonResponse:
    """Return the answer to a request that is refused or failed. A lasting refusal says not to try again."""
    response = JsonResponse(error_body(message, status=status, code=code, param=param), status=status)
    if 400 <= status < 500 and status not in _PASSING:  # noqa: PLR2004 -- HTTP
        response.headers["x-should-retry"] = "false"
    if status == 401:  # noqa: PLR2004 -- HTTP
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def is_outage(error: BaseException) -> bool:
    """Return whether the database did not answer, also when a stage's error is wrapped around it.

    A statement that was ended because its time was up is none.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, _OUTAGES):
        cause = cause.__cause__
    return cause is not None and not isinstance(cause.__cause__, QueryCanceled)


def refused(request: HttpRequest, error: CoreCubeError) -> HttpResponse:
    """Return the answer to a request that failed outside the APIs, in their shape."""
    return _corecube_error(request, error, {})


def _corecube_error(request: HttpRequest, error: CoreCubeError, parameters: Mapping[str, str]) -> HttpResponse:
    if is_outage(error):
        logger.error("database.unavailable id=%s path=%s", request_id(request), request.path, exc_info=error)
        return outage_response(request)
    if is_unstorable(error):
        return _unstorable(request, error)
    if error.status >= 500:  # noqa: PLR2004 -- HTTP
        logger.error("api.failed id=%s path=%s code=%s", request_id(request), request.path, error.code, exc_info=error)
    param = getattr(error, "param", None) or parameters.get(error.code)
    response = error_response(str(error), status=error.status, code=error.code, param=param)
    if isinstance(error, RefusedForNowError):
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response


def _unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
    if is_outage(error):
        logger.error("database.unavailable id=%s path=%s", request_id(request), request.path, exc_info=error)
        return outage_response(request)
    if is_unstorable(error):
        return _unstorable(request, error)
    logger.error("api.failed id=%s path=%s", request_id(request), request.path, exc_info=error)
    return error_response(str(CoreCubeError()), status=CoreCubeError.status, code=CoreCubeError.code)


def _unstorable(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.warning("request.unstorable id=%s cause=%s", request_id(request), type(error).__name__)
    return _corecube_error(request, UnstorableValueError(), {})


def _validation_error(request: HttpRequest, error: ValidationError) -> HttpResponse:  # noqa: ARG001 -- ninja's signature
    """Name the first parameter that is wrong. What was sent for it is not repeated."""
    first = error.errors[0]
    param = _parameter(first["loc"])
    message = f"{param}: {first['msg']}." if param else "The request needs a JSON object as its body."
    return error_response(message, status=422, code="invalid_request", param=param)


def _parameter(place: Sequence[object]) -> str | None:
    """Return the dotted name of the wrong parameter: ("body", "body", "scope", "include", 0) is "scope.include.0"."""
    # The first part says where it was sent; a body's second part is only the view's name for the whole.
    parts = place[2:] if place[0] == "body" else place[1:]
    return ".".join(map(str, parts)) or None


def _no_credentials(request: HttpRequest, error: HttpError) -> HttpResponse:  # noqa: ARG001 -- ninja's signature
    message = "An API key is needed: send it as `Authorization: Bearer cc_...`."
    return error_response(message, status=401, code=NotAuthenticatedError.code)


def _not_json(request: HttpRequest, error: HttpError) -> HttpResponse:  # noqa: ARG001 -- ninja's signature
    """Answer ninja's own error, which it raises only for a body that is not JSON."""
    return error_response("The body is not valid JSON.", status=error.status_code, code="invalid_json")


def _plain_refusal(request: HttpRequest, error: Exception, status: int) -> HttpResponse:  # noqa: ARG001 -- ninja's signature
    return _shaped(status)


def _shaped(status: int) -> JsonResponse:
    """Return the answer for a status that says all there is to say."""
    if status >= 500:  # noqa: PLR2004 -- HTTP
        message, code = str(CoreCubeError()), CoreCubeError.code
    else:
        message, code = _PLAIN_REFUSALS.get(status, ("The request cannot be read.", "bad_request"))
    return error_response(message, status=status, code=code)


class ErrorShapeMiddleware:
    """Gives the errors that never reach an API's own handlers its shape: a wrong address, method or host."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        response = self.get_response(request)
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        if response.status_code < 400 or is_json or not wants_json(request):  # noqa: PLR2004 -- HTTP
            return response
        shaped = _shaped(response.status_code)
        for header in _KEPT_HEADERS:
            if header in response.headers:
                shaped.headers[header] = response.headers[header]
        return shaped
