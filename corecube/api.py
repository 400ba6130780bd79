"""Shared by all APIs: authentication, error responses, and creation of an API.

Every error has the format `{"error": {"message", "type", "param", "code"}}` of OpenAI's API.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Final

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
from ninja.openapi.schema import REF_TEMPLATE, OpenAPISchema
from ninja.security.apikey import APIKeyCookie
from ninja.security.http import HttpAuthBase
from ninja.security.session import SessionAuth
from ninja.utils import check_csrf
from psycopg.errors import QueryCanceled
from pydantic import BaseModel

from corecube import errors, rate_limit
from corecube.access import Principal
from corecube.database import is_unstorable
from corecube.http import Middleware, outage_response, request_id, wants_json
from corecube.keys import USER_HEADER, forwarded_user
from corecube.models import ApiKey, User

logger = logging.getLogger(__name__)

_LAST_USED_INTERVAL: Final = timedelta(minutes=1)
OUTAGES: Final = (OperationalError, InterfaceError, errors.DatabaseUnavailableError)
_TEMPORARY: Final = frozenset({408, 409, 429})  #: Statuses of errors for which the same request may succeed later.
_PRESERVED_HEADERS: Final = ("Allow", "Retry-After")
_KEY_REQUIRED: Final = "An API key is required: send it as `Authorization: Bearer cc_...`."
_PLAIN_REFUSALS: Final = {
    404: ("Not found.", "not_found"),
    405: ("Method not allowed.", "method_not_allowed"),
    413: ("The request is too large.", "request_too_large"),
}


class Api(NinjaAPI):
    """An API whose operations declare the statuses of their error responses as None; all have one schema.

    ninja would build a model at start for each error response of each operation, hundreds of equal ones.
    """

    def __init__(self, *, error: type[BaseModel], **options: Any) -> None:  # noqa: ANN401 -- ninja's options
        """Create an API whose error responses have the schema `error`."""
        super().__init__(**options)
        self._error = error

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:  # noqa: ANN401 -- ninja's options
        """Return the API's description, with the schema of its error responses."""
        described = super().get_openapi_schema(**options)
        schema = self._error.model_json_schema(ref_template=REF_TEMPLATE, mode="serialization")
        described["components"]["schemas"] |= {**schema.pop("$defs", {}), self._error.__name__: schema}
        reference = {"schema": {"$ref": REF_TEMPLATE.format(model=self._error.__name__)}}
        for operations in described["paths"].values():
            for operation in operations.values():
                for status, response in operation["responses"].items():
                    if status >= 400:  # noqa: PLR2004 -- HTTP
                        response["content"] = {self.renderer.media_type: reference}
        return described


class CsrfError(errors.NotPermittedError, code="csrf_failed"):
    """A request with a session cookie requires the CSRF token in the header X-CSRFToken."""


class KeyAuth(HttpAuthBase):
    """Authenticates `Authorization: Bearer cc_...`, optionally for the user in a signed X-CoreCube-User header.

    An invalid key or token ends the request.
    """

    openapi_scheme = "bearer"

    def __call__(self, request: HttpRequest) -> Principal | None:
        """Return the principal, None without the header; raises like `principal_of_key`."""
        given = request.headers.get("Authorization")
        return None if given is None else principal_of_key(given, request.headers.get(USER_HEADER))


class BrowserAuth(APIKeyCookie):
    """Authenticates by the session of the console, with the CSRF token for changes."""

    param_name = SessionAuth.param_name

    def __call__(self, request: HttpRequest) -> Principal | None:
        """Return the signed-in user or None; raise CsrfError."""
        principal = self.authenticate(request, None)
        if principal is not None and check_csrf(request) is not None:
            raise CsrfError
        return principal

    def authenticate(self, request: HttpRequest, key: str | None) -> Principal | None:  # noqa: ARG002 -- ninja's signature
        """Return the session's user."""
        return Principal(request.user) if isinstance(request.user, User) else None


def principal_of_key(authorization: str, user_token: str | None) -> Principal:
    """Return the principal of the Authorization header and the X-CoreCube-User header, if sent.

    Raises NotAuthenticatedError for an invalid key, RateLimitedError, UserTokenError for an invalid token, and
    ForwardingNotAllowedError for a token with a key that may not act for other users.
    """
    scheme, _, secret = authorization.partition(" ")
    key = ApiKey.objects.for_secret(secret.strip()) if scheme.lower() == "bearer" else None
    if key is None:
        raise errors.NotAuthenticatedError("The API key is unknown, expired or revoked.")
    # To the minute, so that a busy key does not write on each request.
    due_before = timezone.now() - _LAST_USED_INTERVAL
    if key.last_used_at is None or key.last_used_at < due_before:
        is_due = Q(last_used_at__isnull=True) | Q(last_used_at__lt=due_before)
        ApiKey.objects.filter(is_due, pk=key.pk).update(last_used_at=timezone.now())
    # An invalid token also counts as a request, which limits guessing.
    rate_limit.take(key)
    return Principal(key.user if user_token is None else forwarded_user(key, user_token), key)


def principal_of(request: HttpRequest) -> Principal:
    """Return the principal of an authenticated request; raise NotAuthenticatedError."""
    principal = getattr(request, "auth", None)
    if not isinstance(principal, Principal):
        raise errors.NotAuthenticatedError
    return principal


def make_api(
    *,
    title: str,
    description: str,
    name: str,
    auth: Sequence[Callable[[HttpRequest], Principal | None]],
    error: type[BaseModel],
    parameters: Mapping[str, str],
) -> Api:
    """Return an API with the shared error handlers, whose error responses are described by `error`.

    `parameters` maps error codes to the parameters that cause them.
    """
    docs = Swagger(settings={"validatorUrl": None, "tryItOutEnabled": True, "defaultModelsExpandDepth": 0})
    api = Api(
        error=error,
        title=title,
        description=description,
        version="1",
        urls_namespace=name,
        auth=auth,
        docs=docs,
        docs_url="/docs",
    )
    # The handler of the nearest base class applies.
    handlers: dict[type[Exception], Callable[..., HttpResponse]] = {
        Exception: partial(failure_response, parameters=parameters),
        ValidationError: _validation_error,
        AuthenticationError: lambda *_: error_response(
            _KEY_REQUIRED, status=401, code=errors.NotAuthenticatedError.code
        ),
        # ninja raises it only for a body that is not JSON.
        HttpError: lambda _request, error: error_response(
            "The body is not valid JSON.", status=error.status_code, code="invalid_json"
        ),
        RequestDataTooBig: lambda _request, _error: _status_response(413),
        SuspiciousOperation: lambda _request, _error: _status_response(400),
        MultiPartParserError: lambda _request, _error: _status_response(400),
        Http404: lambda _request, _error: _status_response(404),
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)
    return api


def error_response(message: str, *, status: int, code: str, param: str | None = None) -> JsonResponse:
    """Return an error response; permanent errors tell clients not to retry."""
    response = JsonResponse(errors.error_body(message, status=status, code=code, param=param), status=status)
    if 400 <= status < 500 and status not in _TEMPORARY:  # noqa: PLR2004 -- HTTP
        response.headers["x-should-retry"] = "false"
    if status == 401:  # noqa: PLR2004 -- HTTP
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def is_outage(error: BaseException) -> bool:
    """Return whether the cause of an error is a database that does not respond, but not a canceled statement."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OUTAGES):
        cause = cause.__cause__
    return cause is not None and not isinstance(cause.__cause__, QueryCanceled)


def failure_response(
    request: HttpRequest, error: Exception, parameters: Mapping[str, str] = MappingProxyType({})
) -> HttpResponse:
    """Return the API response to an exception; unexpected ones are logged."""
    if is_outage(error):
        logger.error("database.unavailable id=%s path=%s", request_id(request), request.path, exc_info=error)
        return outage_response(request)
    if is_unstorable(error):
        logger.warning("request.unstorable id=%s cause=%s", request_id(request), type(error).__name__)
        error = errors.UnstorableValueError()
    known = error if isinstance(error, errors.CoreCubeError) else errors.CoreCubeError()
    if known.status >= 500:  # noqa: PLR2004 -- HTTP
        logger.error("api.failed id=%s path=%s code=%s", request_id(request), request.path, known.code, exc_info=error)
    param = getattr(known, "param", None) or parameters.get(known.code)
    response = error_response(str(known), status=known.status, code=known.code, param=param)
    if isinstance(known, errors.RefusedForNowError):
        response.headers["Retry-After"] = str(known.retry_after_seconds)
    return response


def _validation_error(request: HttpRequest, error: ValidationError) -> HttpResponse:  # noqa: ARG001 -- ninja's signature
    """Name the first invalid parameter, without its value: ("body", "body", "include", 0) is "include.0"."""
    first = error.errors[0]
    # The first part is the location; the second part of a body is the name of the view's argument.
    path = first["loc"][2:] if first["loc"][0] == "body" else first["loc"][1:]
    param = ".".join(map(str, path)) or None
    message = f"{param}: {first['msg']}." if param else "The body must be a JSON object."
    return error_response(message, status=422, code="invalid_request", param=param)


def _status_response(status: int) -> JsonResponse:
    if status >= 500:  # noqa: PLR2004 -- HTTP
        message, code = str(errors.CoreCubeError()), errors.CoreCubeError.code
    else:
        message, code = _PLAIN_REFUSALS.get(status, ("The request is not valid.", "bad_request"))
    return error_response(message, status=status, code=code)


class ErrorShapeMiddleware(Middleware):
    """Formats errors outside the handlers of an API: unknown URL, method or host."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response."""
        response = self.get_response(request)
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        if response.status_code < 400 or is_json or not wants_json(request):  # noqa: PLR2004 -- HTTP
            return response
        shaped = _status_response(response.status_code)
        for header in _PRESERVED_HEADERS:
            if header in response.headers:
                shaped.headers[header] = response.headers[header]
        return shaped
